"""Derivatives of special functions where the formula needs care."""

import math

import mpmath
import numpy as np
import pytest

import retrograd as rg
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
    _, gradient, _ = derive(f.gammainc_daa, 2.0, 1.5)
    assert np.isnan(gradient[0])
    density = lambda a: mpmath.mpf(1.5) ** (a - 1) * mpmath.exp(-1.5) / mpmath.gamma(a)
    np.testing.assert_allclose(gradient[1], float(mpmath.diff(density, 2, 2)), 1e-12)
    assert derive(lambda a, x: full(0.0, a.type) * f.gammainc_daa(a, x), 2.0, 1.5)[1][0] == 0


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


def slopes(f, x, count):
    """f at x and its first derivatives."""
    found = []
    for _ in range(count):
        found.append(f(np.float64(x)).item())
        f = rg.grad(f)
    return found


@pytest.mark.parametrize("a", [1, 2, 3, 5])
def test_the_gamma_distribution_at_zero(a):
    """To the fourth order, by the series of the density, `x^(a-1) exp(-x) / (a-1)!`."""
    terms = [0] * a + [(-1) ** k / math.factorial(k) / math.factorial(a - 1) for k in range(5)]
    expected = [0, *(terms[n] * math.factorial(n - 1) for n in range(1, 5))]
    with rg.backend("reference"):
        found = slopes(lambda x: rg.special.gammainc(float(a), x), 0.0, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 3), (2, 1), (2, 4), (3, 2)])
@pytest.mark.parametrize("x", [0.0, 1.0])
def test_the_beta_distribution_at_its_ends(a, b, x):
    """To the fourth order, where the density is a polynomial."""
    density = np.polynomial.Polynomial([0] * (a - 1) + [1]) * np.polynomial.Polynomial([1, -1]) ** (
        b - 1
    )
    scale = math.factorial(a + b - 1) / math.factorial(a - 1) / math.factorial(b - 1)
    expected = [x, *(scale * density.deriv(n)(x) for n in range(4))]
    with rg.backend("reference"):
        found = slopes(lambda t: rg.special.betainc(float(a), float(b), t), x, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_densities_that_are_no_powers_of_whole_numbers_at_zero():
    """`x^1.5` has a slope of 0 and an infinite curvature; that of `x^0.5` is infinite at once."""
    with rg.backend("reference"):
        assert slopes(lambda x: rg.special.gammainc(2.5, x), 0.0, 4) == [0, 0, 0, math.inf]
        assert slopes(lambda x: rg.special.gammainc(1.5, x), 0.0, 3) == [0, 0, math.inf]
        assert slopes(lambda x: rg.special.betainc(0.5, 2.0, x), 0.0, 3) == [0, math.inf, -math.inf]
