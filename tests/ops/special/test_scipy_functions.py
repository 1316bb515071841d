"""Derivatives of what SciPy computes, against mpmath and differences of high precision."""

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, TensorType, float64, full
from retrograd.ops.leaf import input_node
from retrograd.ops.special import scipy_functions as f
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents, derive, derive_forward
from tests.ops.special.exact import check_derivatives

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
    ("betainccinv", (0.5, 1.0, 1.0)): (0, 2),
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
        found = hessian(np.array([0.5, 1.0, 1.0])).numpy()
        np.testing.assert_array_equal(found[:2, :2], np.zeros((2, 2)))
        np.testing.assert_allclose((found[0, 2], found[2, 0]), -4, rtol=1e-13)
        reverse = rg.jacrev(rg.grad(lambda v: rg.special.gammaincinv(v[0], v[1])))
        for v in ((0.5, 1.0), (1.0, 0.0), (1.0, 1.0), (3.0, 0.0)):
            np.testing.assert_array_equal(reverse(np.array(v)).numpy()[0], [0, 0])


# On both sides of where a formula takes the place of another.
REGIONS = {
    "spence": (lambda x: mpmath.polylog(2, 1 - x), [0.2, 0.74, 0.76, 1.24, 1.26, 4.0]),
    "ellipkm1": (lambda p: mpmath.ellipk(1 - p), [0.01, 0.89, 0.91, 1.0, 1.09, 1.11, 3.0]),
    "ellipe": (mpmath.ellipe, [-2.0, -0.11, -0.09, 0.0, 0.09, 0.11, 0.9]),
    "exp1": (mpmath.e1, [0.1, 10.0]),
    "expi": (mpmath.ei, [-2.0, 3.0]),
}


@pytest.mark.parametrize("name", REGIONS)
def test_derivatives_in_every_region(name):
    exact, points = REGIONS[name]
    for x in points:
        check_derivatives(getattr(f, name), exact, [x])


@pytest.mark.parametrize("n", range(5))
def test_whole_orders_down_to_the_first(n):
    for x in (0.7, 3.0):
        check_derivatives(lambda t: f.expn(full(n, t.type), t), lambda t: mpmath.expint(n, t), [x])


@pytest.mark.parametrize("n", range(4))
def test_the_slope_of_bessel_functions_of_whole_orders(n):
    """`(Y_(n-1) - Y_(n+1)) / 2`, and by it the second derivative."""
    x = 2.5
    y = [float(mpmath.bessely(k, x)) for k in range(n - 2, n + 3)]
    _, gradient, hessian = derive(lambda t: f.yn(full(n, t.type), t), x)
    np.testing.assert_allclose(gradient, [(y[1] - y[3]) / 2], 1e-13)
    np.testing.assert_allclose(hessian, [[(y[0] - 2 * y[2] + y[4]) / 4]], 1e-13)


def test_the_slope_of_the_second_order_does_not_cancel():
    with mpmath.workdps(30):
        expected = -float(mpmath.e1(mpmath.mpf(1e-8)))
    np.testing.assert_allclose(derive(f.expn, 2.0, 1e-8)[1][1], expected, 1e-13)


def test_the_slope_of_the_dilogarithm_near_its_end():
    x = 1e-12
    np.testing.assert_allclose(derive(f.spence, x)[1], [np.log(x) / (1 - x)], 1e-14)


def test_the_elliptic_integral_has_a_pole():
    assert derive(f.ellipkm1, 0.0)[:2] == (np.inf, -np.inf)


def test_an_integral_of_order_one_has_a_pole_at_zero():
    for n, slope in ((0.0, -np.inf), (1.0, -np.inf), (2.0, -np.inf), (3.0, -1.0)):
        assert derive(f.expn, n, 0.0)[1][1] == slope


def gamma_parts(a, y):
    return mpmath.gammainc(a, 0, y, regularized=True)


def beta_parts(a, b, y):
    return mpmath.betainc(a, b, 0, y, regularized=True)


QUANTILES = [
    ("gammaincinv", gamma_parts, (0.6, 0.3)),
    ("gammaincinv", gamma_parts, (1.0, 0.3)),
    ("gammaincinv", gamma_parts, (2.5, 0.8)),
    ("gammainccinv", gamma_parts, (0.6, 0.3)),
    ("gammainccinv", gamma_parts, (2.5, 0.8)),
    ("betaincinv", beta_parts, (0.6, 2.5, 0.3)),
    ("betaincinv", beta_parts, (2.5, 0.6, 0.3)),
    ("betaincinv", beta_parts, (1.0, 2.5, 0.7)),
    ("betainccinv", beta_parts, (0.6, 2.5, 0.3)),
    ("betainccinv", beta_parts, (2.5, 1.0, 0.7)),
]


