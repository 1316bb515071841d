"""Derivatives of what SciPy computes, against mpmath and differences of high precision."""

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.special import scipy_functions as f
from tests.ops.derive import derive

AT = {
    "spence": (lambda x: mpmath.polylog(2, 1 - x), [0.3, 0.99, 1.0, 1.2, 4.0]),
    "ellipkm1": (lambda p: mpmath.ellipk(1 - p), [0.01, 0.5, 0.95, 0.999]),
    "ellipe": (mpmath.ellipe, [-2.0, 1e-3, 0.05, 0.5, 0.9]),
    "exp1": (mpmath.e1, [0.1, 1.0, 10.0]),
    "expi": (mpmath.ei, [-2.0, 0.5, 3.0]),
}


@pytest.mark.parametrize("name", AT)
def test_slopes_of_one_argument(name):
    exact, points = AT[name]
    for x in points:
        with mpmath.workdps(40):
            value = float(mpmath.re(exact(mpmath.mpf(x))))
            slope = float(mpmath.re(mpmath.diff(lambda t: mpmath.re(exact(t)), mpmath.mpf(x))))
        y, gradient, _ = derive(getattr(f, name), x)
        np.testing.assert_allclose(y, value, rtol=1e-12)
        np.testing.assert_allclose(gradient, [slope] if np.ndim(gradient) else slope, rtol=1e-11)


@pytest.mark.parametrize("u", [-0.9, -0.2, -1e-9, 0.0, 1e-12, 0.24, 0.26, 50.0])
def test_the_ratio_of_log1p_and_its_slope_near_zero(u):
    with mpmath.workdps(60):
        v = mpmath.mpf(u)
        exact = mpmath.log1p(v) / v if u else mpmath.mpf(1)
        slope = (1 / (1 + v) - exact) / v if u else mpmath.mpf(-0.5)
    y, gradient, _ = derive(f.log1p_ratio, u)
    np.testing.assert_allclose(y, float(exact), rtol=1e-14)
    np.testing.assert_allclose(np.ravel(gradient)[0], float(slope), rtol=1e-12)


def test_what_has_no_derivative_is_nan():
    _, gradient, _ = derive(f.expn, 2.0, 0.7)
    assert np.isnan(gradient[0])
    np.testing.assert_allclose(gradient[1], -float(mpmath.e1(0.7)), rtol=1e-13)
    _, gradient, _ = derive(f.hyp1f1_da, 1.5, 2.5, 0.3)
    assert np.isnan(gradient[:2]).all()


# At an end of the range of quantiles: slope and second derivative there, of the leading terms.
AT_ENDS = {
    ("gammaincinv", (0.25, 0.0)): (0, 0),
    ("gammaincinv", (0.5, 0.0)): (0, np.pi / 2),
    ("gammaincinv", (0.75, 0.0)): (0, np.inf),
    ("gammaincinv", (1.0, 0.0)): (1, 1),
    ("gammaincinv", (2.0, 0.0)): (np.inf, -np.inf),
    ("gammaincinv", (2.0, 1.0)): (np.inf, np.inf),
    ("gammainccinv", (0.5, 1.0)): (0, np.pi / 2),
    ("gammainccinv", (1.0, 1.0)): (-1, 1),
    ("gammainccinv", (1.0, 0.0)): (-np.inf, np.inf),
    ("betaincinv", (0.5, 1.0, 0.0)): (0, 2),  # p**2
    ("betaincinv", (0.25, 1.0, 0.0)): (0, 0),
    ("betaincinv", (0.75, 1.0, 0.0)): (0, np.inf),
    ("betaincinv", (1.0, 3.0, 0.0)): (1 / 3, 2 / 9),  # 1 - (1 - p)**(1/3)
    ("betaincinv", (3.0, 1.0, 0.0)): (np.inf, -np.inf),
    ("betaincinv", (3.0, 1.0, 1.0)): (1 / 3, -2 / 9),  # p**(1/3)
    ("betaincinv", (1.0, 0.5, 1.0)): (0, -2),  # 1 - (1 - p)**2
    ("betainccinv", (1.0, 0.5, 0.0)): (0, -2),
    ("betainccinv", (3.0, 1.0, 0.0)): (-1 / 3, -2 / 9),
}


@pytest.mark.parametrize(("name", "at"), AT_ENDS)
def test_quantiles_at_the_ends_of_their_range(name, at):
    *parameters, p = at
    slope, second = AT_ENDS[name, at]
    with rg.backend("reference"):
        g = rg.grad(lambda t: getattr(rg.special, name)(*parameters, t))
        np.testing.assert_allclose(g(np.float64(p)).item(), slope, rtol=1e-14)
        np.testing.assert_allclose(rg.grad(g)(np.float64(p)).item(), second, rtol=1e-14)


def test_quantiles_at_an_end_are_there_for_all_parameters():
    """Where the other parameter scales the distance from it, the mixed derivative is no zero."""
    with rg.backend("reference"):
        hessian = rg.hessian(lambda v: rg.special.betaincinv(v[0], v[1], v[2]))
        found = hessian(np.array([1.0, 0.5, 0.0])).numpy()
        np.testing.assert_array_equal(found[:2, :2], np.zeros((2, 2)))
        np.testing.assert_allclose((found[1, 2], found[2, 1]), -4, rtol=1e-13)  # -1 / b**2
        reverse = rg.jacrev(rg.grad(lambda v: rg.special.gammaincinv(v[0], v[1])))
        for v in ((0.5, 1.0), (1.0, 0.0), (1.0, 1.0), (3.0, 0.0)):
            np.testing.assert_array_equal(reverse(np.array(v)).numpy()[0], [0, 0])
