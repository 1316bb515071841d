"""Derivatives of special functions where the formula needs care."""

import math

import mpmath
import numpy as np
import pytest

from retrograd.ir import full
from retrograd.ops.special import functions as f
from tests.ops.derive import derive


def erfcx(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


@pytest.mark.parametrize("x", [-1.0, 0.0, 2.4, 2.6, 30.0, 1e5])
def test_the_slope_of_erfcx_does_not_cancel(x):
    with mpmath.workdps(60):
        v = mpmath.mpf(x)
        expected = float(2 * v * erfcx(v) - 2 / mpmath.sqrt(mpmath.pi))
    np.testing.assert_allclose(derive(f.erfcx, x)[1][0], expected, rtol=1e-12)


@pytest.mark.parametrize("x", [2.0, 300.0, 1e4])
def test_the_slopes_of_scaled_bessel_functions_do_not_cancel(x):
    """d/dx exp(-x) I_0(x) = exp(-x) (I_1 - I_0): neighbours that agree in most digits."""
    with mpmath.workdps(60):
        v = mpmath.mpf(x)
        first = mpmath.exp(-v) * (mpmath.besseli(1, v) - mpmath.besseli(0, v))
        second = mpmath.exp(v) * (mpmath.besselk(0, v) - mpmath.besselk(1, v))
    np.testing.assert_allclose(derive(f.i0e, x)[1][0], float(first), rtol=1e-11)
    np.testing.assert_allclose(derive(f.k0e, x)[1][0], float(second), rtol=1e-11)


def test_products_with_logarithms_at_zero():
    """0 where the first factor is; its derivative is the logarithm, which is infinite."""
    value, gradient, _ = derive(f.xlogy, 0.0, 0.0)
    assert value == 0
    assert gradient[0] == -math.inf
    assert derive(f.entr, 0.0)[:2] == (0, math.inf)
    np.testing.assert_allclose(derive(f.rel_entr, 2.0, 3.0)[1], [math.log(2 / 3) + 1, -2 / 3])
    assert np.isnan(derive(f.rel_entr, math.nan, 1.0)[0])


def test_what_has_no_derivative_is_nan_and_never_zero():
    _, gradient, _ = derive(f.zeta, 2.0, 1.5)
    assert np.isnan(gradient[0])
    np.testing.assert_allclose(gradient[1], -2 * float(mpmath.zeta(3, 1.5)))
    assert derive(lambda s, q: full(0.0, s.type) * f.zeta(s, q), 2.0, 1.5)[1][1] == 0


def test_derivatives_of_the_gamma_function_to_second_order():
    value, first, second = derive(f.lgamma, 3.5)
    np.testing.assert_allclose(value, math.lgamma(3.5))
    np.testing.assert_allclose(first[0], float(mpmath.psi(0, 3.5)))
    np.testing.assert_allclose(second[0, 0], float(mpmath.psi(1, 3.5)))
    np.testing.assert_allclose(derive(f.trigamma, 3.5)[1][0], float(mpmath.psi(2, 3.5)))


def test_even_functions_have_slope_zero_at_the_origin():
    for op in (f.j0, f.i0e):
        assert derive(op, 0.0)[:2] == (1, 0)
    assert derive(f.j1, 0.0)[:2] == (0, 0.5)
