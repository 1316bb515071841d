"""Hypergeometric functions of large arguments, and their derivatives in the parameters, against
mpmath."""

import time

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.special import hypergeometric as h

PARAMETERS = np.random.default_rng(3)
KUMMER = [
    *PARAMETERS.uniform((-6, -6, -40), (8, 8, 40), (12, 3)).tolist(),
    [-3.0, 1.5, 2.0],  # a polynomial, whose slope in a is none
    [0.0, 1.5, -20.0],
    [2.0, 2.0, 3.0],
    [1.5, 2.5, 0.0],
    [1.5, 2.5, 700.0],
    [-30.5, 2.5, 20.0],  # of which double precision would have no digit
    [1.5, 2.5, -500.0],
]
GAUSS = [
    *PARAMETERS.uniform((-3, -3, -3, -0.9), (5, 5, 5, 0.9), (8, 4)).tolist(),
    [-2.0, 1.5, 2.5, 0.5],
    [0.0, 0.0, 1.5, -4.0],
    [0.5, 1.5, 2.5, 0.97],
    [0.5, 1.75, 2.5, -30.0],
    [30.5, -20.5, 2.5, 0.5],
]


def exact(f, at, which):
    with mpmath.workdps(120):
        of = [mpmath.mpf(t) for t in at]
        return float(mpmath.diff(
            lambda t: f(*of[:which], t, *of[which + 1 :]), of[which], h=mpmath.mpf(10) ** -40
        ))  # fmt: skip


@pytest.mark.parametrize("at", KUMMER)
def test_slopes_of_kummers_function(at):
    for which, f in enumerate((h.hyp1f1_da, h.hyp1f1_db)):
        found = f(*map(np.float64, at))
        np.testing.assert_allclose(found, exact(mpmath.hyp1f1, at, which), rtol=1e-13)


@pytest.mark.parametrize("at", GAUSS)
def test_slopes_of_gauss_function(at):
    for which, f in ((0, h.hyp2f1_da), (2, h.hyp2f1_dc)):
        found = f(*map(np.float64, at))
        np.testing.assert_allclose(found, exact(mpmath.hyp2f1, at, which), 1e-13, 1e-45)


def test_sums_in_double_precision_and_in_decimals_agree():
    rng = np.random.default_rng(0)
    a, b, x = rng.uniform(0.5, 4, (2, 50)), rng.uniform(0.5, 4, 50), rng.uniform(-3, 3, 50)
    found = h.hyp1f1_da(a[0], b, x)
    slow = [float(h._kummer(*map(float, at))[1]) for at in zip(a[0], b, x, strict=True)]
    np.testing.assert_allclose(found, slow, rtol=1e-13)
    quick, errors = h._quick_kummer(a[0], b, x)
    assert (abs(quick[1] - slow) <= errors[1]).all()


def test_where_no_slopes_are_offered():
    for at in ((1.5, 2.5, 1e4), (1e4, 2.5, 1.0), (1.5, -2.0, 1.0), (np.nan, 1.5, 1.0)):
        assert np.isnan(h.hyp1f1_da(*map(np.float64, at)))
    for four in ((1.5, 2.5, 3.5, 1.0), (1.5, 2.5, 3.5, -900.0), (1.5, 2.5, 0.0, 0.5)):
        assert np.isnan(h.hyp2f1_dc(*map(np.float64, four)))


def test_gradients_through_the_public_functions():
    """In all arguments; mixed with x to the second order; of arrays, compiled."""
    at = (0.7, 1.3, 0.4)
    for backend in ("reference", "llvm"):
        with rg.backend(backend):
            found = rg.grad(rg.special.hyp1f1, argnums=(0, 1, 2))(*map(np.float64, at))
            for which, g in enumerate(found):
                np.testing.assert_allclose(g.item(), exact(mpmath.hyp1f1, at, which), rtol=1e-13)
    with rg.backend("reference"):
        for which in range(2):
            mixed = rg.grad(rg.grad(rg.special.hyp1f1, which), 2)(*map(np.float64, at)).item()
            right = exact(lambda a, b, x: a / b * mpmath.hyp1f1(a + 1, b + 1, x), at, which)
            np.testing.assert_allclose(mixed, right, rtol=1e-12)
        four = (0.7, -1.3, 2.2, -0.4)
        found = rg.grad(rg.special.hyp2f1, argnums=(0, 1, 2, 3))(*map(np.float64, four))
        for which, g in enumerate(found):
            np.testing.assert_allclose(g.item(), exact(mpmath.hyp2f1, four, which), rtol=1e-12)


@pytest.mark.parametrize(
    "at",
    [(1e7, 2.0, -1.0), (1.5, 2.5, -1e9), (-3.5, 2.5, -1e9), (50.5, 20.25, -1e8), (3.0, 1.0, -1e9),
     (-3.0, 2.0, 1e9), (-2.5, 1.0, 1e9), (0.0, 2.0, 1e300), (1.5, 20.0, 1e12)],
)  # fmt: skip
def test_large_arguments(at):
    with mpmath.workdps(40):
        value = mpmath.hyp1f1(*at)
    right = float(value) if abs(value) < 1e308 else np.inf * float(mpmath.sign(value))
    np.testing.assert_allclose(h.hyp1f1(*map(np.float64, at)), right, rtol=1e-12)


def test_it_ends():
    """SciPy's takes as many steps as the size of a, or of x."""
    large = np.array([1.5, -1.5, 1e4, -1e6, 1e10, -1e10, 1e15, 1e100, -1e100, np.inf, np.nan])
    a, b, x = np.meshgrid(large[:6:2], large, large)
    start = time.process_time()
    h.hyp1f1(a.ravel(), b.ravel(), x.ravel())
    assert time.process_time() - start < 5
