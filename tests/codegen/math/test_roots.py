"""Roots that are exact, of numbers at both ends of the range."""

import numpy as np
import pytest

from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import assert_ulps, values

DTYPES = (float32, float64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cubes_and_powers_of_eight_have_exact_roots(dtype: DType) -> None:
    info = np.finfo(dtype.dtype)
    top = 200
    n = np.arange(-top, top + 1).astype(dtype.dtype)
    (y,) = values(["cbrt"], n**3, dtype=dtype)
    np.testing.assert_array_equal(y, n)
    q = np.arange(-((info.nmant - info.minexp) // 3), info.maxexp // 3)
    (y,) = values(["cbrt"], np.ldexp(dtype.dtype.type(1), 3 * q), dtype=dtype)
    np.testing.assert_array_equal(y, np.ldexp(dtype.dtype.type(1), q))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hypotenuses_of_any_size(dtype: DType) -> None:
    """Squares of neither the largest nor the least numbers are in range."""
    info = np.finfo(dtype.dtype)
    middle = range(info.minexp - info.nmant, info.maxexp - 5, 30)
    scale = np.ldexp(dtype.dtype.type(1), [*middle, info.maxexp - 5])
    for a, b, c in ((3, 4, 5), (20, 21, 29), (0, 1, 1), (9, 40, 41)):
        if c > 31:
            scale = scale[:-1]
        for s, t in ((1, 1), (-1, 1), (1, -1)):
            (y,) = values(["hypot"], s * a * scale, t * b * scale, dtype=dtype)
            np.testing.assert_array_equal(y, c * scale)


def test_hypot_of_infinity_is_infinite_even_beside_nan() -> None:
    (y,) = values(["hypot"], [np.inf, np.nan, np.nan, -0.0], [np.nan, -np.inf, 1.0, -0.0])
    np.testing.assert_array_equal(y, [np.inf, np.inf, np.nan, 0.0])


def test_rsqrt_of_the_largest_and_the_least() -> None:
    n = np.arange(-537, 512)
    (y,) = values(["rsqrt"], 4.0**n)
    np.testing.assert_array_equal(y, 2.0**-n)
    x = np.array([5e-324, 3e-310, 1.7e308, 3.0])
    assert_ulps(values(["rsqrt"], x)[0], lambda x: x**-0.5, 1.6, x)
