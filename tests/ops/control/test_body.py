"""Graphs inside of operations: names, counts, types, and errors that say where."""

from typing import Any

import numpy as np
import pytest

from retrograd.errors import LinAlgError, ShapeError
from retrograd.ir import Graph, TensorType, complex128, float64, full, int64
from retrograd.ops.control import Scan
from retrograd.ops.control import body as b
from retrograd.ops.elementwise import cast, sin
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import Cholesky
from retrograd.verify.rule_checks import run

T = TensorType(float64, ())


def test_names_of_their_own_or_none():
    x, y, z = (input_node(T, name) for name in ("a", "a", ""))
    graph = b.closed([x, y, z], [x - y], "f")
    assert [n.name for n in graph.inputs] == ["a", "", ""]
    assert b.run(graph, [np.array(5.0), np.array(3.0), np.array(0.0)]) == [2]
    own, outputs = b.fresh(graph)
    assert not {*own} & {*graph.inputs}
    assert run(Graph(own, outputs), [np.array(5.0), np.array(3.0), np.array(0.0)]) == [2]


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        ({"carries": -1}, "carries is a number that is not negative, not -1"),
        ({"carries": True}, "not True"),
        ({"carries": 2, "scanned": 2}, "has 3 inputs, and counts 2 carries and 2 scanned"),
    ],
)
def test_counts_of_inputs(counts, match):
    op = Scan(Graph([], []), 0, 0, 1)
    b.need_counts(op, 3, carries=1, scanned=2, length=7)
    with pytest.raises(ShapeError, match=match):
        b.need_counts(op, 3, **counts)
    with pytest.raises(ShapeError, match=r"scan: the carries should be f64\[\], not none"):
        b.need(op, "the carries", [], [T])


def test_an_error_inside_says_which_operation_it_was():
    x = input_node(TensorType(float64, (1, 1)))
    graph = Graph([x], [Cholesky()(x)])
    with pytest.raises(LinAlgError, match=r"not positive definite.*: cholesky\(upper=False\)\(f64"):
        b.run(graph, [np.array([[-1.0]])])


def test_only_what_is_inexact_has_derivatives():
    x, i = input_node(T), input_node(TensorType(int64, ()))
    outputs = [i + i, sin(x) * cast(i, float64)]
    found = b.pulled(outputs, [None, full(1, T)], [i, x], {x, i})
    assert [g is None for g in found] == [True, False]
    moved = b.pushed(outputs, [x], [full(1, T)], {x, i})
    assert [t is None for t in moved] == [True, False]
    assert not b.is_within_body()
    assert b.inexact([x, i, x]) == [0, 2]
    assert b.pushed(outputs, [], [], set()) == [None, None]


def test_cotangents_are_those_of_rules():
    """Of `z^2`, `2 z g`, without conjugates."""
    z = input_node(TensorType(complex128, ()))
    g: Any
    (g,) = b.pulled([z * z], [full(1, z.type)], [z], {z})
    assert run(Graph([z], [g]), [np.array(1 + 2j)]) == [2 + 4j]


def test_stacks_of_some_inputs():
    x, y = input_node(T), input_node(T)
    own, ((product, wide), (square, same)) = b.stacked([x * y, y * y], [x, y], [True, False], 3)
    assert (own[0].shape, own[1] is y, wide, same) == ((3,), True, True, False)
    assert (product.shape, b.wide(square, same, 3).shape) == ((3,), (3,))
    assert b.wide(product, wide, 3) is product
