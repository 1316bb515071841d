"""`rg.special` as users call it: against SciPy, and gradients against mpmath's derivatives."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from retrograd.errors import DTypeError, OptionError

special = rg.special
X = np.array([-3.2, -0.5, 0.2, 0.7, 1.5, 6.0, 30.0])
P = np.abs(X)
ONE = (
    "gamma", "gammaln", "digamma", "psi", "gammasgn", "erf", "erfc", "erfcx", "erfinv",
    "erfcinv", "ndtr", "log_ndtr", "ndtri", "logit", "entr", "j0", "j1", "i0", "i1", "i0e",
    "i1e", "y0", "y1", "k0", "k1", "k0e", "k1e", "expit", "log_expit", "log1p",
    "expm1", "exp2", "cbrt",
)  # fmt: skip
TWO = (
    "betaln", "beta", "gammainc", "gammaincc", "xlogy", "xlog1py", "rel_entr", "kl_div",
)  # fmt: skip


def double(x: Any) -> rg.Tensor:
    return rg.tensor(x, dtype=rg.float64)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("name", ONE)
@pytest.mark.sample(10)
def test_one_argument(name: str, backend: str) -> None:
    with rg.backend(backend), np.errstate(all="ignore"):
        found = getattr(special, name)(double(X)).numpy()
        expected = getattr(scipy.special, name)(X)
    np.testing.assert_allclose(found, expected, 1e-13, 1e-15)


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    found = getattr(special, name)(double(P), P[::-1, None].copy()).numpy()
    expected = getattr(scipy.special, name)(P, P[::-1, None])
    np.testing.assert_allclose(found, expected, 1e-13)


def test_the_rest() -> None:
    a, b, x = 2.5, 0.7, np.array([0.0, 0.1, 0.8, 1.0])
    np.testing.assert_allclose(
        special.betainc(double(a), b, x).numpy(), scipy.special.betainc(a, b, x), 1e-14
    )
    np.testing.assert_allclose(
        special.betaincc(double(a), b, x).numpy(), scipy.special.betaincc(a, b, x), 1e-13
    )
    for n in (0, 1, 2, 5):
        expected = scipy.special.polygamma(n, X)
        np.testing.assert_allclose(special.polygamma(n, double(X)).numpy(), expected, 1e-12)
        np.testing.assert_allclose(
            special.polygamma(np.full(7, n), double(X)).numpy(), expected, 1e-12
        )
    np.testing.assert_allclose(special.zeta(double(2.5)).numpy(), scipy.special.zeta(2.5), 1e-14)
    np.testing.assert_allclose(
        special.multigammaln(double(3.5), 3).numpy(), scipy.special.multigammaln(3.5, 3), 1e-14
    )
    np.testing.assert_allclose(special.sinc(double(X)).numpy(), np.sinc(X), 1e-13, 1e-15)


@pytest.mark.parametrize("x", [0.0, 0.1, 0.249, 0.251, 3.0])
def test_sinc_to_the_third_order(x: float) -> None:
    f = special.sinc
    for order in range(1, 4):
        f = rg.grad(f)
        with mpmath.workdps(40):
            exact = mpmath.diff(lambda t: mpmath.sincpi(t), x, order)
        np.testing.assert_allclose(f(double(x)).numpy(), float(exact), 1e-9, 1e-9)


def test_tails_of_the_normal_distribution() -> None:
    """Values and slopes of log_ndtr where ndtr is 0, or 1, in floating point."""
    for x in (-1e4, -40.0, -9.0, -1.0, 0.0, 9.0):
        with mpmath.workdps(500):
            z = mpmath.mpf(x)
            value = mpmath.log(mpmath.ncdf(z)) if x > -1e3 else -z * z / 2
            slope = mpmath.npdf(z) / mpmath.ncdf(z) if x > -1e3 else -z
        y, g = rg.value_and_grad(special.log_ndtr)(double(x))
        tolerance = 1e-12 if x > -1e3 else 1e-6
        np.testing.assert_allclose(y.numpy(), float(value), tolerance)
        np.testing.assert_allclose(g.numpy(), float(slope), tolerance)


@pytest.mark.parametrize("x", [-3.0, 0.3, 7.9, 8.1, 200.0])
def test_erfcx_to_the_second_order(x: float) -> None:
    first, second = rg.grad(special.erfcx), rg.grad(rg.grad(special.erfcx))
    with mpmath.workdps(60):
        z = mpmath.mpf(x)
        y = mpmath.exp(z * z) * mpmath.erfc(z)
        d = 2 * z * y - 2 / mpmath.sqrt(mpmath.pi)
        dd = 2 * y + 2 * z * d
    np.testing.assert_allclose(first(double(x)).numpy(), float(d), 1e-13)
    np.testing.assert_allclose(second(double(x)).numpy(), float(dd), 1e-9)


def test_kinks_and_edges() -> None:
    """What the docstrings promise."""
    grad = rg.grad
    assert grad(special.entr)(0.0).item() == math.inf
    assert grad(special.i0e)(0.0).item() == 0
    assert grad(lambda x: special.xlogy(x, 0.0))(0.0).item() == -math.inf
    assert grad(lambda y: special.xlogy(0.0, y))(0.0).item() == 0
    assert math.isnan(grad(lambda s: special.zeta(s, -2.5))(3.0).item())
    assert math.isnan(grad(lambda n: special.polygamma(n, 2.0))(3.0).item())
    assert math.isnan(grad(lambda n: special.yn(n, 2.0))(3.0).item())
    assert math.isnan(grad(grad(grad(lambda a: special.gammainc(a, 2.0))))(3.0).item())
    # A branch that is not taken contributes nothing, NaN though it is.
    safe = rg.grad(lambda n: rg.where(n > 5, special.polygamma(n, 2.0), n))
    assert safe(3.0).item() == 1


@pytest.mark.slow
def test_the_zeta_function_in_its_exponent() -> None:
    """Of first, second and mixed order, against sums of mpmath."""
    s = np.array([1.05, 7.3, 70.0])
    q = np.array([0.05, 1.0, 1e4])[:, None]
    s, q = (x.ravel() for x in np.broadcast_arrays(s, q))
    slope = rg.grad(lambda s, q: special.zeta(s, q).sum())
    with mpmath.workdps(320):  # it is exact to so many digits after the point
        exact = lambda n, shift=0: np.array([
            float(mpmath.zeta(a + shift, b, n)) for a, b in zip(s.tolist(), q.tolist(), strict=True)
        ])  # fmt: skip
        first, second, mixed = exact(1), exact(2), -exact(0, 1) - s * exact(1, 1)
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            found = slope(double(s), double(q)).numpy()
            np.testing.assert_allclose(found, first, 1e-13, 1e-300)
            twice = rg.grad(lambda s, q: slope(s, q).sum(), argnums=(0, 1))(double(s), double(q))
            np.testing.assert_allclose(twice[0].numpy(), second, 1e-12, 1e-300)
            np.testing.assert_allclose(twice[1].numpy(), mixed, 1e-12, 1e-300)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_slope_of_zeta_in_its_exponent_in_every_dtype(dtype: str) -> None:
    """Down to where it is 0, and for exponents whose powers are."""
    s = np.array([1.5, 2.0, 7.0, 12.0, 30.0, 90.0, 700.0, 6e4])
    got = rg.grad(lambda s: special.zeta(s, 1.25).sum())(rg.asarray(s, dtype=getattr(rg, dtype)))
    with mpmath.workdps(40):
        want = np.array([float(mpmath.zeta(x, 1.25, 1)) for x in s.tolist()])
    kind = getattr(rg, dtype)
    ends = rg.finfo(kind)
    found = got.numpy().astype(float)
    np.testing.assert_allclose(found, want, 8 * ends.eps, float(ends.smallest_normal))
    twice = rg.grad(lambda s: rg.grad(lambda s: special.zeta(s, 1.25).sum())(s).sum())
    assert np.isfinite(twice(rg.asarray(s, dtype=kind)).numpy().astype(float)).all()


def test_implicit_gradients_of_both_parameters() -> None:
    """Of the beta distribution function, first and second order, through a nonlinear function."""

    def f(a: Any, b: Any) -> Any:
        return rg.log(special.betainc(a, b, 0.3)) * a

    def exact(a: Any, b: Any) -> Any:
        return mpmath.log(mpmath.betainc(a, b, 0, mpmath.mpf("0.3"), regularized=True)) * a

    a, b = double(1.7), double(0.6)
    with mpmath.workdps(40):
        for argnum, orders in ((0, (1, 0)), (1, (0, 1))):
            found = rg.grad(f, argnum)(a, b).numpy()
            np.testing.assert_allclose(found, float(mpmath.diff(exact, (1.7, 0.6), orders)), 1e-12)
        mixed = rg.grad(rg.grad(f, 0), 1)(a, b).numpy()
        np.testing.assert_allclose(mixed, float(mpmath.diff(exact, (1.7, 0.6), (1, 1))), 1e-10)


def test_half_precision_is_rounded_once() -> None:
    x = rg.tensor([0.3, 2.0, 11.0], dtype=rg.float16)
    for name in ("gammaln", "log_ndtr", "i0", "sinc"):
        y = getattr(special, name)(x)
        assert y.dtype is rg.float16
        wide = getattr(special, name)(x.astype(rg.float32)).astype(rg.float16)
        np.testing.assert_array_equal(y.numpy(), wide.numpy())


def test_errors() -> None:
    with pytest.raises(OptionError, match="orders from 0 on, not -1"):
        special.polygamma(-1, 2.0)
    with pytest.raises(OptionError, match="dimension from 1 on, not 0"):
        special.multigammaln(2.0, 0)
    with pytest.raises(DTypeError):
        special.gammaln(object())
