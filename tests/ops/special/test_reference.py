"""The meaning of special functions against mpmath, where SciPy's own lose digits or are slow."""

import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
import scipy.special

from retrograd.ops.special import reference as r

INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def _as_inside_of_operations() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def exact(f, *xs):
    with mpmath.workdps(40):
        return [float(f(*map(mpmath.mpf, x))) for x in zip(*xs, strict=True)]


def test_hurwitz_zeta_of_negative_arguments():
    """zeta(s, q) = sum of (q + n)^-s over what is above 0, and over what is below, by signs."""
    s, q = np.array([2.0, 3.0, 3.0, 4.0]), np.array([-0.5, -1.25, 2.5, -3.75])

    def zeta(s, q):
        shift = max(0, math.ceil(-q))
        return mpmath.zeta(s, q + shift) + sum((q + n) ** -s for n in range(shift))

    np.testing.assert_allclose(r.zeta(s, q), exact(zeta, s, q), rtol=1e-14)
    s, q = np.array([2.0, 2.0, 1.0, 0.5, 2.5, 3.0]), np.array([0.0, -3.0, 2.0, 2.0, -0.5, INF])
    odd = r.zeta(s, q)
    np.testing.assert_array_equal(odd, [INF, INF, INF, NAN, NAN, 0])


def test_trigamma_is_a_zeta():
    x = np.array([0.1, 1.0, -1.5, 30.0])
    np.testing.assert_allclose(r.trigamma(x), exact(lambda x: mpmath.psi(1, x), x), rtol=1e-14)


def test_betaln_of_large_numbers():
    """lgamma(a) + lgamma(b) - lgamma(a + b) would lose all digits."""
    a, b = np.array([1e-3, 2.5, 1e10, 3.0]), np.array([1e12, 0.5, 1e10, 1e15])

    def betaln(a, b):
        return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)

    with mpmath.workdps(60):
        expected = [float(betaln(mpmath.mpf(x), mpmath.mpf(y))) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(r.betaln(a, b), expected, rtol=1e-14)
    np.testing.assert_array_equal(r.betaln(np.array([0.0, INF]), np.array([1.0, 1.0])), [INF, -INF])


@pytest.mark.parametrize("x", [-25.3, -3.7, 0.0, 4.2])
def test_erfcx_and_ndtr_have_no_error_of_a_square(x):
    x = np.array([x])
    erfcx = exact(lambda x: mpmath.exp(x * x) * mpmath.erfc(x), x)
    np.testing.assert_allclose(r.erfcx(x), erfcx, rtol=2e-15)
    np.testing.assert_allclose(r.ndtr(x), exact(mpmath.ncdf, x), rtol=2e-15)


def test_lgamma_at_minus_infinity():
    np.testing.assert_array_equal(r.lgamma(np.array([-INF, -2.0, 1.0])), [INF, INF, 0])


def test_bessel_functions_of_whole_orders_only():
    n, x = np.array([2.0, 1.5, 32.0, 3.0]), np.array([1.3, 1.3, 1.3, INF])
    y = r.bessel("jv")(n, x)
    np.testing.assert_allclose(y[0], float(mpmath.besselj(2, 1.3)), rtol=1e-14)
    np.testing.assert_array_equal(y[1:], [NAN, NAN, 0])
    assert r.bessel("yv", 0)(np.array([INF])) == 0


def test_float32_is_computed_in_double_precision():
    x = np.array([0.3, 20.0], np.float32)
    y = r.from_scipy("gammaln")(x)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.float32(exact(mpmath.loggamma, x.tolist())))


@pytest.mark.parametrize("x", [-0.4, 1e-9, 0.2, 0.49, 3.0])
def test_rests_are_relatively_accurate(x):
    m, at = r.NumPyIncompleteMath(), np.array([x])
    exp, log = exact(lambda x: mpmath.expm1(x) - x, at), exact(lambda x: mpmath.log1p(x) - x, at)
    np.testing.assert_allclose(m.expm1_rest(at), exp, rtol=1e-14)
    np.testing.assert_allclose(m.log1p_rest(at), log, rtol=1e-14)


def test_log_gamma_near_two():
    t = np.array([-0.5, -1e-9, 0.0, 1e-9, 0.5])
    found = r.NumPyIncompleteMath().log_gamma_near_two(t)
    np.testing.assert_allclose(found, exact(lambda t: mpmath.loggamma(2 + t), t), rtol=1e-14)


def test_hurwitz_zeta_of_very_large_exponents_is_its_first_term():
    s = np.array([INF, 1e300, 1e17, 1e17, INF, INF, INF])
    q = np.array([2.0, 2.0, 2.0, 1.0 + 2.0**-51, 1.0, 0.5, INF])
    first = float(mpmath.power(1 + mpmath.mpf(2) ** -51, -int(1e17)))
    np.testing.assert_allclose(r.zeta(s, q), [0, 0, 0, first, 1, INF, 0], rtol=1e-12)


def test_digamma_where_scipy_is_absent():
    """Within a few units of its size around; poles and ends as SciPy has them."""
    x = np.concatenate([np.linspace(-9.7, 20, 300), [1e-300, 1e-5, 1e5, 1e300, 1.4616321449683622]])
    with mpmath.workdps(40):
        exact = [float(mpmath.digamma(mpmath.mpf(float(t)))) for t in x]
    found = r.digamma_by_series(x)
    scale = np.maximum(np.abs(exact), 1)
    assert (np.abs(found - exact) <= 1e-14 * scale).all()
    edges = np.array([0.0, -0.0, -1.0, -3.0, np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(r.digamma_by_series(edges), scipy.special.digamma(edges))


def test_subnormal_arguments_near_a_pole():
    """Where SciPy gives infinity, or NaN."""
    x = np.array([5e-324, 1e-310, 1e-305, 2.0**-1000, 1e-290])
    np.testing.assert_allclose(r.k0e(x), exact(lambda t: mpmath.besselk(0, t), x), rtol=1e-15)
    np.testing.assert_allclose(r.k1e(x), [INF, INF, 1e305, 2.0**1000, 1e290], rtol=1e-15)
    np.testing.assert_allclose(r.lgamma(x), exact(mpmath.loggamma, x), rtol=1e-15)
    np.testing.assert_allclose(r.lgamma(-x), r.lgamma(x), rtol=1e-15)
    np.testing.assert_array_equal(r.k0e(np.array([0.0, -5e-324])), [INF, NAN])
    np.testing.assert_array_equal(r.k1e(np.array([0.0, -5e-324])), [INF, NAN])
    np.testing.assert_array_equal(r.lgamma(np.array([0.0, -0.0])), [INF, INF])
