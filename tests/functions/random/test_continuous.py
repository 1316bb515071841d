"""Distributions: right by tests of fit against SciPy, the same bits everywhere, exact gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import retrograd as rg
from retrograd.errors import OptionError, ShapeError

COUNT = 4000
Draw = Callable[[rg.random.Generator, Any], rg.Tensor]
CONTINUOUS: dict[str, tuple[Draw, Any]] = {
    "exponential": (lambda g, n: g.exponential(2.0, n), stats.expon(scale=2)),
    "laplace": (lambda g, n: g.laplace(1.0, 2.0, n), stats.laplace(1, 2)),
    "logistic": (lambda g, n: g.logistic(1.0, 2.0, n), stats.logistic(1, 2)),
    "gumbel": (lambda g, n: g.gumbel(1.0, 2.0, n), stats.gumbel_r(1, 2)),
    "cauchy": (lambda g, n: g.cauchy(1.0, 2.0, n), stats.cauchy(1, 2)),
    "lognormal": (lambda g, n: g.lognormal(0.2, 0.5, n), stats.lognorm(0.5, scale=math.exp(0.2))),
    "truncated_normal": (
        lambda g, n: g.truncated_normal(-0.5, 2.0, 1.0, 3.0, n),
        stats.truncnorm(-0.5, 2, 1, 3),
    ),
    "truncated_normal tail": (
        lambda g, n: g.truncated_normal(8.0, 9.0, rg.tensor(0.0, dtype=rg.float64), shape=n),
        stats.truncnorm(8, 9),
    ),
    "gamma": (lambda g, n: g.gamma(2.5, 3.0, n), stats.gamma(2.5, scale=3)),
    "gamma 1": (lambda g, n: g.gamma(1.0, shape=n), stats.gamma(1)),
    "gamma small": (lambda g, n: g.gamma(0.1, shape=n), stats.gamma(0.1)),
    "chi2": (lambda g, n: g.chi2(3.0, n), stats.chi2(3)),
    "beta": (lambda g, n: g.beta(0.5, 2.0, n), stats.beta(0.5, 2)),
    "student_t": (lambda g, n: g.student_t(3.0, n), stats.t(3)),
    "von_mises": (lambda g, n: g.von_mises(0.0, 2.0, n), stats.vonmises(2)),
    "von_mises flat": (lambda g, n: g.von_mises(0.0, 0.01, n), stats.vonmises(0.01)),
    "von_mises steep": (lambda g, n: g.von_mises(0.0, 200.0, n), stats.vonmises(200)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.sample(4)
def test_continuous(name: str) -> None:
    """By Kolmogorov and Smirnov; the bits of both backends, and of samples drawn alone."""
    draw, law = CONTINUOUS[name]
    x = draw(rg.random.Generator(3), (COUNT,)).numpy()
    with rg.backend("reference"):
        y = draw(rg.random.Generator(3), (COUNT,)).numpy()
    assert x.tobytes() == y.tobytes()
    assert stats.kstest(x.astype(float), law.cdf).pvalue > 1e-3


def test_the_test_notices_a_wrong_parameter() -> None:
    x = rg.random.Generator(3).gamma(2.5, 3.0, (COUNT,)).numpy().astype(float)
    assert stats.kstest(x, stats.gamma(2.7, scale=3).cdf).pvalue < 1e-3


def test_dirichlet_and_several_dimensions() -> None:
    alpha = np.array([0.3, 1.0, 2.7])
    x = rg.random.Generator(1).dirichlet(rg.tensor(alpha), (COUNT, 3)).numpy()
    np.testing.assert_allclose(x.sum(-1), 1, 1e-6)
    for i in range(3):
        law = stats.beta(alpha[i], alpha.sum() - alpha[i])
        assert stats.kstest(x[:, i].astype(float), law.cdf).pvalue > 1e-3
    factor = np.array([[2.0, 0.0], [1.0, 0.5]])
    y = rg.random.Generator(2).multivariate_normal([1.0, -1.0], factor, (COUNT,)).numpy()
    np.testing.assert_allclose(y.mean(0), [1, -1], atol=0.15)
    np.testing.assert_allclose(np.cov(y.T), factor @ factor.T, atol=0.3)


def double(x: Any) -> rg.Tensor:
    return rg.tensor(x, dtype=rg.float64)


def quantile_slope(x: float, cdf: Callable[..., Any], at: Any) -> float:
    """How a sample moves with a parameter while its distribution function stays."""
    with mpmath.workdps(40):
        da = mpmath.diff(lambda a: cdf(a, x), at)
        dx = mpmath.diff(lambda t: cdf(at, t), x)
        return float(-da / dx)


@pytest.mark.parametrize("a", [0.2, 1.0, 3.7, 60.0])
def test_gradients_of_gamma(a: float) -> None:
    def draw(p: Any) -> Any:
        return rg.random.Generator(5).gamma(p, shape=())

    x = float(draw(double(a)).numpy())

    def cdf(p, t):
        return mpmath.gammainc(p, 0, t, regularized=True)

    found = rg.grad(draw)(double(a)).numpy()
    np.testing.assert_allclose(found, quantile_slope(x, cdf, a), 1e-9)
    # The second derivative against differences of the first along the same quantile.
    level = special.gammainc(a, x)

    def slope(p: float) -> float:
        return quantile_slope(float(special.gammaincinv(p, level)), cdf, p)

    h = 1e-3 * a
    second = rg.grad(rg.grad(draw))(double(a)).numpy()
    np.testing.assert_allclose(second, (slope(a + h) - slope(a - h)) / (2 * h), 1e-3, 1e-6)


def test_gradients_of_beta() -> None:
    for a, b in ((0.5, 0.7), (3.0, 1.5)):

        def draw(p, q):
            return rg.random.Generator(8).beta(p, q, ())

        x = float(draw(double(a), double(b)).numpy())
        for k in range(2):

            def cdf(p: Any, t: Any, k: int = k, a: float = a, b: float = b) -> Any:
                given = (p, b) if k == 0 else (a, p)
                return mpmath.betainc(*given, 0, t, regularized=True)

            found = rg.grad(draw, k)(double(a), double(b)).numpy()
            np.testing.assert_allclose(found, quantile_slope(x, cdf, (a, b)[k]), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("k", [0.3, 2.0, 20.0])
@pytest.mark.sample(1)
def test_gradient_of_von_mises(k: float) -> None:
    def draw(p):
        return rg.random.Generator(4).von_mises(double(0.5), p, ())

    x = float(draw(double(k)).numpy()) - 0.5

    def cdf(p: Any, t: Any) -> Any:
        def density(s):
            return mpmath.exp(p * mpmath.cos(s)) / (2 * mpmath.pi * mpmath.besseli(0, p))

        return mpmath.quad(density, mpmath.linspace(-mpmath.pi, t, 5))

    with mpmath.workdps(25):
        np.testing.assert_allclose(
            rg.grad(draw)(double(k)).numpy(), quantile_slope(x, cdf, k), 1e-7
        )


@pytest.mark.slow
def test_gradients_through_gammas() -> None:
    """Student's t and Dirichlet samples: differences of means over the parameter."""
    n = 50_000

    def spread(df: Any) -> Any:
        return rg.mean(rg.abs(rg.random.Generator(6).student_t(df, (n,))))

    df = 5.0
    exact = mpmath.diff(
        lambda v: 2 * mpmath.sqrt(v / mpmath.pi) * mpmath.gamma((v + 1) / 2)
        / (mpmath.gamma(v / 2) * (v - 1)), df,
    )  # fmt: skip
    np.testing.assert_allclose(rg.grad(spread)(double(df)).numpy(), float(exact), atol=8e-3)

    def second_moment(alpha: Any) -> Any:
        return rg.mean(rg.random.Generator(7).dirichlet(alpha, (n, 3)) ** 2, axis=0)[0]

    alpha = np.array([0.4, 1.0, 2.0])

    def exact_moment(a: Any, b: Any, c: Any) -> Any:
        return a * (a + 1) / ((a + b + c) * (a + b + c + 1))

    found = rg.grad(second_moment)(double(alpha)).numpy()
    for k in range(3):
        order = tuple(int(i == k) for i in range(3))
        np.testing.assert_allclose(
            found[k], float(mpmath.diff(exact_moment, alpha, order)), atol=6e-3
        )


