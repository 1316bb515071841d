"""Eigenvalues of hermitian matrices, and derivatives where some are equal."""

from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import pullback, pushforward
from retrograd.errors import LinAlgError
from retrograd.ir import Graph, TensorType, float64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.linalg.eigen import (
    Eigh,
    Eigvalsh,
    Turn,
    eigen_sum,
    first_row_only,
    turned,
    unpacked,
)
from retrograd.ops.shape import Pad
from retrograd.verify.rule_checks import check_result, placeholders, run
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


def value(f, *arrays):
    inputs = placeholders(arrays)
    return run(Graph(inputs, [f(*inputs)]), arrays)[0]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_of_the_hermitian_part(dtype):
    x = general(4, 4, dtype)
    h = (x + x.conj().T) / 2
    y = check_result(Eigh(), [x])
    w, v = y[0].real, y[1:].T
    np.testing.assert_allclose((v * w) @ v.conj().T, h, atol=1e-13)
    np.testing.assert_allclose(v.conj().T @ v, np.eye(4), atol=1e-13)
    assert (np.diff(w) > 0).all()
    np.testing.assert_allclose(check_result(Eigvalsh(), [x]), w, rtol=1e-13)


def test_gradients_of_values_that_are_equal():
    """Of functions symmetric in them: the sum of all, 1, and the sum of squares, 2 x."""
    x = np.diag([1.0, 1.0, 3.0])
    _, g = vector_gradient(lambda x: total(Eigvalsh()(x)), x)
    np.testing.assert_allclose(g, np.eye(3), atol=1e-15)
    _, g = vector_gradient(lambda x: total(Eigvalsh()(x) * Eigvalsh()(x)), x)
    np.testing.assert_allclose(g, 2 * x, atol=1e-14)


