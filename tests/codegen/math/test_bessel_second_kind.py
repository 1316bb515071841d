"""Bessel functions of the second kind, tied to those of the first by their Wronskians."""

import math

import mpmath
import numpy as np

from tests.codegen.math.edges import around, assert_ulps, values


def test_wronskians() -> None:
    x = np.geomspace(1e-3, 100, 80)
    j0, j1, y0, y1, k0, k1, i0, i1 = values(["j0", "j1", "y0", "y1", "k0e", "k1e", "i0e", "i1e"], x)
    np.testing.assert_allclose((j1 * y0 - j0 * y1) * np.pi * x / 2, 1, rtol=2e-14)
    np.testing.assert_allclose((i0 * k1 + i1 * k0) * x, 1, rtol=3e-15)


def test_where_formulas_change() -> None:
    x = around(8.0)
    y0, y1 = values(["y0", "y1"], x)
    height = math.sqrt(2 / math.pi / 8)
    assert_ulps(y0, lambda x: mpmath.bessely(0, x), 5, x, height=height)
    assert_ulps(y1, lambda x: mpmath.bessely(1, x), 7, x, height=height)
    x = around(1.0)
    k0, k1 = values(["k0e", "k1e"], x)
    assert_ulps(k0, lambda x: mpmath.besselk(0, x) * mpmath.exp(x), 4, x, height=0)
    assert_ulps(k1, lambda x: mpmath.besselk(1, x) * mpmath.exp(x), 4, x, height=0)


def test_ends_of_the_range() -> None:
    x = np.array([0.0, np.inf, -1.0, np.nan])
    ends = {"y0": -np.inf, "y1": -np.inf, "k0e": np.inf, "k1e": np.inf}
    for (name, at_zero), y in zip(ends.items(), values(ends, x), strict=True):
        np.testing.assert_array_equal(y, [at_zero, 0, np.nan, np.nan], name)
