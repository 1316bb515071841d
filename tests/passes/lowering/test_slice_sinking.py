"""Nodes at one place along some axes: picked from below, or sliced where nothing else is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Graph, Node, bool_, full, int64, spec
from retrograd.ops import elementwise as e
from retrograd.ops.leaf import Iota, constant, input_node
from retrograd.ops.shape import Expand, Permute, Reshape, expand
from retrograd.passes.lowering.slice_sinking import DEPTH, sink_slice
from retrograd.runtime.executors.reference import ReferenceProgram

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def same(x):
    return x


# What is picked from, of x of the shape (2, 3, 4); the axes; whether x is read only in part
CASES: dict[str, tuple[Callable[[Node], Node], tuple[int, ...], bool]] = {
    "an input": (same, (1,), True),
    "a permutation": (Permute((2, 0, 1)), (0, 2), True),
    "a new axis": (Expand((5, 2, 3, 4), (0,)), (0, 2), True),
    "a new axis alone": (Expand((5, 2, 3, 4), (0,)), (0,), False),
    "a choice": (lambda x: e.select(e.eq(x, x), x, full(0, x.type)), (0, 1), True),
    "an axis that was split": (lambda x: Reshape((2, 3, 2, 2))(x), (2, 3), True),
    "axes that were joined": (lambda x: Reshape((6, 4))(x), (0,), True),
    "axes split otherwise": (lambda x: Reshape((2, 3, 2, 2))(x), (2,), True),
    "an op without a rule": (lambda x: e.exp(x), (2,), True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_elements_at_a_place(name):
    f, axes, sliced = CASES[name]
    x = input_node(spec(X.shape), "x")
    y = f(x)
    place = tuple(min(1, int(y.shape[a]) - 1) for a in axes)
    picked = sink_slice(y, axes, place, {})
    whole, found = ReferenceProgram(Graph([x], [y, picked]))([X])
    index: list[Any] = [slice(None)] * whole.ndim
    for a, i in zip(axes, place, strict=True):
        index[a] = i
    np.testing.assert_array_equal(found, whole[tuple(index)])
    assert picked.shape == found.shape
    body = Graph([x], [picked]).body
    assert any(n.op == "slice" for n in body) is sliced


def test_leaves_are_made_at_the_place():
    splat = sink_slice(full(3, spec((2, 3))), (0,), (1,), {})
    assert (splat.op, splat.shape) == ("constant", (3,))
    count = Iota((2, 3, 4), 1, int64)()
    (at,) = ReferenceProgram(Graph([], [sink_slice(count, (1,), (2,), {})]))([])
    np.testing.assert_array_equal(at, np.full((2, 4), 2))
    rest = sink_slice(count, (0,), (1,), {})
    assert (rest.op, rest.shape, rest.attrs["axis"]) == ("iota", (3, 4), 0)
    table = sink_slice(constant(X), (0,), (1,), {})
    np.testing.assert_array_equal(ReferenceProgram(Graph([], [table]))([])[0], X[1])


@pytest.mark.parametrize("depth", [DEPTH - 1, DEPTH + 1])
def test_few_nodes_are_looked_through(depth):
    """What is below is stored, once for all places."""
    x, c = input_node(spec((3, 4))), input_node(spec((3, 4), bool_))
    y = e.exp(x)
    for _ in range(depth):
        y = e.select(c, y, y)
    known: dict[Any, Node] = {}
    body = Graph([x, c], [sink_slice(y, (0,), (i,), known) for i in range(3)]).body
    (store,) = (n for n in body if n.op == "store")
    assert store.inputs[0].op == ("exp" if depth < DEPTH else "select")
    assert any(n.op == "select" and n.shape == (3, 4) for n in body) is (depth > DEPTH)


def test_an_expanded_number_needs_no_slice():
    x = input_node(spec(()), "x")
    y = sink_slice(expand(x, (3, 4), (0, 1)), (0,), (2,), {})
    assert [n.op for n in Graph([x], [y]).body] == ["expand"]
