"""Composite ops in ones that have a loop nest or a routine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, Graph, float16, float32, full, int32, int64, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.pool import MaxPool
from retrograd.ops.reduce import LogSumExp, ReduceSum
from retrograd.ops.remat import Keep, RegionIn, RegionOut
from retrograd.ops.scatter import ScatterSet
from retrograd.ops.shape import Permute
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.passes.lowering.legalize import in_parts, legalize
from retrograd.runtime.executors.reference import ReferenceProgram


def ops(graph):
    return [n.op for n in graph.body]


def agrees(graph, *arrays):
    result = legalize(graph)
    pairs = zip(ReferenceProgram(graph)(arrays), ReferenceProgram(result)(arrays), strict=True)
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)
    return result


X = np.array([[3, 1, 2], [0, 5, 4]], np.float32)


def test_indices_are_checked_once_for_all_that_read_by_them():
    x, i = input_node(spec((5, 4)), "x"), input_node(spec((3,), int64), "i")
    y = Gather(0)(x, i)
    graph = legalize(Graph([x, i], [y, ScatterSet(0)(x, i, y), Gather(1)(x, i)]))
    checks = [n for n in graph.body if n.op == "check_index"]
    prims: list[Any] = [c.prim for c in checks]
    assert [p.size for p in prims] == [5, 4]
    assert prims[0].target is y  # whose name the error has
    assert all(c.dtype is int32 for c in checks)
    gather, scatter, _ = graph.outputs
    assert gather.inputs[1] is scatter.inputs[1] is checks[0]
    assert (gather.type, gather.source) == (y.type, y.source)


@pytest.mark.parametrize("size", [2**31 - 1, 2**31, Dim("N")])
def test_positions_in_large_axes_have_64_bits(size):
    x, i = input_node(spec((size,), "int8")), input_node(spec((3,), int64))
    (check, _) = legalize(Graph([x, i], [Gather(0)(x, i)])).body
    assert check.dtype is (int32 if size == 2**31 - 1 else int64)


def test_half_precision_is_added_up_in_single():
    x, i = input_node(spec((5,), float16)), input_node(spec((3,), int64))
    u = input_node(spec((3,), float16))
    graph = legalize(Graph([x, i, u], [ScatterAdd(0)(x, i, u)]))
    (scatter,) = (n for n in graph.body if n.op == "scatter_add")
    assert scatter.dtype is float32
    assert graph.outputs[0].dtype is float16


def test_marks_of_what_is_computed_again_go():
    x = input_node(spec((3,)))
    graph = legalize(Graph([x], [exp(RegionOut()(RegionIn()(x))), Keep()(x)]))
    assert ops(graph) == ["exp"]
    assert graph.outputs[1] is x


@pytest.mark.parametrize("op", [Sort, ArgSort])
def test_rows_are_sorted_along_the_last_axis(op):
    x = input_node(spec(X.shape))
    result = agrees(Graph([x], [op(0)(x)]), X)
    assert ops(result) == ["permute", op.name, "permute"]
    assert result.body[1].attrs["axis"] == 1
    last = Graph([x], [op(1)(x)])
    assert agrees(last, X) is last


def test_rows_that_are_searched_are_in_memory():
    x, v = input_node(spec((4,))), input_node(spec((3,)))
    row = exp(x)
    graph = Graph([x, v], [SearchSorted()(row, v), SearchSorted(True)(row, v)])
    result = agrees(graph, np.arange(4, dtype="f"), np.array([0, 1, 9], "f"))
    assert ops(result).count("store") == 1
    given = Graph([x, v], [SearchSorted()(x, v)])
    assert ops(legalize(given)) == ["searchsorted"]


def test_permutations_of_permutations_that_rules_make_are_one():
    x = input_node(spec(X.shape))
    result = agrees(Graph([x], [Permute((1, 0))(Sort(0)(x))]), X)
    assert ops(result) == ["permute", "sort"]


def test_operands_of_loops_are_in_memory():
    def f(x):
        zero = rg.zeros((3,), dtype="float32")
        return rg.scan(lambda c, r: (c + r * zero, c), zero, x)[1]

    graph = legalize(rg.trace(f, rg.spec((2, 3))))
    (scan,) = (n for n in graph.body if n.op == "scan")
    assert {x.op for x in scan.inputs} == {"store", "input"}
    assert ops(graph).count("store") == len({x for x in scan.inputs if x.op == "store"})


def test_parts_are_taken_where_numpy_has_them():
    x = input_node(spec((2, 9)))
    pool = MaxPool((3,), (2,), (1,), (0,), (0,))
    graph = in_parts(Graph([x], [pool(x), LogSumExp((1,))(x)]))
    assert not {"max_pool", "logsumexp"} & set(ops(graph))
    for plain in (ReduceSum((1,))(x), Sort(0)(x), exp(x) + full(1, x.type)):
        whole = Graph([x], [plain])
        assert in_parts(whole) is whole


def test_a_second_time_there_is_nothing_to_do():
    x = input_node(spec((6, 9)))
    y = Sort(0)(x) + LogSumExp((1,))(MaxPool((2,), (1,), (1,), (0,), (1,))(x)).shape[0] * x
    graph = legalize(Graph([x], [y, Iota((6,), 0, int64)()]))
    assert ops(legalize(graph)) == ops(graph)
