"""Ratios of gamma functions and inverses of incomplete ones: against SciPy and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from tests.functions.special.derivatives import check, double

mp = mpmath.mp
X = np.array([-30, -10.5, -3, -2.2, -1, -0.5, -1e-3, 0, 0.3, 0.5, 1, 1.5, 2, 3.7, 30, 150.5])
P = np.array([0.0, 1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0])
D = np.array([0.5, 1, 3.5, 30, 1000])
CALLS: dict[str, Any] = {
    "rgamma": (X,),
    "loggamma": (X,),
    "poch": (X, X[:, None]),
    "binom": (X, X[:, None]),
    "gammaincinv": (D[:, None], P),
    "gammainccinv": (D[:, None], P),
    "betaincinv": (D[:, None, None], D[:, None], P),
    "betainccinv": (D[:, None, None], D[:, None], P),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name: str) -> None:
    args = [np.array(a) for a in CALLS[name]]
    with np.errstate(all="ignore"), rg.backend("reference"):
        found = getattr(rg.special, name)(*map(double, args)).numpy()
        right = getattr(scipy.special, name)(*args)
    np.testing.assert_allclose(found, right, 5e-12, 1e-300)


def inverse_gamma(a: Any, p: Any) -> Any:
    start = mp.mpf(float(scipy.special.gammaincinv(float(a), float(p))))
    return mp.findroot(lambda x: mp.gammainc(a, 0, x, regularized=True) - p, start)


def inverse_beta(a: Any, b: Any, p: Any) -> Any:
    start = mp.mpf(float(scipy.special.betaincinv(float(a), float(b), float(p))))
    return mp.findroot(lambda x: mp.betainc(a, b, 0, x, regularized=True) - p, start)


CASES: dict[str, Any] = {
    "rgamma": (mp.rgamma, [(-3.0,), (-2.5,), (0.0,), (0.5,), (9.0,), (171.5,)], [(1,), (2,)]),
    "loggamma": (mp.loggamma, [(0.3,), (9.0,)], [(1,), (2,)]),
    "beta": (lambda a, b: mp.gamma(a) * mp.gamma(b) * mp.rgamma(a + b),
             [(0.5, -1.5), (-2.5, 0.5), (-2.5, -3.2), (0.3, 9.0)], [(0, 0), (1, 0), (0, 1)]),
    "poch": (mp.rf, [(2.3, 3.0), (0.4, -2.5), (200.0, 3.5)], [(0, 0), (1, 0), (0, 1), (1, 1)]),
    "binom": (mp.binomial, [(5.0, 2.0), (2.5, 0.7), (1.5, 4.5), (1e-9, 0.3)],
              [(0, 0), (1, 0), (0, 1)]),
    "gammaincinv": (inverse_gamma, [(0.7, 0.2), (9.0, 0.6)], [(1, 0), (0, 1), (0, 2)]),
    "gammainccinv": (lambda a, q: inverse_gamma(a, 1 - q), [(0.7, 0.2), (9.0, 0.6)],
                     [(1, 0), (0, 1)]),
    "betaincinv": (inverse_beta, [(0.7, 2.0, 0.2), (9.0, 3.0, 0.6)],
                   [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 2)]),
    "betainccinv": (lambda a, b, q: inverse_beta(a, b, 1 - q), [(0.7, 2.0, 0.2)],
                    [(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(4)
def test_derivatives(name: str) -> None:
    exact, points, orders = CASES[name]
    with rg.backend("reference"):
        check(name, exact, points, orders, 1e-10)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_the_beta_function_at_its_poles_is_scipys(backend: str) -> None:
    at = np.arange(-6.0, 5.0)
    a, b = (x.ravel() for x in np.meshgrid(at, np.concatenate([at[at != 0], [-1.5, 2.5]])))
    with rg.backend(backend), np.errstate(all="ignore"):
        found = rg.special.beta(double(a), double(b)).numpy()
        logarithm = rg.special.betaln(double(a), double(b)).numpy()
    right = scipy.special.beta(a, b)
    right = np.where(np.isinf(right), np.inf, right)  # -inf at (0, -1), not at (-1, 0)
    np.testing.assert_allclose(found, right, 1e-12, 1e-300)
    np.testing.assert_allclose(logarithm, np.log(np.abs(right)), 1e-12, 1e-14)


def test_the_beta_function_at_a_pole_has_no_finite_gradient() -> None:
    for a, b in ((-3.0, 2.0), (-3.0, 2.5), (2.0, -3.0)):
        found = rg.grad(rg.special.beta, argnums=(0, 1))(double(a), double(b))
        assert not any(np.isfinite(float(g)) for g in found)
