"""The incomplete gamma functions and derivatives against mpmath, and their edges."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from retrograd.ops.special.incomplete import FUNCTIONS
from retrograd.ops.special.reference import NumPyIncompleteMath

M = NumPyIncompleteMath()
INF = math.inf
POINTS = [(0.01, 0.05), (0.3, 4.0), (1.0, 1.0), (5.5, 5.0), (40.0, 60.0), (1e4, 1.01e4)]


def found(name, a, x):
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](M, np.float64(a), np.float64(x))


@pytest.mark.parametrize(("a", "x"), POINTS)
def test_both_tails_are_relatively_accurate(a, x):
    with mpmath.workdps(30):
        lower = float(mpmath.gammainc(a, 0, x, regularized=True))
        upper = float(mpmath.gammainc(a, x, regularized=True))
        density = float(mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)))
    np.testing.assert_allclose(found("gammainc", a, x), lower, rtol=1e-12)
    np.testing.assert_allclose(found("gammaincc", a, x), upper, rtol=1e-12)
    np.testing.assert_allclose(found("gammainc_dx", a, x), density, rtol=1e-12)


@pytest.mark.parametrize(("a", "x"), POINTS[1:4])
def test_derivatives_in_the_parameter(a, x):
    with mpmath.workdps(40):
        at, h = mpmath.mpf(a), mpmath.mpf("1e-10")
        below, here, above = (
            mpmath.gammainc(at + k * h, 0, x, regularized=True) for k in (-1, 0, 1)
        )
        first, second = (above - below) / (2 * h), (above - 2 * here + below) / h**2
    np.testing.assert_allclose(found("gammainc_da", a, x), float(first), rtol=1e-11)
    np.testing.assert_allclose(found("gammainc_daa", a, x), float(second), rtol=1e-11)


def test_the_far_tail_does_not_underflow_early():
    """Q(a, x) for x far beyond a is about D / (x - a + 1), down to the least numbers."""
    with mpmath.workdps(30):
        expected = float(mpmath.gammainc(2, 700, regularized=True))
    np.testing.assert_allclose(found("gammaincc", 2.0, 700.0), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "a", "x", "expected"),
    [
        ("gammainc", 2.0, 0.0, 0), ("gammaincc", 2.0, 0.0, 1), ("gammainc", 2.0, INF, 1),
        ("gammainc", 0.0, 1.0, 1), ("gammainc", -1.0, 1.0, math.nan),
        ("gammainc", 1.0, -1.0, math.nan), ("gammainc", 0.0, 0.0, math.nan),
        ("gammainc_dx", 1.0, 0.0, 1), ("gammainc_dx", 2.0, 0.0, 0), ("gammainc_dx", 0.5, 0.0, INF),
        ("gammainc_da", 2.0, 0.0, 0),
    ],
)  # fmt: skip
def test_edges(name, a, x, expected):
    np.testing.assert_array_equal(found(name, a, x), expected)


def test_an_infinite_parameter_leaves_nothing_below() -> None:
    for a, x in ((math.inf, 3.0), (math.inf, 0.0), (math.inf, math.inf), (3.0, math.inf)):
        for name in ("gammainc", "gammaincc"):
            expected = getattr(scipy.special, name)(a, x)
            np.testing.assert_equal(getattr(rg.special, name)(a, x).numpy(), np.float32(expected))
            np.testing.assert_equal(
                float(FUNCTIONS[name](M, np.float64(a), np.float64(x))), expected
            )
