"""Small matrices: straight code and loops of the same operations, so the same bits."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.tuning import TUNING
from tests.codegen.libcalls.arrays import N, compiled, drawn, positive


def all_of(x, a, b):
    half = rg.linalg.cholesky(x)
    back = rg.linalg.solve_triangular(half.mT, b, lower=False)
    return half, *rg.linalg.lu_factor(a), back


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.sample(1)
def test_known_and_named_sizes(dtype: str) -> None:
    named = compiled(all_of, dtype, (3, N, N), (3, N, N), (3, N, 2))
    for n in (2, TUNING.unrolled_matrix_rows):
        arrays = positive(dtype, 3, n, n), drawn(dtype, 3, n, n), drawn(dtype, 3, n, 2)
        known = compiled(all_of, dtype, *[a.shape for a in arrays])(*arrays)
        for y, z in zip(named(*arrays), known, strict=True):
            np.testing.assert_array_equal(y, z)


def test_by_hand() -> None:
    """The pivot is the largest of its column, the first one of equals."""
    a = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [-2.0, 3.0, 4.0]])
    packed, order = compiled(rg.linalg.lu_factor, "float64", (3, 3))(a)
    np.testing.assert_array_equal(order, [1, 2, 0])
    np.testing.assert_array_equal(packed, [[2, 1, 0], [-1, 4, 4], [0.5, 0.375, -1.5]])
    x = np.array([[4.0, 2.0], [2.0, 10.0]])
    (half,) = compiled(rg.linalg.cholesky, "float64", (2, 2))(x)
    np.testing.assert_array_equal(half, [[2, 0], [1, 3]])