def test_location_scale_and_lognormal_gradients() -> None:
    for name in ("laplace", "logistic", "gumbel", "cauchy"):

        def f(loc, scale, name=name):
            return getattr(rg.random.Generator(2), name)(loc, scale, ())

        z = f(double(0.0), double(1.0)).numpy()
        assert rg.grad(f, 0)(double(3.0), double(2.0)).item() == 1
        np.testing.assert_allclose(rg.grad(f, 1)(double(3.0), double(2.0)).numpy(), z)

    def exponential(m: Any, s: Any) -> Any:
        return rg.random.Generator(2).lognormal(m, s, ())

    x, z = (
        exponential(double(0.3), double(0.5)).numpy(),
        exponential(double(0.0), double(1.0)).numpy(),
    )
    np.testing.assert_allclose(rg.grad(exponential, 0)(double(0.3), double(0.5)).numpy(), x)
    np.testing.assert_allclose(
        rg.grad(exponential, 1)(double(0.3), double(0.5)).numpy(), x * np.log(z)
    )


def test_parameters_out_of_range() -> None:
    g = rg.random.Generator(0)
    assert np.isnan(g.gamma([-1.0, 0.0]).numpy()).all()
    assert np.isnan(g.von_mises(0.0, -1.0).numpy())
    assert g.poisson([-1.0, math.nan]).tolist() == [-1, -1]
    assert g.binomial(3, [-0.1, 1.1]).tolist() == [-1, -1]
    assert g.geometric([0.0, 2.0, 1.0]).tolist() == [-1, -1, 1]
    assert g.binomial(7, [0.0, 1.0]).tolist() == [0, 7]
    assert g.poisson(0.0).item() == 0
    with pytest.raises(OptionError, match="low, 2, is less than high, 1"):
        g.truncated_normal(2, 1)
    with pytest.raises(OptionError, match="tau is positive"):
        g.gumbel_softmax([0.0], 0.0)
    with pytest.raises(ShapeError, match="5 of 3 elements without replacement"):
        g.choice(3, (5,), replace=False)
    with pytest.raises(ShapeError, match="p has 3 probabilities"):
        g.choice(3, p=[0.5, 0.5])
    with pytest.raises(ShapeError, match="a factor"):
        g.multivariate_normal([0.0], [[1.0, 0.0], [0.0, 1.0]])
