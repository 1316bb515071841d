"""The gamma function and its relatives at whole numbers, by their recurrences and reflections."""

import math

import mpmath
import numpy as np

from tests.codegen.math.edges import around, assert_ulps, values


def test_factorials() -> None:
    n = np.arange(1, 171).astype(float)
    gamma, lgamma = values(["gamma", "lgamma"], n)
    np.testing.assert_allclose(gamma, [float(math.factorial(int(k) - 1)) for k in n], 2e-15)
    np.testing.assert_array_equal(gamma[:2], 1)
    np.testing.assert_array_equal(lgamma[:2], 0)
    (beyond,) = values(["gamma"], [171.0, 171.7, 172.0, 1e300])
    assert np.isfinite(beyond[0])
    assert (beyond[1:] == np.inf).all()


def test_where_stirlings_series_begins() -> None:
    x = around(10.0)
    gamma, lgamma, digamma, trigamma = values(["gamma", "lgamma", "digamma", "trigamma"], x)
    assert_ulps(gamma, mpmath.gamma, 8, x, height=0)
    assert_ulps(lgamma, mpmath.loggamma, 7, x, height=0)
    assert_ulps(digamma, mpmath.digamma, 6, x, height=0)
    assert_ulps(trigamma, lambda x: mpmath.zeta(2, x), 8, x, height=0)


def test_recurrences_and_reflection() -> None:
    x = np.random.default_rng(0).uniform(-8, 8, 64)
    names = ["gamma", "digamma", "trigamma"]
    g, d, t = values(names, x)
    g1, d1, t1 = values(names, x + 1)
    near = np.spacing(abs(x)) / abs(x - np.rint(x))  # what x + 1 is rounded by, next to a pole
    np.testing.assert_allclose(g1 / (x * g), 1, atol=1e-14 + 9 * near.max())
    np.testing.assert_allclose(d1 - d - 1 / x, 0, atol=1e-13 * abs(d).max())
    np.testing.assert_allclose(t1 - t + 1 / x**2, 0, atol=1e-13 * abs(t).max())
    (other,) = values(["gamma"], 1 - x)
    np.testing.assert_allclose(g * other * np.sin(np.pi * x) / np.pi, 1, rtol=1e-11)


def test_the_zero_of_digamma_and_tiny_arguments() -> None:
    zero = around(1.4616321449683622)
    (d,) = values(["digamma"], zero)
    assert_ulps(d, mpmath.digamma, 6, zero)
    x = np.array([1e-300, -1e-300, 1e-20])
    (g,) = values(["gamma"], x)
    assert_ulps(g, mpmath.gamma, 8, x, height=0)


def test_zeta_and_beta() -> None:
    s, one = np.array([2.0, 4.0, 3.0, 60.0, 1.0, 1e-9 + 1]), np.ones(6)
    (z,) = values(["zeta"], s, one)
    np.testing.assert_allclose(z[:2], [math.pi**2 / 6, math.pi**4 / 90], 2e-15)
    np.testing.assert_allclose(z[2:4], [1.2020569031595942, 1.0], 2e-15)
    assert z[4] == np.inf
    a, b = np.array([1.0, 3.0, 1e-8, 1e8, 0.5]), np.array([1.0, 2.0, 1e8, 1e8, 0.5])
    (y,), (turned,) = values(["betaln"], a, b), values(["betaln"], b, a)
    assert y.tobytes() == turned.tobytes()
    assert_ulps(y, lambda a, b: mpmath.log(mpmath.beta(a, b)), 8, a, b, height=1.0)
