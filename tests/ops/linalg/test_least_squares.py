"""Least squares of any rank against NumPy, both ways, and by the limit of what counts as zero."""

import numpy as np
import pytest

from retrograd.errors import LinAlgError, ShapeError
from retrograd.ir import TensorType, float64
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg.least_squares import LeastFactors, LeastSquares
from retrograd.verify.rule_checks import check_result
from tests.ops.linalg.matrices import general


def solved(x, b, limit=1e-12, adjoint=False):
    f = check_result(LeastFactors(), [x, np.full((1, 1), limit, x.dtype)])
    return check_result(LeastSquares(adjoint), [x, f, b])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("rank", [0, 2, 4])
def test_by_the_pseudo_inverse(rank, dtype):
    x = general(6, 4, dtype)
    x[:, rank:] = x[:, :1] if rank else 0
    inverse = np.linalg.pinv(x, 1e-12)
    b, c = general(6, 3, dtype), general(4, 3, dtype)
    np.testing.assert_allclose(solved(x, b), inverse @ b, atol=1e-12)
    np.testing.assert_allclose(solved(x, c, adjoint=True), inverse.conj().T @ c, atol=1e-12)


def test_what_counts_as_zero_is_a_limit():
    x, b = np.diag([1.0, 0.1]), np.ones((2, 1))
    np.testing.assert_allclose(solved(x, b, 0.05), [[1], [10]])
    np.testing.assert_allclose(solved(x, b, 0.2), [[1], [0]], atol=1e-15)


def test_factors_are_those_of_householder():
    """R up to the diagonal, or, where values count as zero, NaN behind the pseudo-inverse."""
    x = general(5, 3, "float64")
    f = check_result(LeastFactors(), [x, np.full((1, 1), 1e-12)])
    np.testing.assert_allclose(np.abs(np.triu(f[:, :3].T)), np.abs(np.linalg.qr(x)[1]), atol=1e-13)
    x[:, 2] = 0
    f = check_result(LeastFactors(), [x, np.full((1, 1), 1e-12)])
    assert np.isnan(f[:, -1]).all()
    np.testing.assert_allclose(f[:, :-1], np.linalg.pinv(x), atol=1e-13)


def test_what_is_refused():
    with pytest.raises(LinAlgError, match="NaN or infinities"):
        solved(np.full((2, 2), np.inf), np.ones((2, 1)))
    x, limit, b = (input_node(TensorType(float64, s)) for s in ((3, 2), (1, 1), (2, 1)))
    with pytest.raises(ShapeError, match="one number for each matrix"):
        LeastFactors()(x, x)
    with pytest.raises(ShapeError, match="as many rows as"):
        LeastSquares()(x, LeastFactors()(x, limit), b)
    with pytest.raises(ShapeError, match=r"the factors of .* are 2 x 4"):
        LeastSquares()(x, x, b)
    with pytest.raises(ShapeError, match="at least as many rows as columns"):
        LeastFactors()(input_node(TensorType(float64, (2, 3))), limit)
