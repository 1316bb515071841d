"""Triangular systems large enough to be cut into halves."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.linalg.triangular import TriangularSolve
from tests.ops.linalg.matrices import general


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
