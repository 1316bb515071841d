"""Arcs at the ends of their range, and `atan2` on the axes."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import around, assert_ulps, values


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_next_to_one_and_where_formulas_change(dtype: DType) -> None:
    """`acos` goes to 0 as a square root, so its relative error is what counts."""
    near = (1 - 2.0 ** -np.arange(1, np.finfo(dtype.dtype).nmant + 2)).astype(dtype.dtype)
    x = np.concatenate([near, -near, around(0.5, -0.5, dtype=dtype)])
    asin, acos = values(["asin", "acos"], x, dtype=dtype)
    assert_ulps(asin, mpmath.asin, 2.5, x)
    assert_ulps(acos, mpmath.acos, 1.3, x)


def test_arctangent_of_any_size() -> None:
    x = np.concatenate([np.geomspace(1e-300, 1e300, 80), around(np.sqrt(2) - 1, np.sqrt(2) + 1)])
    (y,) = values(["atan"], x)
    assert_ulps(y, mpmath.atan, 2.7, x)
    assert (-values(["atan"], -x)[0]).tobytes() == y.tobytes()


def test_beyond_one_there_is_no_arc() -> None:
    x = around(1.0, -1.0)
    for y in values(["asin", "acos"], x):
        np.testing.assert_array_equal(np.isnan(y), abs(x) > 1)


def test_atan2_in_all_quadrants_and_on_the_axes() -> None:
    special = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324, -1e308, 3.0)
    y, x = np.array(list(itertools.product(special, repeat=2))).T
    (found,) = values(["atan2"], y, x)
    right = np.array([math.atan2(*pair) for pair in zip(y, x, strict=True)])
    np.testing.assert_allclose(found, right, 1e-15)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(right))
    (found,) = values(["atan2"], [math.nan, 1.0, math.nan], [1.0, math.nan, math.inf])
    assert np.isnan(found).all()
