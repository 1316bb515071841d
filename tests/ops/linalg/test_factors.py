"""Reference factorisations of matrices large enough to be cut into halves."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.errors import LinAlgError
from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.ops.linalg.lu import LU
from retrograd.ops.linalg.triangular import TriangularSolve


def general(m, n, dtype):
    r = np.random.default_rng(m + n)
    x = r.standard_normal((m, n))
    return x + 1j * r.standard_normal((m, n)) if dtype == "complex128" else x


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("m", "n"), [(17, 17), (40, 33), (130, 1), (100, 100)])
def test_lu(m, n, dtype):
    linalg = pytest.importorskip("scipy.linalg")
    for rank in (n, n // 2):
        x = general(m, n, dtype)
        x[:, rank:] = 0
        y = LU().reference(x)
        left, right = np.tril(y[:n].T, -1) + np.eye(m, n), np.triu(y[:n].T[:n])
        order, exchanges = y[n:].real.astype(int)
        np.testing.assert_allclose(left @ right, x[order], atol=1e-12)
        factors, pivots = linalg.lu_factor(x[:, :rank]) if rank else (x[:, :0], [])
        np.testing.assert_array_equal(exchanges[:rank], pivots[:rank])
        np.testing.assert_allclose(y[:rank].T, factors, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky(dtype):
    x = general(70, 70, dtype)
    s = x @ x.conj().T + np.eye(70)
    np.testing.assert_allclose(Cholesky().reference(s), np.linalg.cholesky(s), atol=1e-12)
    s[60, 60] = -1
    with pytest.raises(LinAlgError, match="minor of order 61 "):
        Cholesky().reference(s)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve(upper, transpose, unit, dtype):
    a, b = general(50, 50, dtype) / 50 + np.eye(50), general(50, 3, dtype)
    y = TriangularSolve(upper, transpose, unit).reference(a, b)
    half = np.triu(a) if upper else np.tril(a)
    if unit:
        np.fill_diagonal(half, 1)
    np.testing.assert_allclose((half.T if transpose else half) @ y, b, atol=1e-10)
