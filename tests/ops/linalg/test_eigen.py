"""Eigenvalues of hermitian matrices, and derivatives where some are equal."""

import numpy as np
import pytest

from retrograd.errors import LinAlgError
from retrograd.ir import Graph
from retrograd.ops.leaf import constant
from retrograd.ops.linalg.eigen import Eigh, Eigvalsh, eigen_sum, turned
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


def test_what_is_not_finite_is_refused():
    with pytest.raises(LinAlgError, match="eigh of the matrix: it holds NaN"):
        check_result(Eigh(), [np.full((2, 2), np.nan)])
