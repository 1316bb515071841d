"""Bessel functions of the first kind: parity, recurrence, and where formulas change."""

import math

import mpmath
import numpy as np

from tests.codegen.math.edges import around, assert_ulps, values


def test_parity_and_orders_below_zero() -> None:
    n, x = (a.ravel() for a in np.meshgrid(np.arange(-5.0, 6.0), np.geomspace(1e-3, 90, 20)))
    y, scaled = values(["bessel_j", "bessel_ie"], n, x)
    sign = (-1.0) ** n
    back, scaled_back = values(["bessel_j", "bessel_ie"], n, -x)
    np.testing.assert_array_equal(back, sign * y)
    np.testing.assert_array_equal(scaled_back, sign * scaled)
    below, scaled_below = values(["bessel_j", "bessel_ie"], -n, x)
    np.testing.assert_array_equal(below, sign * y)
    np.testing.assert_array_equal(scaled_below, scaled)


def test_recurrence_between_orders() -> None:
    n, x = (a.ravel() for a in np.meshgrid(np.arange(1.0, 20.0), np.linspace(0.3, 60, 25)))
    (low,), (y,), (high,) = (values(["bessel_j"], k, x) for k in (n - 1, n, n + 1))
    np.testing.assert_allclose(low + high, 2 * n / x * y, atol=1e-14)
    (low,), (y,), (high,) = (values(["bessel_ie"], k, x) for k in (n - 1, n, n + 1))
    np.testing.assert_allclose(low - high, 2 * n / x * y, atol=1e-14)


def test_where_formulas_change() -> None:
    x = around(8.0)
    j0, j1 = values(["j0", "j1"], x)
    height = math.sqrt(2 / math.pi / 8)
    assert_ulps(j0, lambda x: mpmath.besselj(0, x), 5, x, height=height)
    assert_ulps(j1, lambda x: mpmath.besselj(1, x), 5, x, height=height)
    x = around(30.0)
    i0e, i1e = values(["i0e", "i1e"], x)
    assert_ulps(i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-x), 8, x, height=0)
    assert_ulps(i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-x), 8, x, height=0)


def test_nothing_exceeds_the_value_at_zero() -> None:
    x = np.r_[0.0, 5e-324, np.geomspace(1e-20, 1e-3, 200)]
    (j0,), (j,) = values(["j0"], x), values(["bessel_j"], 0 * x, x)
    assert max(j0.max(), j.max()) == j0[0] == j[0] == 1
    assert_ulps(j0, lambda x: mpmath.besselj(0, x), 5, x, height=0)


def test_ends_of_the_range_and_orders_that_are_not_whole() -> None:
    n, x = [0, 1, 3, 0, 0, 0.5, 2], [0, 0, 0, np.inf, np.nan, 1, 1]
    j, i = values(["bessel_j", "bessel_ie"], n, x)
    np.testing.assert_array_equal(j[:6], [1, 0, 0, 0, np.nan, np.nan])
    np.testing.assert_array_equal(i[:6], [1, 0, 0, 0, np.nan, np.nan])
    assert abs(j[6] - 0.11490348493190049) < 1e-16
