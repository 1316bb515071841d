"""Samples move with their parameters such that the distribution function stays."""

import mpmath
import numpy as np
import pytest

from retrograd.ir import full
from retrograd.ops.random import implicit_gradients as ig
from tests.ops.derive import const, derive


def moved(cdf, a, z):
    """`-(dF / da) / (dF / dz)`"""
    with mpmath.workdps(30):
        a, z = mpmath.mpf(a), mpmath.mpf(z)
        return float(-mpmath.diff(lambda a: cdf(a, z), a) / mpmath.diff(lambda z: cdf(a, z), z))


def gamma_cdf(a, z):
    return mpmath.gammainc(a, 0, z, regularized=True)


@pytest.mark.parametrize(("a", "z"), [(0.5, 0.1), (3.0, 2.2)])
def test_gamma(a, z):
    value, gradient, _ = derive(lambda a: ig.implicit_gamma(a, const(z, a)), a)
    assert value == z
    np.testing.assert_allclose(gradient, [moved(gamma_cdf, a, z)], rtol=1e-9)
    _, slope, _ = derive(lambda a: ig.implicit_log_gamma(a, const(np.log(z), a)), a)
    np.testing.assert_allclose(slope, gradient / z, rtol=1e-10)


def test_a_gamma_sample_too_small_for_a_number():
    """There `F = z^a / Gamma(a + 1)`: d log(z) / da = (psi(a + 1) - log(z)) / a."""
    a, y = 1e-3, -2000.0
    _, slope, _ = derive(lambda a: ig.implicit_log_gamma(a, const(y, a)), a)
    np.testing.assert_allclose(slope, [(float(mpmath.psi(0, a + 1)) - y) / a], rtol=1e-12)
    below, above = [
        derive(lambda a, y=y: ig.implicit_log_gamma(a, const(y, a)), 0.5)[1] for y in (-33.9, -34.1)
    ]
    np.testing.assert_allclose(below, above, rtol=0.01)


def test_beta():
    a, b, z = 1.5, 0.7, 0.4

    def cdf(a, b, z):
        return mpmath.betainc(a, b, 0, z, regularized=True)

    value, gradient, _ = derive(lambda a, b: ig.implicit_beta(a, b, const(z, a)), a, b)
    assert value == z
    expected = [moved(lambda p, z: cdf(p, b, z), a, z), moved(lambda p, z: cdf(a, p, z), b, z)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)


@pytest.mark.parametrize(("k", "z"), [(0.7, -1.2), (1.5, 0.4)])
def test_von_mises(k, z):
    def cdf(k, z):
        total = mpmath.quad(lambda t: mpmath.exp(k * mpmath.cos(t)), [-mpmath.pi, z])
        return total / (2 * mpmath.pi * mpmath.besseli(0, k))

    value, gradient, _ = derive(lambda k: ig.implicit_von_mises(k, const(z, k)), k)
    assert value == z
    np.testing.assert_allclose(gradient, [moved(cdf, k, z)], rtol=1e-9)


def test_what_is_known_by_its_logarithm_moves_as_the_exponential():
    value, gradient, hessian = derive(lambda a: ig.implicit_exp(a, const(0.0, a)), -800.0)
    assert (value, gradient, hessian) == (0, 0, 0)
    _, gradient, hessian = derive(lambda a: ig.implicit_exp(a, const(3.0, a)), 1.0)
    assert (gradient, hessian) == (3, 3)


def test_what_samples_are_given_has_no_gradient():
    """The last input is the sample itself: nothing flows back through how it was drawn."""
    for op, n in ((ig.implicit_gamma, 2), (ig.implicit_beta, 3), (ig.implicit_von_mises, 2)):
        _, gradient, _ = derive(lambda *xs, op=op: op(*xs) + full(0, xs[0].type), *[0.5] * n)
        assert gradient[-1] == 0
        assert (gradient[:-1] != 0).all()
