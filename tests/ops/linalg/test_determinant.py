"""Cofactors by minors, also of singular matrices, and what derivatives of determinants are."""

import numpy as np
import pytest

from retrograd.errors import LinAlgError, ShapeError
from retrograd.ir import TensorType, float64
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg.determinant import Cofactor, CofactorSlope, Det, LogAbsDet
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import vector_gradient
from tests.ops.linalg.matrices import general


def minors(x):
    """The derivative of the determinant by each element, by its definition."""
    n = len(x)
    y = np.empty_like(x)
    for i, j in np.ndindex(n, n):
        y[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
    return y


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("rank", [0, 2, 3, 4])
def test_cofactors_are_minors_whatever_the_rank(rank, dtype):
    x = general(4, 4, dtype)
    x[:, rank:] = x[:, :1] if rank else 0
    np.testing.assert_allclose(check_result(Cofactor(), [x]), minors(x), atol=1e-12)
    t, h = general(5, 5, dtype)[:4, :4], 1e-5
    slope = (minors(x + h * t) - minors(x - h * t)) / (2 * h)
    np.testing.assert_allclose(check_result(CofactorSlope(), [x, t]), slope, atol=1e-7)


def test_the_gradient_of_a_determinant_that_is_zero():
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    _, g, none = vector_gradient(lambda x, d: Det()(x, d), x, np.array(0.0))
    np.testing.assert_allclose(g, [[4, -2], [-2, 1]], atol=1e-14)
    assert none == 0  # how the value was computed does not matter


def test_the_gradient_of_its_logarithm_is_the_inverse():
    x = general(3, 3, "float64")
    _, g, _ = vector_gradient(lambda x, d: LogAbsDet()(x, d), x, np.array(7.0))
    np.testing.assert_allclose(g, np.linalg.inv(x).T, rtol=1e-12)
    with pytest.raises(LinAlgError, match="singular"):
        vector_gradient(lambda x, d: LogAbsDet()(x, d), np.zeros((2, 2)), np.array(0.0))


def test_edges():
    assert np.isnan(check_result(Cofactor(), [np.array([[np.inf, 0], [0, 1]])])).all()
    assert check_result(Cofactor(), [np.array([[5.0]])]) == 1
    assert check_result(Cofactor(), [np.zeros((0, 2, 2))]).shape == (0, 2, 2)
    x, d = (input_node(TensorType(float64, s)) for s in ((2, 2), (2,)))
    with pytest.raises(ShapeError, match="a number for each matrix"):
        Det()(x, d)
