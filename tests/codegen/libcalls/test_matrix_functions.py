"""Exponentials of matrices, and determinants where a matrix has no inverse."""

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from tests.codegen.libcalls.arrays import N, close, compiled, drawn


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.sample(1)
def test_exponentials(dtype: str) -> None:
    """Of small norms, and of large ones, which are halved and squared again."""
    program = compiled(rg.linalg.expm, dtype, (N, N))
    for n, size in ((1, 1.0), (2, 1e-8), (5, 0.3), (5, 20.0), (20, 2.0), (3, 0.0)):
        x = (size * drawn(dtype, n, n) / np.sqrt(n)).astype(dtype)
        wide = x.astype("complex128" if dtype.startswith("complex") else "float64")
        close(program(x)[0], scipy.linalg.expm(wide), dtype, 3000)


def test_exponentials_of_what_is_nilpotent_are_polynomials() -> None:
    x = np.triu(np.ones((4, 4)), 1) * 3
    wanted = np.eye(4) + x + x @ x / 2 + x @ x @ x / 6
    close(compiled(rg.linalg.expm, "float64", (4, 4))(x)[0], wanted, "float64")


@pytest.mark.parametrize("rank", [4, 3, 2, 0])
def test_gradients_of_determinants_are_cofactors(rank: int) -> None:
    """By the determinants of minors, whether the matrix has an inverse or not."""
    x = drawn("float64", 4, rank) @ drawn("float64", rank, 4, seed=1)
    (slope,) = compiled(rg.grad(rg.linalg.det), "float64", (4, 4))(x)
    minors = [
        [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for j in range(4)]
        for i in range(4)
    ]
    np.testing.assert_allclose(slope, minors, atol=1e-12)
