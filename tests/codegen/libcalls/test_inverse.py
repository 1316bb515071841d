"""Inverses: by substitution of small matrices, by halves of large ones."""

import numpy as np
import pytest

import retrograd as rg
from tests.codegen.libcalls.arrays import N, close, compiled, drawn


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.sample(1)
def test_products_with_the_matrix(dtype: str) -> None:
    """Around the sizes of blocks, which double; pivots change rows."""
    program = compiled(rg.linalg.inv, dtype, (N, N))
    for n in (1, 2, 6, 7, 31, 65, 130):
        a = (drawn(dtype, n, n) + 3 * np.sqrt(n) * np.roll(np.eye(n), 1, 0)).astype(dtype)
        (y,) = program(a)
        close(a @ y, np.eye(n), dtype, 20 * n)
        if n == 6:
            (known,) = compiled(rg.linalg.inv, dtype, (n, n))(a)
            assert known.tobytes() == y.tobytes()


def test_singular_matrices_are_refused_and_empty_ones_are_not() -> None:
    program = compiled(rg.linalg.inv, "float64", (N, N))
    assert program(np.zeros((0, 0)))[0].shape == (0, 0)
    for n in (1, 3, 100):
        a = np.eye(n)
        a[n - 1, n - 1] = 0
        with pytest.raises(rg.errors.LinAlgError, match="singular"):
            program(a)
