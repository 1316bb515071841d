"""Coefficients of asymptotic series are those of Bernoulli's numbers."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from retrograd.ops.special.asymptotic_series import (
    DIGAMMA_SERIES,
    PPND16,
    STIRLING_SERIES,
    ZETA_SERIES,
)

FACTORS = {
    "stirling": (STIRLING_SERIES, lambda k: mpmath.bernoulli(2 * k) / (2 * k * (2 * k - 1))),
    "digamma": (DIGAMMA_SERIES, lambda k: mpmath.bernoulli(2 * k) / (2 * k)),
    "zeta": (ZETA_SERIES, lambda k: mpmath.bernoulli(2 * k) / math.factorial(2 * k)),
}


@pytest.mark.parametrize("name", FACTORS)
def test_coefficients(name):
    series, exact = FACTORS[name]
    expected = [float(exact(k)) for k in range(1, len(series) + 1)]
    np.testing.assert_allclose(series, expected, rtol=4e-16)


@pytest.mark.parametrize("a", [10.0, 37.5, 1e6])
def test_sums_from_ten_on(a):
    """log Gamma(a) = (a - 1/2) log a - a + log(2 pi) / 2 + sum of c_k a^(1 - 2k)."""
    with mpmath.workdps(40):
        x = mpmath.mpf(a)
        rest = mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2
        gap = mpmath.log(x) - mpmath.digamma(x) - 1 / (2 * x)
    powers = [a ** (-2 * k) for k in range(1, 11)]
    assert math.fsum(np.multiply(STIRLING_SERIES, powers)) * a == pytest.approx(float(rest), 1e-15)
    assert math.fsum(np.multiply(DIGAMMA_SERIES, powers)) == pytest.approx(float(gap), 1e-15)


def test_percentage_points_of_the_normal_distribution():
    def ratio(table, x):
        return np.polyval(table[0][::-1], x) / np.polyval(table[1][::-1], x)

    u = np.array([0.08, 0.3, 0.5, 0.9])
    q = u - 0.5
    np.testing.assert_allclose(q * ratio(PPND16[0], 0.180625 - q * q), special.ndtri(u), atol=1e-15)
    tails = ((PPND16[1], 1.6, np.array([1e-10, 0.05])), (PPND16[2], 5, np.array([1e-300, 1e-12])))
    for table, low, u in tails:
        r = np.sqrt(-np.log(u))
        np.testing.assert_allclose(-ratio(table, r - low), special.ndtri(u), rtol=2e-15)
