"""Batching on graphs."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.autodiff import batch, batched, gradient
from retrograd.errors import ShapeError
from retrograd.ir import (
    Dim,
    Graph,
    Provenance,
    TensorType,
    float64,
    full,
    made_by,
    verify,
)
from retrograd.ops.elementwise import exp, sin
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.rule_checks import run

VECTOR = TensorType(float64, (3,))


def test_inputs_that_are_not_stacked_are_shared() -> None:
    x, w = input_node(VECTOR, "x"), input_node(VECTOR, "w")
    many = batch(Graph([x, w], [x * w, sin(w)]), [True, False], 5)
    verify(many)
    assert [v.type.shape for v in many.inputs] == [(5, 3), (3,)]
    assert [v.name for v in many.inputs] == ["x", "w"]
    assert [v.type.shape for v in many.outputs] == [(5, 3), (5, 3)]
    xs, w_value = np.arange(15.0).reshape(5, 3), np.array([1.0, 2.0, 3.0])
    product, sine = run(many, [xs, w_value])
    np.testing.assert_array_equal(product, xs * w_value)
    np.testing.assert_array_equal(sine, np.tile(np.sin(w_value), (5, 1)))


def test_what_depends_on_no_sample_is_computed_once() -> None:
    x, w = input_node(VECTOR), input_node(VECTOR)
    stack = input_node(VECTOR.with_shape((5, 3)))
    inner = exp(w)
    (y, is_stack), (z, other) = batched([x * inner, inner], {x: stack}, 5)
    assert (is_stack, other, z) == (True, False, inner)
    assert y.shape == (5, 3)


def test_a_symbolic_number_of_samples() -> None:
    x = input_node(TensorType(float64, (2, 3)), "x")
    w = input_node(TensorType(float64, (3, 3)), "w")
    y = ReduceSum((0, 1))(exp(matmul(x, w)))
    many = batch(gradient(Graph([x, w], [y])), [True, False], Dim("B"))
    verify(many)
    xs, w_value = np.linspace(-1, 1, 24).reshape(4, 2, 3), np.eye(3) * 0.5
    _, weights = run(many, [xs, w_value], {"B": 4})
    one = gradient(Graph([x, w], [y]))
    for k in range(4):
        np.testing.assert_allclose(weights[k], run(one, [xs[k], w_value])[1], rtol=1e-13)


def test_provenance_is_kept() -> None:
    x = input_node(VECTOR, "x")
    with made_by(Provenance("layer", None, x)):
        y = sin(x)
    (z,) = batch(Graph([x], [y]), [True], 2).outputs
    assert (z.scope, z.origin) == ("layer", x)


def test_a_stack_of_another_size_is_refused() -> None:
    x = input_node(VECTOR)
    stack = input_node(VECTOR.with_shape((4, 3)))
    with pytest.raises(ShapeError, match=r"f64\[4, 3\] is not a stack of 5 samples"):
        batched([sin(x)], {x: stack}, 5)


def test_the_number_of_flags_must_fit() -> None:
    x = input_node(VECTOR)
    with pytest.raises(ValueError, match="zip"):
        batch(Graph([x], [sin(x)]), [True, False], 2)


def test_per_sample_gradients() -> None:
    """One gradient for each row of a design matrix, in one graph."""
    w, x = input_node(VECTOR, "w"), input_node(VECTOR, "x")
    loss = ReduceSum((0,))(w * x)
    per_sample = batch(gradient(Graph([w, x], [loss * loss]), wrt=[w]), [False, True], 4)
    rows, weights = np.arange(12.0).reshape(4, 3), np.ones(3)
    (found,) = run(per_sample, [weights, rows])
    np.testing.assert_allclose(found, 2 * rows.sum(1, keepdims=True) * rows)
    assert full(0, VECTOR).shape == (3,)
