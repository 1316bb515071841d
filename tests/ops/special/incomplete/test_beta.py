"""The incomplete beta function and its derivatives against mpmath, and their edges."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from retrograd.ops.special.incomplete import FUNCTIONS
from retrograd.ops.special.reference import NumPyIncompleteMath

M = NumPyIncompleteMath()
INF, NAN = math.inf, math.nan
POINTS = [(0.02, 3.0, 0.1), (1.0, 1.0, 0.3), (2.5, 0.5, 0.9), (30.0, 40.0, 0.4)]


def found(name, *at):
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](M, *map(np.float64, at))


def exact(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


@pytest.mark.parametrize("at", POINTS)
def test_values_and_densities(at):
    a, b, x = at
    with mpmath.workdps(30):
        v = mpmath.mpf(x)
        density = float(v ** (a - 1) * (1 - v) ** (b - 1) / mpmath.beta(a, b))
        value = float(exact(a, b, x))
    np.testing.assert_allclose(found("betainc", *at), value, rtol=1e-12)
    np.testing.assert_allclose(found("betainc", b, a, 1 - x), 1 - value, rtol=1e-12)
    np.testing.assert_allclose(found("betainc_dx", *at), density, rtol=1e-12)


@pytest.mark.parametrize("at", POINTS[2:])
def test_derivatives_in_the_parameters(at):
    with mpmath.workdps(40):
        a, b, x = map(mpmath.mpf, at)
        h = mpmath.mpf("1e-10")
        f = {(i, j): exact(a + i * h, b + j * h, x) for i in (-1, 0, 1) for j in (-1, 0, 1)}
        expected = {
            "a": (f[1, 0] - f[-1, 0]) / (2 * h),
            "b": (f[0, 1] - f[0, -1]) / (2 * h),
            "aa": (f[1, 0] - 2 * f[0, 0] + f[-1, 0]) / h**2,
            "bb": (f[0, 1] - 2 * f[0, 0] + f[0, -1]) / h**2,
            "ab": (f[1, 1] - f[1, -1] - f[-1, 1] + f[-1, -1]) / (4 * h**2),
        }
    for order, value in expected.items():
        np.testing.assert_allclose(found(f"betainc_d{order}", *at), float(value), rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("betainc", (2.0, 3.0, 0.0), 0), ("betainc", (2.0, 3.0, 1.0), 1),
        ("betainc", (0.0, 3.0, 0.5), 1), ("betainc", (2.0, 0.0, 0.5), 0),
        ("betainc", (2.0, 3.0, 1.5), NAN), ("betainc", (-1.0, 3.0, 0.5), NAN),
        ("betainc_dx", (1.0, 3.0, 0.0), 3), ("betainc_dx", (2.0, 1.0, 1.0), 2),
        ("betainc_dx", (0.5, 1.0, 0.0), INF), ("betainc_dx", (2.0, 2.0, 0.0), 0),
        ("betainc_da", (2.0, 3.0, 1.0), 0), ("betainc_da", (2.0, 0.0, 0.5), 0),
    ],
)  # fmt: skip
def test_edges(name, at, expected):
    np.testing.assert_array_equal(found(name, *at), expected)


def test_an_infinite_parameter_moves_all_to_one_end() -> None:
    for at in ((math.inf, 2.0, 0.5), (2.0, math.inf, 0.5), (math.inf, math.inf, 0.5)):
        expected = scipy.special.betainc(*at)
        np.testing.assert_equal(rg.special.betainc(*at).numpy(), np.float32(expected))
