"""Cholesky: the reference factorisation of a matrix large enough to be cut into halves."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.errors import LinAlgError
from retrograd.ops.linalg.cholesky import Cholesky
from tests.ops.linalg.matrices import general


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky(dtype):
    x = general(70, 70, dtype)
    s = x @ x.conj().T + np.eye(70)
    np.testing.assert_allclose(Cholesky().reference(s), np.linalg.cholesky(s), atol=1e-12)
    s[60, 60] = -1
    with pytest.raises(LinAlgError, match="minor of order 61 "):
        Cholesky().reference(s)
