"""Incomplete gamma and beta functions: what has a closed form, and what must add up."""

import math

import numpy as np

from tests.codegen.math.edges import values

GAMMAS = ["gammainc", "gammaincc", "gammainc_dx"]


def test_gamma_of_whole_parameters() -> None:
    """The tail is a sum of `exp(-x) x^k / k!`, the slope its last term."""
    a, x = (v.ravel() for v in np.meshgrid(np.arange(1.0, 8.0), np.geomspace(0.01, 40, 15)))
    below, above, slope = values(GAMMAS, a, x)
    np.testing.assert_allclose(below + above, 1, rtol=1e-14)
    for n, v, tail, d in zip(a, x, above, slope, strict=True):
        terms = [math.exp(-v) * v**k / math.factorial(k) for k in range(int(n))]
        assert math.isclose(tail, math.fsum(terms), rel_tol=1e-13)
        assert math.isclose(d, terms[-1], rel_tol=1e-13)


def test_beta_of_whole_parameters() -> None:
    """The probability of at least `a` heads in `a + b - 1` tosses."""
    cases = [(a, b, x) for a in (1, 2, 5) for b in (1, 3, 4) for x in (0.01, 0.3, 0.5, 0.99)]
    a, b, x = np.array(cases, float).T
    (y,) = values(["betainc"], a, b, x)
    for (p, q, v), found in zip(cases, y, strict=True):
        n = p + q - 1
        tails = [math.comb(n, k) * v**k * (1 - v) ** (n - k) for k in range(p, n + 1)]
        assert math.isclose(found, math.fsum(tails), rel_tol=1e-13), (p, q, v)
    (turned,) = values(["betainc"], b, a, 1 - x)
    np.testing.assert_allclose(y + turned, 1, rtol=1e-14)


def test_ends_of_the_range() -> None:
    below, above, _ = values(GAMMAS, [2.0, 2.0, 2.0, np.nan], [0.0, np.inf, -1.0, 1.0])
    np.testing.assert_array_equal(below, [0, 1, np.nan, np.nan])
    np.testing.assert_array_equal(above, [1, 0, np.nan, np.nan])
    (y,) = values(["betainc"], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0], [0.0, 1.0, 1.5])
    np.testing.assert_array_equal(y, [0, 1, np.nan])
