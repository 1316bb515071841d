"""Logarithms of powers, next to 1, of subnormal numbers, and of sums."""

import mpmath
import numpy as np
import pytest

from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import around, assert_ulps, values


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_powers_of_two_have_whole_logarithms(dtype: DType) -> None:
    info = np.finfo(dtype.dtype)
    n = np.arange(info.minexp - info.nmant, info.maxexp)
    x = np.ldexp(dtype.dtype.type(1), n)
    log, log2 = values(["log", "log2"], x, dtype=dtype)
    np.testing.assert_array_equal(log2, n)
    assert_ulps(log, mpmath.log, 1.0, x)


def test_next_to_one_the_difference_counts() -> None:
    x = np.concatenate([around(1.0), around(np.sqrt(0.5), np.sqrt(2.0)), 5e-324 * 3.0 ** np.r_[:9]])
    log, log2, log10 = values(["log", "log2", "log10"], x)
    assert_ulps(log, mpmath.log, 1.0, x)
    assert_ulps(log2, lambda x: mpmath.log(x, 2), 1.9, x)
    assert_ulps(log10, mpmath.log10, 3.0, x)


def test_of_one_and_a_little() -> None:
    x = np.concatenate([[-1 + 2.0**-53, -0.5], 2.0 ** -np.r_[1:1074:9], -(2.0 ** -np.r_[1:1074:9])])
    (y,) = values(["log1p"], x)
    assert_ulps(y, mpmath.log1p, 1.5, x)


def test_inverse_hyperbolic_functions_at_the_ends() -> None:
    x = 2.0 ** -np.r_[1:1074:9]
    asinh, atanh = values(["asinh", "atanh"], x)
    assert_ulps(asinh, mpmath.asinh, 2.0, x)
    assert_ulps(atanh, mpmath.atanh, 2.2, x)
    for y, z in zip(values(["asinh", "atanh"], -x), (asinh, atanh), strict=True):
        assert (-y).tobytes() == z.tobytes()
    near = 1 + 2.0 ** -np.r_[1:53]
    (acosh,) = values(["acosh"], np.r_[near, 1e308])
    assert_ulps(acosh, mpmath.acosh, 2.4, np.r_[near, 1e308])
    (atanh,) = values(["atanh"], 2 - near)
    assert_ulps(atanh, mpmath.atanh, 2.2, 2 - near)


def test_logaddexp_of_infinities_and_of_far_apart_numbers() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([-inf, inf, inf, -inf, 1000.0, -1000.0, 1e308, nan, nan])
    b = np.array([-inf, inf, -inf, 3.5, 1000.0, -1000.0, -1e308, inf, 0.0])
    right = [-inf, inf, inf, 3.5, 1000 + np.log(2), -1000 + np.log(2), 1e308, nan, nan]
    y, z = values(["logaddexp"], a, b)[0], values(["logaddexp"], b, a)[0]
    np.testing.assert_allclose(y, right, 1e-15)
    assert y[~np.isnan(y)].tobytes() == z[~np.isnan(z)].tobytes()


def test_softplus_of_negative_numbers_is_an_exponential() -> None:
    x = np.array([-745.0, -700.0, -50.0, -0.0, 0.0, 50.0, 1e300])
    (y,) = values(["softplus"], x)
    assert_ulps(y, lambda x: mpmath.log1p(mpmath.exp(x)) if x < 900 else x, 1.9, x)
