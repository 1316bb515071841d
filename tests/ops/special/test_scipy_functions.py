"""Derivatives of what SciPy computes, against mpmath and differences of high precision."""

import mpmath
import numpy as np
import pytest

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
    _, gradient, _ = derive(f.hyp1f1, 1.5, 2.5, 0.3)
    assert np.isnan(gradient[:2]).all()
    expected = 1.5 / 2.5 * float(mpmath.hyp1f1(2.5, 3.5, 0.3))
    np.testing.assert_allclose(gradient[2], expected, rtol=1e-13)