@pytest.mark.parametrize(("name", "cdf", "at"), QUANTILES)
def test_gradients_of_quantiles(name, cdf, at):
    """By implicit differentiation of the distribution function, in both modes."""
    parameters = at[:-1]
    y, gradient, _ = derive(getattr(f, name), *at)
    sign = -1 if "ccinv" in name else 1
    with mpmath.workdps(40):
        xs = [*map(mpmath.mpf, parameters), mpmath.mpf(float(y))]
        slopes = [mpmath.diff(cdf, xs, tuple(int(i == k) for i in range(len(xs))))
                  for k in range(len(xs))]  # fmt: skip
        expected = [float(-s / slopes[-1]) for s in slopes[:-1]] + [float(sign / slopes[-1])]
    np.testing.assert_allclose(gradient, expected, 1e-9)
    np.testing.assert_allclose(derive_forward(getattr(f, name), *at)[0], expected, 1e-9)


HYPERGEOMETRIC = [
    ("hyp1f1", mpmath.hyp1f1, (0.5, 1.5, -0.7)),
    ("hyp1f1", mpmath.hyp1f1, (2.2, 0.8, 1.1)),
    ("hyp2f1", mpmath.hyp2f1, (0.5, 1.7, 2.5, 0.3)),
    ("hyp2f1", mpmath.hyp2f1, (2.2, 0.6, 1.4, -0.6)),
]


@pytest.mark.parametrize(("name", "exact", "xs"), HYPERGEOMETRIC)
def test_hypergeometric_functions_of_unequal_parameters(name, exact, xs):
    """First derivatives in all arguments, and in the last those of these."""
    _, gradient, hessian = derive(getattr(f, name), *xs)
    n = len(xs)
    with mpmath.workdps(40):
        at = tuple(map(mpmath.mpf, xs))
        for i in range(n):
            orders = [int(k == i) for k in range(n)]
            np.testing.assert_allclose(gradient[i], float(mpmath.diff(exact, at, orders)), 1e-10)
            orders[-1] += 1
            second = float(mpmath.diff(exact, at, orders))
            np.testing.assert_allclose(hessian[i, -1], second, 1e-9)
            if i < n - 1:
                np.testing.assert_allclose(hessian[-1, i], second, 1e-9)
                assert np.isnan(hessian[i, :-1]).all()


@pytest.mark.parametrize(("m", "v"), [(0, 1.5), (1, 2.7), (2, 3.5)])
@pytest.mark.parametrize("x", [-0.4, 0.3])
def test_legendre_functions(m, v, x):
    exact = lambda t: mpmath.legenp(v, m, t)
    op = lambda t: f.lpmv(full(m, t.type), full(v, t.type), t)
    _, gradient, hessian = derive(op, x)
    with mpmath.workdps(30):
        first, second = (float(mpmath.diff(exact, mpmath.mpf(x), k)) for k in (1, 2))
    np.testing.assert_allclose(gradient, [first], 1e-10)
    np.testing.assert_allclose(hessian, [[second]], 1e-9)


def test_the_exponential_integral_beyond_the_range_of_numbers():
    for x in (720.0, np.inf):
        assert derive(f.expi, x)[1:] == (np.inf, np.inf)
    assert derive(f.expi, -np.inf)[1:] == (0, 0)


@pytest.mark.parametrize("u", [-0.2499, -1e-3, 0.2499])
def test_the_series_of_log1p_holds_for_derivatives_of_higher_order(u):
    """`log(1 + u) / u = int_0^1 1 / (1 + t u) dt`, of which the n-th derivative is an integral."""
    node = input_node(TensorType(float64, ()))
    y = f.log1p_ratio(node)
    for n in range(1, 7):
        (y,) = cotangents(y, [node])
        with mpmath.workdps(30):
            exact = mpmath.quad(lambda t, n=n: (-t) ** n / (1 + t * u) ** (n + 1), [0, 1])
            expected = float(exact * mpmath.factorial(n))
        np.testing.assert_allclose(run(Graph([node], [y]), [np.array(u)]), [expected], 1e-12)
