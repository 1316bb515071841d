"""What NumPy computes in the middle of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [rg.float32, rg.float64, rg.int64, rg.complex128, rg.complex64])
def test_numbers_travel_whole(dtype: Any) -> None:
    x = np.array([[1, 2**40 + 1 if dtype is rg.int64 else 1 / 3]]).astype(dtype.dtype)
    like = rg.spec((1, 2), dtype)
    f = rg.jit(lambda x: rg.pure_callback(lambda a: a, like, x))
    with rg.backend("xla"):
        assert f(rg.tensor(x, dtype=dtype)).numpy().tobytes() == x.tobytes()


@pytest.mark.slow
def test_large_arrays_do_not_block() -> None:
    x = rg.tensor(np.ones((600, 600)))
    f = rg.jit(lambda x: rg.pure_callback(lambda a: 2 * a, rg.spec((600, 600), rg.float64), x * 3))
    with rg.backend("xla"):
        assert f(x).numpy().sum() == 6 * 600 * 600


@pytest.mark.slow
def test_what_a_function_raises_is_raised() -> None:
    def refuse(a: np.ndarray) -> np.ndarray:
        if a[0] > 1:
            raise KeyError("too large")
        return a

    f = rg.jit(lambda x: rg.pure_callback(refuse, rg.spec((1,), rg.float32), x))
    with rg.backend("xla"):
        with pytest.raises(KeyError, match="too large"):
            f(rg.tensor([2.0]))
        assert f(rg.tensor([1.0])).tolist() == [1.0]


@pytest.mark.slow
def test_a_matrix_that_is_refused_is_named() -> None:
    with (
        rg.backend("xla"),
        pytest.raises(rg.LinAlgError, match=r"matrix \[1\]: it is not positive definite"),
    ):
        rg.linalg.cholesky(rg.tensor([[[1.0]], [[-1.0]]])).numpy()
