"""Singular values and vectors: what is packed, and derivatives of equal values and zeros."""

import numpy as np
import pytest

from retrograd.autodiff import pushforward
from retrograd.errors import LinAlgError
from retrograd.ir import Graph
from retrograd.ops.leaf import constant
from retrograd.ops.linalg.svd import SVD, Svdvals, packed, singular_sum, unpacked
from retrograd.verify.rule_checks import check_result, placeholders, run
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


def value(f, *arrays):
    inputs = placeholders(arrays)
    return run(Graph(inputs, [f(*inputs)]), arrays)[0]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("m", "n"), [(4, 3), (2, 5), (3, 0)])
def test_factors(m, n, dtype):
    x = general(m, n, dtype)
    y = check_result(SVD(), [x])
    s, u, v = y[0].real, y[1 : m + 1], y[m + 1 :]
    np.testing.assert_allclose((u * s) @ v.conj().T, x, atol=1e-13)
    assert (np.diff(s) <= 0).all()
    np.testing.assert_allclose(check_result(Svdvals(), [x]), s, atol=1e-14)
    np.testing.assert_array_equal(value(lambda y: packed(*unpacked(y, m)), y), y)
    if n:
        first = np.argmax(np.abs(u) >= 0.6 * np.abs(u).max(axis=0), axis=0)
        chosen = u[first, range(len(s))]
        np.testing.assert_allclose(chosen, np.abs(chosen), atol=1e-15)


def test_gradients_of_values_that_are_equal_and_of_zeros():
    """The sum of squares has the gradient 2 x whatever they are."""
    for x in (np.eye(3, 2), np.diag([2.0, 0.0]), np.zeros((2, 2))):
        _, g = vector_gradient(lambda x: total(Svdvals()(x) * Svdvals()(x)), x)
        np.testing.assert_allclose(g, 2 * x, atol=1e-14)


def test_vectors_of_equal_values_have_no_derivative():
    weights = np.zeros((6, 2))
    weights[1] = [1.0, 2.0]
    _, g = vector_gradient(lambda x: total(SVD()(x) * constant(weights)), np.eye(3, 2))
    assert np.isnan(g).any()
    weights = np.zeros((6, 2))
    weights[0] = [1.0, 1.0]  # nothing is asked of them
    _, g = vector_gradient(lambda x: total(SVD()(x) * constant(weights)), np.eye(3, 2))
    np.testing.assert_allclose(g, np.eye(3, 2), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_equal_values_part_along_a_tangent(dtype):
    """Forwards, to the side that the tangent points to."""
    x, t = np.diag([3.0, 3.0, 1.0, 1.0, 1.0]).astype(dtype), general(5, 5, dtype)
    (node,) = placeholders([x])
    (tangent,) = pushforward([Svdvals()(node)], [node], [constant(t)])
    assert tangent is not None
    (slopes,) = run(Graph([node], [tangent]), [x])
    h = (t + t.conj().T) / 2
    expected = [np.linalg.eigvalsh(h[k])[::-1] for k in (np.s_[:2, :2], np.s_[2:, 2:])]
    np.testing.assert_allclose(slopes, np.concatenate(expected), atol=1e-13)
    moved = np.linalg.svd(x + 1e-6 * t, compute_uv=False)
    np.testing.assert_allclose((moved - np.diag(x).real) / 1e-6, slopes, atol=1e-4)


def test_a_sum_over_singular_vectors():
    x, g = general(3, 4, "float64"), np.array([1.0, -2.0, 0.5])
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(value(singular_sum, x, g), (u * g) @ vh, atol=1e-13)


def test_what_is_not_finite_is_refused():
    with pytest.raises(LinAlgError, match=r"svd of the matrix \[1\]: it holds NaN"):
        check_result(SVD(), [np.array([np.eye(2), np.full((2, 2), np.nan)])])
