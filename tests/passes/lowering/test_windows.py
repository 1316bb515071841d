"""Sliding windows and pooling, as slices of a frame or as views."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, Op, as_dtype, full, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Permute
from retrograd.ops.windows import Fold, Windows
from retrograd.passes import optimize
from retrograd.passes.lowering.legalize import legalize
from retrograd.passes.lowering.windows import framed, kept, reordered, windows_over
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.passes.agreement import with_gradients
from tests.runtime.agreement import GuardedProgram, assert_same, sample

NAN, INF = float("nan"), float("inf")


POOLS: dict[str, Op] = {
    "tiles": MaxPool((2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
    "tiles with a rest": MaxPool((3, 2), (3, 2), (1, 1), (0, 0), (0, 0)),
    "overlapping": MaxPool((3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    "apart": MaxPool((2, 2), (3, 4), (1, 1), (0, 0), (0, 0)),
    "dilated": MaxPool((2, 2), (1, 3), (2, 2), (1, 0), (0, 1)),
    "large": MaxPool((7, 6), (1, 1), (1, 1), (1, 0), (0, 2)),
}


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", POOLS)
def test_pooling_and_its_gradient(name: str, special: bool) -> None:
    graph = with_gradients(POOLS[name], [spec((2, 3, 11, 17))])
    x, g = (sample(x.shape, x.dtype, k) for k, x in enumerate(graph.inputs))
    x = sample(x.shape, as_dtype("float32"), 3, special)
    assert_same(graph, [x, g], program=GuardedProgram(optimize(graph)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
def test_windows_and_sums_of_windows(dtype: str) -> None:
    x = input_node(spec((3, 14, 9), dtype))
    y = Windows((3, 2), (2, 1), (1, 2))(x)
    graph = Graph([x], [y, Fold((14, 9), (2, 1), (1, 2))(y), Fold((18, 8), (3, 1), (1, 1))(y)])
    assert_same(graph, [sample(x.shape, x.dtype)])


def lowered_values(op, x):
    """The ops that a lowered node is made of, and its value."""
    node = input_node(spec(x.shape, x.dtype.name))
    graph = legalize(Graph([node], [op(node)]))
    return [n.op for n in graph.body], ReferenceProgram(graph)([x])[0]


def pooled(x, size, stride, low):
    """By brute force: what is around is less than all, NaN is more than all; the first counts."""
    size, stride, low = (np.array(v) for v in (size, stride, low))
    outs = (np.array(x.shape) + 2 * low - size) // stride + 1
    values, places = np.zeros(outs, x.dtype), np.zeros(outs, int)
    for o in itertools.product(*map(range, outs)):
        found = []
        for k, at in enumerate(itertools.product(*map(range, size))):
            i = np.array(o) * stride + at - low
            if (i >= 0).all() and (i < x.shape).all():
                v = x[tuple(i)]
                found.append((bool(np.isnan(v)), 0 if np.isnan(v) else v, -k))
        best = max(found)
        values[o], places[o] = NAN if best[0] else best[1], -best[2]
    return values, places


@pytest.mark.parametrize(
    ("size", "low"), [((2, 3), (0, 1)), ((7, 6), (3, 2))], ids=["unrolled", "searched"]
)
def test_maxima_and_their_places(size, low):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, (8, 9)).astype(np.float32)
    x[2, 2], x[5, :] = NAN, -INF
    arguments = size, (2, 1), (1, 1), low, low
    values, places = pooled(x, size, (2, 1), low)
    ops, found = lowered_values(MaxPool(*arguments), x)
    np.testing.assert_array_equal(found, values)
    assert ("windows" in ops) is (size == (7, 6))
    assert "max_pool" not in ops
    ops, found = lowered_values(MaxPoolIndex(*arguments), x)
    np.testing.assert_array_equal(found, places)
    assert "max_pool_index" not in ops


@pytest.mark.parametrize("size", [3, 40])
def test_small_sums_of_windows_need_no_windows(size):
    x = np.random.default_rng(0).normal(size=(2, 50))
    op = lambda n: ReduceSum((2,))(Windows((size,), (2,), (1,))(n))
    ops, found = lowered_values(op, x)
    slides = np.lib.stride_tricks.sliding_window_view(x, size, 1)[:, ::2]
    np.testing.assert_allclose(found, slides.sum(-1), rtol=1e-12)
    assert ("reduce_sum" in ops) is (size == 40)


def test_windows_that_are_the_axes_themselves_are_a_reshape():
    x = input_node(spec((4, 6)))
    assert windows_over(x, (1,), (1,), (1,)).op == "reshape"
    assert windows_over(x, (6,), (3,), (1,)).op == "reshape"
    assert windows_over(x, (6,), (1,), (1,)).shape == (4, 1, 6)
    assert windows_over(x, (2,), (2,), (1,)).op == "windows"
    assert windows_over(x, (1,), (2,), (1,)).op == "windows"


@pytest.mark.parametrize(
    ("low", "high", "gap", "expected"),
    [
        (0, 0, 1, [1, 2, 3]),
        (2, 1, 1, [9, 9, 1, 2, 3, 9]),
        (0, 0, 3, [1, 9, 9, 2, 9, 9, 3]),
        (-1, 1, 1, [2, 3, 9]),
        (-1, -1, 2, [9, 2, 9]),
    ],
)
def test_frames(low, high, gap, expected):
    x = input_node(spec((2, 3)))
    y = framed(x, (low,), (high,), (gap,), 9)
    assert (y is x) is (expected == [1, 2, 3])
    (found,) = ReferenceProgram(Graph([x], [y]))([np.array([[1, 2, 3]] * 2, np.float32)])
    assert found.tolist() == [expected] * 2
    assert y.shape == found.shape


def test_a_value_is_stored_once_for_all_that_ask_and_permutations_stay_views():
    x = input_node(spec((2, 3)))
    known: dict[Any, Node] = {}
    y = x + full(1, x.type)
    first = kept(y, known)
    assert first.op == "store"
    assert kept(y, known) is first
    turned = kept(Permute((1, 0))(y), known)
    assert (turned.op, turned.inputs) == ("permute", (first,))
    assert kept(x, known) is x
    assert kept(first, known) is first
    assert reordered(Permute((1, 0))(x), (1, 0)) is x


def test_sizes_with_names_are_typed_in_terms_of_them():
    n = Dim("N")
    x = input_node(spec((n, 8)))
    graph = legalize(Graph([x], [MaxPool((2,), (2,), (1,), (0,), (0,))(x)]))
    assert graph.outputs[0].shape == (n, 4)
