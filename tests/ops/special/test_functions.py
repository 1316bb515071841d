"""Derivatives of special functions where the formula needs care."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import full
from retrograd.ops.special import functions as f
from retrograd.verify.records.special import MANY, UNARY
from tests.ops.derive import derive
from tests.ops.special.exact import check_derivatives


def erfcx(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


@pytest.mark.parametrize("x", [-1.0, 0.0, 2.4, 2.6, 30.0, 1e5])
def test_the_slope_of_erfcx_does_not_cancel(x):
    with mpmath.workdps(60):
        v = mpmath.mpf(x)
        expected = float(2 * v * erfcx(v) - 2 / mpmath.sqrt(mpmath.pi))
    np.testing.assert_allclose(derive(f.erfcx, x)[1][0], expected, rtol=1e-12)


@pytest.mark.parametrize("x", [2.0, 300.0, 1e4, 1e6])
def test_the_slopes_of_scaled_bessel_functions_do_not_cancel(x):
    """d/dx exp(-x) I_0(x) = exp(-x) (I_1 - I_0): neighbours that agree in most digits."""
    with mpmath.workdps(60):
        v = mpmath.mpf(x)
        i1 = float(mpmath.exp(-v) * mpmath.besseli(1, v))
        k1 = float(mpmath.exp(v) * mpmath.besselk(1, v))
        i, k = (
            float(mpmath.exp(-v) * (mpmath.besseli(0, v) - mpmath.besseli(1, v))),
            float(mpmath.exp(v) * (mpmath.besselk(1, v) - mpmath.besselk(0, v))),
        )
    for name, slope in (("i0e", -i), ("i1e", i - i1 / x), ("k0e", -k), ("k1e", k - k1 / x)):
        np.testing.assert_allclose(derive(getattr(f, name), x)[1][0], slope, 1e-11)
    np.testing.assert_allclose(derive(f.i0e, -x)[1][0], i, 1e-11)


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
    assert np.isnan(derive(f.gammainc_daa, 2.0, 1.5)[2][0]).all()
    assert derive(lambda a, x: full(0.0, a.type) * f.gammainc_daa(a, x), 2.0, 1.5)[1][0] == 0


@pytest.mark.parametrize(("s", "q"), [(3.0, 0.0), (3.0, -2.5), (1.0, 2.0), (0.5, 2.0)])
def test_zeta_has_no_slope_in_its_exponent_where_its_sum_has_none(s, q):
    assert np.isnan(derive(f.zeta, s, q)[1][0])


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


# On both sides of where a formula takes the place of another.
FAR = (-300.0, -20.5, -19.5, -0.5, 0.5, 19.5, 20.5, 300.0)
REGIONS = {
    "gamma": (-1.5, 0.4, 3.2),
    "lgamma": (-2.5, 0.2, 4.0),
    "digamma": (-1.5, 0.3, 5.0),
    "trigamma": (-0.5, 0.3, 4.0),
    "erfcx": (-1.0, 0.0, 2.4, 2.6, 30.0),
    "ndtr": (-6.0, -0.5, 2.0),
    "ndtri": (0.001, 0.3, 0.9),
    "erfinv": (-0.9, 0.3),
    "erfcinv": (0.01, 1.3),
    "logit": (0.1, 0.7),
    "entr": (0.2, 3.0),
    "j0": (-9.0, 0.5, 4.0),
    "j1": (-9.0, 0.5, 4.0),
    "i0e": FAR,
    "i1e": FAR,
}


@pytest.mark.parametrize("name", REGIONS)
def test_derivatives_in_every_region(name):
    entry: Any = UNARY[name]
    exact = (entry[0] if isinstance(entry, tuple) else entry).exact
    for x in REGIONS[name]:
        check_derivatives(getattr(f, name), lambda t: exact(mpmath.mp, t), [x])


@pytest.mark.parametrize("x", [0.05, 3.0, 19.5, 20.5, 300.0])
def test_bessel_functions_of_the_second_kind(x):
    """By their differential equations, as mpmath takes long for differences."""
    with mpmath.workdps(50):
        v = mpmath.mpf(x)
        y0, y1 = mpmath.bessely(0, v), mpmath.bessely(1, v)
        k0, k1 = (mpmath.exp(v) * mpmath.besselk(n, v) for n in range(2))
        slope = y0 - y1 / v
        exact = {
            "y0": (-y1, -slope),
            "y1": (slope, y1 / v**2 - y1 - slope / v),
            "k0e": (k0 - k1, 2 * (k0 - k1) + k1 / v),
            "k1e": (k1 - k0 - k1 / v, 2 * (k1 - k0) + (k0 - 2 * k1) / v + 2 * k1 / v**2),
        }
    for name, expected in exact.items():
        _, (first,), second = derive(getattr(f, name), x)
        np.testing.assert_allclose([first, *second[0]], [*map(float, expected)], 1e-9, 1e-30)


OF_TWO = {
    "xlogy": [(0.7, 2.5)],
    "xlog1py": [(0.7, 2.5)],
    "rel_entr": [(0.7, 2.5)],
    "betaln": [(0.7, 2.5)],
    "zeta": [(1.3, 0.4), (2.5, 3.0), (7.3, 1.0), (20.0, 20.0), (70.0, 200.0)],
}


@pytest.mark.parametrize("name", OF_TWO)
def test_derivatives_in_both_arguments(name):
    exact = MANY[name][0].exact
    for xs in OF_TWO[name]:
        if name == "zeta":  # mpmath knows its slopes
            check_zeta(*xs)
        else:
            check_derivatives(getattr(f, name), lambda *ts: exact(mpmath.mp, *ts), xs)


def check_zeta(s, q):
    with mpmath.workdps(220 if s > 50 else 30):  # after the point
        of = lambda n, k=0: float(mpmath.zeta(mpmath.mpf(s) + k, mpmath.mpf(q), n))
        gradient = [of(1), -s * of(0, 1)]
        mixed = -of(0, 1) - s * of(1, 1)
        hessian = [[of(2), mixed], [mixed, s * (s + 1) * of(0, 2)]]
    _, first, second = derive(f.zeta, s, q)
    np.testing.assert_allclose(first, gradient, 1e-12)
    np.testing.assert_allclose(second, hessian, 1e-11)


@pytest.mark.parametrize(("n", "x"), [(0, 0.7), (1, -2.0), (2, 0.5), (5, 9.0)])
def test_bessel_functions_of_whole_orders(n, x):
    for op, exact in (
        (f.bessel_j, lambda t: mpmath.besselj(n, t)),
        (f.bessel_ie, lambda t: mpmath.besseli(n, t) * mpmath.exp(-abs(t))),
    ):
        check_derivatives(lambda t, op=op: op(full(n, t.type), t), exact, [x])


POLES = {"y0": (1, -1), "y1": (1, -1), "k0e": (-1, 1), "k1e": (-1, 1)}


@pytest.mark.parametrize("name", POLES)
def test_derivatives_at_poles(name):
    _, gradient, hessian = derive(getattr(f, name), 0.0)
    assert [*gradient, *hessian[0]] == [s * math.inf for s in POLES[name]]


INF = math.inf
# `a log(a / b)`: what the two slopes are, and the second derivatives.
AT_RATIOS = {
    (1e300, 1e-300): (600 * math.log(10) + 1, -INF, [1e-300, -1e300, -1e300, INF]),
    (1e-300, 1e300): (1 - 600 * math.log(10), 0, [1e300, -1e-300, -1e-300, 0]),
    (0.0, 2.0): (-INF, 0, [INF, -0.5, -0.5, 0]),
    (0.0, 0.0): (INF, 0, [0, -INF, -INF, 0]),
    (2.0, 0.0): (INF, -INF, [0.5, -INF, -INF, INF]),
}


@pytest.mark.parametrize("at", AT_RATIOS)
def test_ratios_that_leave_their_range(at):
    a, b, second = AT_RATIOS[at]
    _, gradient, hessian = derive(f.rel_entr, *at)
    np.testing.assert_allclose(gradient, [a, b], 1e-13)
    np.testing.assert_allclose(hessian.ravel(), second, 1e-13)


# Of `x^(a-1) log(x)` and its derivatives at 0.
LOGARITHMS: dict[float, list[float]] = {
    1.0: [-INF],
    1.5: [0, -INF],
    2.0: [0, -INF],
    2.5: [0, 0, -INF],
    3.0: [0, 0, -INF],
    4.0: [0, 0],
}


@pytest.mark.parametrize("a", LOGARITHMS)
def test_slopes_in_parameters_at_the_end_of_the_range(a):
    def in_parameter(cdf, x, *others):
        return rg.grad(lambda p: rg.grad(lambda t: cdf(p, *others, t))(x))(a)

    expected = LOGARITHMS[a]
    with rg.backend("reference"):
        gamma = slopes(lambda x: in_parameter(rg.special.gammainc, x), 0.0, len(expected))
        np.testing.assert_array_equal(gamma, expected)
        if a == int(a):
            beta = slopes(lambda x: in_parameter(rg.special.betainc, x, 3.5), 0.0, len(expected))
            np.testing.assert_array_equal(beta, expected)


@pytest.mark.parametrize("a", [1.5, 2.0, 2.5, 4.0])
def test_where_the_density_is_zero_it_is_for_all_parameters(a):
    _, gradient, hessian = derive(f.gammainc_dx, a, 0.0)
    assert gradient[0] == hessian[0, 0] == 0
    for xs, at in (((a, 1.5, 0.0), 0), ((1.5, a, 1.0), 1)):
        _, gradient, hessian = derive(f.betainc_dx, *xs)
        assert gradient[at] == 0
        np.testing.assert_array_equal(hessian[at, :2], [0, 0])


def test_second_slopes_in_parameters_are_zero_where_the_density_is():
    assert derive(f.gammainc_daa, 2.5, 0.0)[1][1] == 0
    for op in (f.betainc_daa, f.betainc_dab, f.betainc_dbb):
        for x in (0.0, 1.0):
            assert derive(op, 2.5, 3.5, x)[1][2] == 0


def test_densities_of_exponents_zero_within_their_range():
    """Of `x^(a-1) exp(-x) / Gamma(a)` at `a = 1`, and of `x^(a-1) (1 - x)^(b-1) / B(a, b)`."""
    x = 0.7
    hessian = derive(f.gammainc_dx, 1.0, x)[2]
    mixed = math.exp(-x) * (1 / x - math.log(x) + float(mpmath.psi(0, 1)))
    np.testing.assert_allclose([hessian[0, 1], hessian[1, 0]], mixed, 1e-13)
    hessian = derive(f.betainc_dx, 1.0, 1.0, x)[2]
    np.testing.assert_allclose(hessian[:2, 2], [1 / x, -1 / (1 - x)], 1e-13)
    np.testing.assert_allclose(hessian[2], [1 / x, -1 / (1 - x), 0], 1e-13)


def test_a_density_far_away_is_zero_for_all_parameters():
    assert derive(f.gammainc_dx, 2.5, INF)[1][0] == 0


def test_slopes_of_densities_that_are_infinite_at_their_ends():
    assert derive(f.gammainc_dx, 0.5, 0.0)[1][1] == -INF
    assert derive(f.betainc_dx, 0.5, 0.5, 0.0)[1][2] == -INF
    assert derive(f.betainc_dx, 0.5, 0.5, 1.0)[1][2] == INF


def test_slopes_of_the_beta_density_at_both_ends():
    """Of `x (1 - x)^(b-1) b (b + 1)` at 0, and mirrored at 1."""
    b = 0.7
    for xs, sign in (((2.0, b, 0.0), 1), ((b, 2.0, 1.0), -1)):
        _, gradient, hessian = derive(f.betainc_dx, *xs)
        i = xs.index(b)
        np.testing.assert_allclose(gradient[[i, 2]], [0, sign * b * (b + 1)], 1e-14, 1e-15)
        np.testing.assert_allclose(hessian[i, 2], sign * (2 * b + 1), 1e-13)
        np.testing.assert_allclose(hessian[2, 2], 2 * (1 - b) * b * (b + 1), 1e-13)
        assert hessian[1 - i, 2] == hessian[2, 1 - i] == -sign * INF
