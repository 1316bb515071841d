"""Functions of one number and their derivatives in mpmath, and where they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np

import retrograd as rg

Array = np.ndarray[Any, Any]
Exact = Callable[[Any], Any]
mp, mpf = mpmath.mp, mpmath.mpf
S, F = rg.special, rg.nn.functional
TINY, EPS = 1e-30, 2.0**-52


class Case(NamedTuple):
    """A function, what it is, its derivative, and magnitudes of arguments between two bounds, of
    both signs where `signed`; with numbers near `around`, where it has a zero, a pole or an edge.
    """

    f: Callable[[Any], Any]
    value: Exact
    slope: Exact
    low: float
    high: float
    signed: bool = True
    around: tuple[float, ...] = ()


def points(case: Case, count: int, dtype: Any) -> Array:
    """All magnitudes alike."""
    rng = np.random.default_rng(count)
    x = np.exp(rng.uniform(np.log(case.low), np.log(case.high), count))
    near = np.exp(rng.uniform(np.log(1e-6), np.log(0.2), max(4, count // 8)))
    parts = [x, -x] if case.signed else [x]
    parts += [edge + side * near for edge in case.around for side in (1, -1)]
    whole = np.concatenate(parts)
    inside = (np.abs(whole) < case.high) & (whole > (-np.inf if case.signed else 0))
    return np.asarray(whole[inside].astype(dtype))


def density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def bell(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def log_ndtr(x: Any) -> Any:
    return mp.log(mp.ncdf(x)) if x < 5 else mp.log1p(-mp.ncdf(-x))


def mish_slope(x: Any) -> Any:
    return mp.tanh(softplus(x)) + x * mp.sech(softplus(x)) ** 2 * logistic(x)


def i(n: int, x: Any) -> Any:
    return mp.besseli(n, x)


def k(n: int, x: Any) -> Any:
    return mp.besselk(n, x)


def scaled_i1_slope(x: Any) -> Any:
    return (i(0, x) - i(1, x) / x - mp.sign(x) * i(1, x)) * mp.exp(-abs(x))


# fmt: off
CASES: dict[str, Case] = {
    # activations
    "gelu": Case(F.gelu, lambda x: x * mp.ncdf(x), lambda x: mp.ncdf(x) + x * density(x), TINY, 37),
    "silu": Case(F.silu, lambda x: x * logistic(x),
                 lambda x: logistic(x) * (1 + x * logistic(-x)), TINY, 80),
    "mish": Case(F.mish, lambda x: x * mp.tanh(softplus(x)), mish_slope, TINY, 80),
    "tanhshrink": Case(F.tanhshrink, lambda x: x - mp.tanh(x), lambda x: mp.tanh(x) ** 2, TINY, 80,
                       around=(0.6,)),
    "softsign": Case(F.softsign, lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2,
                     TINY, 1e37, around=(1,)),
    "logsigmoid": Case(F.logsigmoid, lambda x: -softplus(-x), lambda x: logistic(-x), TINY, 80),
    "softplus": Case(rg.softplus, softplus, logistic, TINY, 80),
    "sigmoid": Case(rg.sigmoid, logistic, lambda x: logistic(x) * logistic(-x), TINY, 80),
    "hardswish": Case(F.hardswish, lambda x: x * min(max(x + 3, 0), 6) / 6,
                      lambda x: (2 * x + 3) / 6 if abs(x) < 3 else mpf(x > 0), TINY, 80),
    "elu": Case(F.elu, lambda x: x if x > 0 else mp.expm1(x),
                lambda x: mpf(1) if x > 0 else mp.exp(x), TINY, 80),
    # the normal distribution
    "erf": Case(rg.erf, mp.erf, bell, TINY, 26),
    "erfc": Case(rg.erfc, mp.erfc, lambda x: -bell(x), TINY, 26),
    "erfcx": Case(S.erfcx, erfcx, lambda x: 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi), TINY, 26,
                  around=(2.5, 8)),
    "ndtr": Case(S.ndtr, mp.ncdf, density, TINY, 37),
    "log_ndtr": Case(S.log_ndtr, log_ndtr, lambda x: density(x) / mp.ncdf(x), TINY, 37,
                     around=(-3.5,)),
    "erfinv": Case(S.erfinv, mp.erfinv, lambda x: mp.exp(mp.erfinv(x) ** 2) * mp.sqrt(mp.pi) / 2,
                   TINY, 0.99),
    # Bessel functions
    "i0": Case(S.i0, lambda x: i(0, x), lambda x: i(1, x), TINY, 80, around=(1,)),
    "i1": Case(S.i1, lambda x: i(1, x), lambda x: i(0, x) - i(1, x) / x, TINY, 80, around=(1,)),
    "i0e": Case(S.i0e, lambda x: i(0, x) * mp.exp(-abs(x)),
                lambda x: (i(1, x) - mp.sign(x) * i(0, x)) * mp.exp(-abs(x)), TINY, 700),
    "i1e": Case(S.i1e, lambda x: i(1, x) * mp.exp(-abs(x)), scaled_i1_slope, TINY, 700),
    "k0": Case(S.k0, lambda x: k(0, x), lambda x: -k(1, x), TINY, 80, False),
    "k1": Case(S.k1, lambda x: k(1, x), lambda x: -k(0, x) - k(1, x) / x, 1e-18, 80, False),
    "k0e": Case(S.k0e, lambda x: k(0, x) * mp.exp(x), lambda x: (k(0, x) - k(1, x)) * mp.exp(x),
                TINY, 400, False),
    "k1e": Case(S.k1e, lambda x: k(1, x) * mp.exp(x),
                lambda x: (k(1, x) - k(0, x) - k(1, x) / x) * mp.exp(x), 1e-18, 400, False),
    "j0": Case(S.j0, lambda x: mp.besselj(0, x), lambda x: -mp.besselj(1, x), TINY, 2),
    "j1": Case(S.j1, lambda x: mp.besselj(1, x),
               lambda x: mp.besselj(0, x) - mp.besselj(1, x) / x, TINY, 1.5),
    "y0": Case(S.y0, lambda x: mp.bessely(0, x), lambda x: -mp.bessely(1, x), TINY, 0.5, False),
    "y1": Case(S.y1, lambda x: mp.bessely(1, x),
               lambda x: mp.bessely(0, x) - mp.bessely(1, x) / x, 1e-18, 1.9, False),
    # the gamma function, logarithms
    "gamma": Case(S.gamma, mp.gamma, lambda x: mp.gamma(x) * mp.digamma(x), 1e-18, 30, False),
    "entr": Case(S.entr, lambda x: -x * mp.log(x), lambda x: -mp.log(x) - 1, TINY, 1e30, False),
    "logit": Case(S.logit, lambda x: mp.log(x / (1 - x)), lambda x: 1 / x / (1 - x), TINY, 0.999,
                  False),
    "sinc": Case(S.sinc, mp.sincpi, lambda x: (mp.cospi(x) - mp.sincpi(x)) / x, 1e-6, 100,
                 around=(1, 3, 25)),
    # elementary functions
    "exp": Case(rg.exp, mp.exp, mp.exp, TINY, 80),
    "exp2": Case(rg.exp2, lambda x: mpf(2) ** x, lambda x: mp.log(2) * mpf(2) ** x, TINY, 120),
    "expm1": Case(rg.expm1, mp.expm1, mp.exp, TINY, 80),
    "log": Case(rg.log, mp.log, lambda x: 1 / x, TINY, 1e30, False, (1,)),
    "log2": Case(rg.log2, lambda x: mp.log(x, 2), lambda x: 1 / x / mp.log(2), TINY, 1e30, False),
    "log10": Case(rg.log10, mp.log10, lambda x: 1 / x / mp.log(10), TINY, 1e30, False),
    "log1p": Case(rg.log1p, mp.log1p, lambda x: 1 / (1 + x), TINY, 0.999),
    "sqrt": Case(rg.sqrt, mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), TINY, 1e30, False),
    "rsqrt": Case(rg.rsqrt, lambda x: 1 / mp.sqrt(x), lambda x: -1 / mp.sqrt(x) / x / 2,
                  1e-20, 1e20, False),
    "cbrt": Case(rg.cbrt, mp.cbrt, lambda x: 1 / (3 * mp.cbrt(x) ** 2), TINY, 1e30, False),
    "reciprocal": Case(rg.reciprocal, lambda x: 1 / x, lambda x: -1 / x / x, 1e-18, 1e18),
    "sin": Case(rg.sin, mp.sin, mp.cos, TINY, 1e4),
    "cos": Case(rg.cos, mp.cos, lambda x: -mp.sin(x), TINY, 1e4),
    "tan": Case(rg.tan, mp.tan, lambda x: mp.sec(x) ** 2, TINY, 1.57),
    "asin": Case(rg.asin, mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), TINY, 0.99999),
    "acos": Case(rg.acos, mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), TINY, 0.99999),
    "atan": Case(rg.atan, mp.atan, lambda x: 1 / (1 + x * x), TINY, 1e18),
    "sinh": Case(rg.sinh, mp.sinh, mp.cosh, TINY, 80),
    "cosh": Case(rg.cosh, mp.cosh, mp.sinh, TINY, 80),
    "tanh": Case(rg.tanh, mp.tanh, lambda x: mp.sech(x) ** 2, TINY, 40),
    "asinh": Case(rg.asinh, mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), TINY, 1e30),
    "acosh": Case(rg.acosh, mp.acosh, lambda x: 1 / mp.sqrt(x - 1) / mp.sqrt(x + 1), 1.0001, 1e30,
                  False, (1.2,)),
    "atanh": Case(rg.atanh, mp.atanh, lambda x: 1 / (1 - x) / (1 + x), TINY, 0.99999),
}
# fmt: on
