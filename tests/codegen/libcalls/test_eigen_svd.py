"""Eigenvalues and singular values: products of what was found, and infinite matrices."""

import numpy as np
import pytest

import retrograd as rg
from tests.codegen.libcalls.arrays import N, close, compiled, drawn, turned

DTYPES = ("float64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sample(1)
def test_symmetric_and_general_matrices(dtype: str) -> None:
    def all_of(x):
        s = x + rg.conj(x.mT)
        return *rg.linalg.eigh(s), rg.linalg.eigvalsh(s), *rg.linalg.eig(x), rg.linalg.eigvals(x)

    program = compiled(all_of, dtype, (N, N))
    for n in (1, 2, 7, 30):
        x = drawn(dtype, n, n)
        s = x + turned(x)
        w, v, alone, values, vectors, only = program(x)
        close(s @ v, v * w, dtype)
        close(turned(v) @ v, np.eye(n), dtype)
        assert (np.diff(w) >= 0).all()
        close(alone, np.linalg.eigvalsh(s), dtype)
        close(x @ vectors, vectors * values, dtype, 1000)
        close(np.sort_complex(only), np.sort_complex(np.linalg.eigvals(x)), dtype, 1000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sample(1)
def test_singular_values_of_any_shape(dtype: str) -> None:
    def all_of(x):
        return *rg.linalg.svd(x, full_matrices=False), rg.linalg.svdvals(x)

    for m, n in ((6, 3), (3, 6), (0, 2)):
        x = drawn(dtype, m, n)
        u, s, vh, only = compiled(all_of, dtype, (m, n))(x)
        close((u * s) @ vh, x, dtype)
        close(turned(u) @ u, np.eye(min(m, n)), dtype)
        close(only, np.linalg.svd(x, compute_uv=False), dtype)
        u, s, vh = compiled(rg.linalg.svd, dtype, (m, n))(x)
        assert (u.shape, vh.shape) == ((m, m), (n, n))
        close(vh @ turned(vh), np.eye(n), dtype)


def test_a_matrix_that_is_not_finite_is_refused() -> None:
    """LAPACK would iterate for ever, or give numbers."""
    for f in (rg.linalg.eigh, rg.linalg.eigvals, rg.linalg.svdvals):
        program = compiled(f, "float64", (3, N, N))
        for bad in (np.inf, np.nan):
            x = np.stack([np.eye(4)] * 3)
            x[1, 0, 0] = bad
            with pytest.raises(rg.errors.LinAlgError, match=r"\[1\]"):
                program(x)