def test_vectors_of_equal_values_have_no_derivative():
    x = np.diag([1.0, 1.0, 3.0])
    weights = np.zeros((4, 3))
    weights[1] = [0.3, 0.7, 0.2]  # of the first vector
    _, g = vector_gradient(lambda x: total(Eigh()(x) * constant(weights)), x)
    assert np.isnan(g).any()
    weights[1], weights[3] = 0, [0.3, 0.7, 0.2]  # of the one whose value is alone
    _, g = vector_gradient(lambda x: total(Eigh()(x) * constant(weights)), x)
    np.testing.assert_allclose(g, [[0, 0, 0.075], [0, 0, 0.175], [0.075, 0.175, 0]], atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_equal_values_part_along_a_tangent(dtype):
    """Forwards, to the side that the tangent points to: the eigenvalues of its block."""
    x = np.diag([1.0, 1.0, 3.0, 3.0, 3.0]).astype(dtype)
    t = general(5, 5, dtype)
    (slopes,) = along(Eigvalsh(), x, t)
    h = (t + t.conj().T) / 2
    expected = [*np.linalg.eigvalsh(h[:2, :2]), *np.linalg.eigvalsh(h[2:, 2:])]
    np.testing.assert_allclose(slopes, expected, atol=1e-13)
    step = 1e-6
    moved = np.linalg.eigvalsh(x + step * h)
    np.testing.assert_allclose((moved - np.diag(x).real) / step, slopes, atol=1e-4)


@pytest.mark.parametrize(
    ("slopes", "are_exchanged"), [([1, 2, 0], False), ([2, 1, 0], True), ([1, 1, 5], False)]
)
def test_vectors_that_a_tangent_exchanges_have_none(slopes, are_exchanged):
    """Of equal values; where their order stays the vectors do, as do those of values apart."""
    x = np.diag([1.0, 1.0, 3.0])
    (found,) = along(Eigh(), x, np.diag(np.array(slopes, float)))
    np.testing.assert_array_equal(found[0], sorted(slopes[:2]) + slopes[2:])
    assert np.isnan(found[1:3]).any() is np.bool_(are_exchanged)
    np.testing.assert_array_equal(found[3], [0, 0, 0])


def along(op, x, t):
    """The tangent of an op of one matrix."""
    (node,) = placeholders([x])
    (tangent,) = pushforward([op(node)], [node], [constant(t)])
    assert tangent is not None
    return run(Graph([node], [tangent]), [x])


def test_what_asks_for_values_alone_is_known():
    x, none = constant(np.ones((2, 1, 3))), constant(np.zeros(()))

    def only(low=(0, 0, 0), high=(0, 3, 0), inside=(0, 0, 0), x=x, fill=none):
        return first_row_only(Pad(low, high, inside)(x, fill))

    assert only()
    assert not first_row_only(x)
    assert not only(fill=constant(np.ones(())))
    assert not only(fill=input_node(TensorType(float64, ())))
    assert not only((0, 1, 0), (0, 2, 0))
    assert not only(high=(0, 2, 0), x=constant(np.ones((2, 2, 3))))
    assert not only(high=(0, 1, 0), x=constant(np.ones((2, 2, 3))), inside=(0, 1, 0))
    y = Eigh()(constant(np.eye(3)))
    (g,) = pullback([unpacked(y)[0]], [constant(np.ones(3))], [y])
    assert g is not None
    assert first_row_only(g)


def test_turns_of_equal_values_have_no_derivative_where_one_is_asked_for():
    w, m = np.array([1.0, 1.0, 5.0]), np.diag([1.0, 2.0, 3.0])
    for weights, is_nan in ((np.zeros((3, 3)), False), (np.eye(3)[[1, 0, 2]], True),
                            (np.eye(3), False), (np.eye(3)[[2, 1, 0]], False)):  # fmt: skip
        _, _, g, _ = vector_gradient(
            lambda w, m, z, c=weights: total(Turn()(w, m, z) * constant(c)), w, m, np.eye(3)
        )
        assert np.isnan(g).any() is np.bool_(is_nan)
        assert is_nan or not g.any()


def test_a_sum_over_eigenvectors():
    x, g = general(3, 3, "float64"), np.array([1.0, -2.0, 0.5])
    _, v = np.linalg.eigh((x + x.T) / 2)
    np.testing.assert_allclose(value(eigen_sum, x, g), (v * g) @ v.T, atol=1e-13)
    same = value(eigen_sum, np.eye(2), np.array([2.0, 2.0]))
    np.testing.assert_allclose(same, 2 * np.eye(2), atol=1e-15)


def test_vectors_of_equal_values_are_turned_together_only():
    w, m = np.array([1.0, 1.0, 5.0]), np.array([[0.0, 2.0, 7.0], [2.0, 0.0, 7.0], [7.0, 7.0, 1.0]])
    z = value(turned, w, m)
    np.testing.assert_allclose(z.T @ z, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(z[2], [0, 0, 1], atol=1e-14)
    np.testing.assert_allclose((z.T @ m @ z)[:2, :2], np.diag([-2.0, 2.0]), atol=1e-13)


def test_a_sum_over_eigenvectors_of_equal_values_moves_with_the_matrix():
    """As little as equal numbers for equal values: as x itself, but for the values."""
    x, g = input_node(TensorType(float64, (3, 3))), input_node(TensorType(float64, (3,)))
    t = general(3, 3, "float64")
    moved: Any
    (moved,) = pushforward([eigen_sum(x, g)], [x], [constant(t)], {x, g})
    arrays = [np.eye(3) * 2, np.full(3, 5.0)]
    (found,) = run(Graph([x, g], [moved]), arrays)
    np.testing.assert_allclose(found, np.zeros((3, 3)), atol=1e-14)
    values = np.array([2.0, 2.0, 5.0])
    (found,) = run(Graph([x, g], [moved]), [np.diag(values), values])
    expected = (t + t.T) / 2 * (values != values[:, None])
    np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("asked", [False, True])
def test_equal_values_that_move_while_a_vector_is_asked_for(asked):
    """Another vector is; of one of those that belong to equal values there is no derivative."""
    x = input_node(TensorType(float64, (3, 3)))
    w, v = unpacked(Eigh()(x))
    weights = np.zeros((3, 3))
    weights[:, 0 if asked else 2] = [0.3, 0.5, 0.7]
    y = total(w * w * w) + total(v * constant(weights))
    g: Any
    (g,) = pullback([y], [constant(np.array(1.0))], [x])
    (found,) = run(Graph([x], [g]), [np.diag([1.0, 1.0, 3.0])])
    assert np.isnan(found).any() == asked


def test_what_is_not_finite_is_refused():
    with pytest.raises(LinAlgError, match="eigh of the matrix: it holds NaN"):
        check_result(Eigh(), [np.full((2, 2), np.nan)])
