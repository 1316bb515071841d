"""Least squares against NumPy: of any shape, rank and right side."""

import numpy as np
import pytest

import retrograd as rg
from tests.codegen.libcalls.arrays import close, compiled, drawn, turned


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 3), (3, 7), (12, 12), (40, 9)])
@pytest.mark.sample(3)
def test_solutions_are_those_of_the_least_norm(m: int, n: int, dtype: str) -> None:
    program = compiled(rg.linalg.lstsq, dtype, (m, n), (m, 2))
    b = drawn(dtype, m, 2, seed=1)
    full = drawn(dtype, m, n)
    rank = max(min(m, n) // 2, 1)
    poor = (full[:, :rank] @ drawn(dtype, rank, n, seed=2)).astype(dtype)
    for a in (full, poor, np.zeros_like(full)):
        found = program(a, b)[0]
        wanted, *_ = np.linalg.lstsq(a, b, rcond=None)
        close(found, wanted, dtype, 1e4)
        close(turned(a) @ (a @ found - b) + turned(a) @ b, turned(a) @ b, dtype, 1e4)
