"""Exponentials at the ends of their range, and what is exact."""

import mpmath
import numpy as np
import pytest

from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import around, assert_ulps, values

DTYPES = (float32, float64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_powers_of_two_are_exact_down_to_the_least_number(dtype: DType) -> None:
    info = np.finfo(dtype.dtype)
    n = np.arange(info.minexp - info.nmant, info.maxexp)
    (y,) = values(["exp2"], n, dtype=dtype)
    np.testing.assert_array_equal(y, np.ldexp(dtype.dtype.type(1), n))
    beyond = [info.maxexp, info.minexp - info.nmant - 2]
    (y,) = values(["exp2"], beyond, dtype=dtype)
    assert y.tolist() == [np.inf, 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_results_are_subnormal_or_overflow(dtype: DType) -> None:
    info = np.finfo(dtype.dtype)
    least = float(np.log(2.0)) * (info.minexp - info.nmant)
    x = np.concatenate(
        [
            np.linspace(least, least * 0.8, 40).astype(dtype.dtype),
            around(float(np.log(np.float64(info.max))), dtype=dtype),
        ]
    )
    y, one_less = values(["exp", "expm1"], x, dtype=dtype)
    assert_ulps(y, mpmath.exp, 1.1, x)
    assert_ulps(one_less, mpmath.expm1, 2.2, x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_symmetries(dtype: DType) -> None:
    """To the bit, also where formulas change."""
    x = np.concatenate([np.geomspace(1e-30, 80, 200).astype(dtype.dtype), [0, np.inf]])
    odd, even = ["sinh", "tanh"], ["cosh", "sech2"]
    above, below = (values([*odd, *even], s * x, dtype=dtype) for s in (1, -1))
    for name, y, z in zip([*odd, *even], above, below, strict=True):
        assert (-z if name in odd else z).tobytes() == y.tobytes(), name


def test_small_arguments_lose_nothing() -> None:
    x = 2.0 ** -np.arange(1, 1074, 7)
    expm1, sinh, tanh = values(["expm1", "sinh", "tanh"], x)
    assert_ulps(expm1, mpmath.expm1, 2.2, x)
    assert_ulps(sinh, mpmath.sinh, 2.8, x)
    assert_ulps(tanh, mpmath.tanh, 2.7, x)


def test_sigmoid_of_very_negative_numbers_is_no_zero() -> None:
    x = np.array([-100.0, -700.0, -740.0, 40.0, 800.0])
    (y,) = values(["sigmoid"], x)
    assert_ulps(y, lambda x: 1 / (1 + mpmath.exp(-x)), 2.5, x)
    assert y[2] > 0
