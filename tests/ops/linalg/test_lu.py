"""LU: the reference factorisation of matrices large enough to be cut into halves."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.linalg.lu import LU
from tests.ops.linalg.matrices import general


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
