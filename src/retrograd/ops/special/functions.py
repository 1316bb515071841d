"""Special functions: elementwise operations with exact derivatives.

The table is read like that of `elementwise`. Functions whose derivatives would leave the table are
kept in families that are closed: `zeta(s, q)` for all derivatives of the gamma function, Bessel
functions of every whole order, the derivatives of the incomplete functions in their parameters up
to the second. What has no derivative here is NaN, never zero: third derivatives of the incomplete
functions in their parameters, and what is defined for whole numbers alone, such as an order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node, float32, full
from retrograd.ops.elementwise import (
    EVEN,
    FLOAT,
    Derivative,
    Elementwise,
    abs,
    add_elementwise,
    bell,
    binary,
    cast,
    drop_if,
    eq,
    exp,
    is_zero,
    isinf,
    keep_if,
    log,
    log1p,
    min,
    one_if,
    pow,
    select,
    sign,
    sqrt,
    unary,
    zdiv,
    zmul,
)
from retrograd.ops.special.asymptotic_series import ZETA_SERIES
from retrograd.ops.special.reference import bessel, from_formula, from_scipy, in_double
from retrograd.ops.special.reference import betaln as betaln_of
from retrograd.ops.special.reference import digamma as digamma_of
from retrograd.ops.special.reference import erfcx as erfcx_of
from retrograd.ops.special.reference import gamma as gamma_of
from retrograd.ops.special.reference import k0e as k0e_of
from retrograd.ops.special.reference import k1e as k1e_of
from retrograd.ops.special.reference import lgamma as lgamma_of
from retrograd.ops.special.reference import ndtr as ndtr_of
from retrograd.ops.special.reference import trigamma as trigamma_of
from retrograd.ops.special.reference import zeta as zeta_of

SQRT_PI = math.sqrt(math.pi)


def like(value: float, x: Node) -> Node:
    """A constant of the type of `x`."""
    return full(value, x.type)


def within(x: Node, bound: float) -> Node:
    """Whether `|x|` is less."""
    y: Node = abs(x) < bound
    return y


def undefined(g: Node, *inputs: Node) -> Node:
    """NaN, but where nothing is asked for; a function of the inputs, whose derivatives are too."""
    total = full(math.nan, g.type)
    for x in inputs:
        total = total * x
    return zmul(g, total)


def ternary(
    name: str, reference: Any, da: Derivative, db: Derivative, dx: Derivative
) -> Elementwise:
    return add_elementwise(Elementwise(name, reference, (da, db, dx), FLOAT))


def _gauss(x: Node) -> Node:
    """The density of the normal distribution."""
    y: Node = bell(x, 0.5) * (1 / math.sqrt(2 * math.pi))
    return y


def _rel_entr(x: Any, y: Any) -> Any:
    return np.where(np.isnan(x) | np.isnan(y), x + y, from_scipy("rel_entr")(x, y))


def _log_ratio(a: Node, b: Node) -> Node:
    """`log(a / b)`; of two logarithms, with their derivatives, where the quotient leaves its range,
    as at zeros. Where both are 0 it is inf, the slope of `a log(a / 0)`."""
    q = a / b
    apart = is_zero(q) | isinf(q) | is_zero(b)
    above = select(apart, one_if(is_zero(a) & is_zero(b), a), q)
    found: Node = log(above) - log(select(apart, b, like(1, b)))
    return found


TERMS = 10  # of the sum, before the integral


def _zeta_slope(s: Node, q: Node) -> Node:
    """`-sum_k log(k + q) (k + q)^-s` for `s > 1` and `q > 0` by Euler's and Maclaurin's formula,
    whose rest is below a unit in the last place of the first terms; else NaN. A formula in both, so
    that its own derivatives are exact, too."""
    if s.dtype.is_half:
        return cast(_zeta_slope(cast(s, float32), cast(q, float32)), s.dtype)
    good = (s > 1) & (q > 0)
    total = like(0, s)
    for k in range(TERMS - 1, -1, -1):
        total = total + log(q + k) * pow(q + k, -s)
    a, rest = q + TERMS, s - 1
    height, width = log(a), pow(a, -s)
    total = total + width * (height * 0.5 + a * (height / rest + 1 / (rest * rest)))
    # Rising factorials of s over powers of a, and their derivatives in s; finite where `width` is
    # 0 already.
    s = min(s, like(400, s))
    rising, slope, square = s / a, 1 / a, a * a
    for k, c in enumerate(ZETA_SERIES):
        total = total - width * c * (slope - rising * height)
        u, v = s + (2 * k + 1), s + (2 * k + 2)
        rising, slope = rising * (u / a) * (v / a), (slope * u * v + rising * (u + v)) / square
    return select(good, -total, like(math.nan, s))


# Rules name ops that are declared on a later line.
digamma: Elementwise
entr: Elementwise
gammainc_dx: Elementwise
gammainc_da: Elementwise
gammainc_daa: Elementwise
betainc_dx: Elementwise
betainc_da: Elementwise
betainc_db: Elementwise
betainc_daa: Elementwise
betainc_dab: Elementwise
betainc_dbb: Elementwise
trigamma: Elementwise
zeta: Elementwise
j1: Elementwise
y1: Elementwise
k1e: Elementwise
i1e: Elementwise
bessel_j: Elementwise
bessel_ie: Elementwise

# fmt: off
# The gamma function. `zeta` is Hurwitz'; at its poles, whole q <= 0, it is inf.
gamma = unary("gamma", gamma_of, lambda g, y, x: zmul(g, y * digamma(x)))
lgamma = unary("lgamma", lgamma_of, lambda g, y, x: zmul(g, digamma(x)))
digamma = unary("digamma", digamma_of, lambda g, y, x: zmul(g, trigamma(x)))
trigamma = unary("trigamma", trigamma_of, lambda g, y, x: zmul(g, -2 * zeta(like(3, x), x)))
zeta = binary("zeta", zeta_of, lambda g, y, s, q: zmul(g, _zeta_slope(s, q)),
              lambda g, y, s, q: -zmul(g, s * zeta(s + 1, q)), FLOAT)
betaln = binary("betaln", betaln_of,
                lambda g, y, a, b: zmul(g, digamma(a) - digamma(a + b)),
                lambda g, y, a, b: zmul(g, digamma(b) - digamma(a + b)), FLOAT)

# The normal distribution.
erfcx = unary("erfcx", erfcx_of, lambda g, y, x: zmul(g, erfcx_slope(y, x)))
ndtr = unary("ndtr", ndtr_of, lambda g, y, x: zmul(g, _gauss(x)))
ndtri = unary("ndtri", from_scipy("ndtri"), lambda g, y, x: zdiv(g, _gauss(y)))
erfinv = unary("erfinv", from_scipy("erfinv"), lambda g, y, x: zmul(g, SQRT_PI / 2 * exp(y * y)))
erfcinv = unary("erfcinv", from_scipy("erfcinv"),
                lambda g, y, x: -zmul(g, SQRT_PI / 2 * exp(y * y)))

# Products with logarithms, 0 where the first factor is: the derivative in it is infinite there.
logit = unary("logit", from_scipy("logit"), lambda g, y, x: zdiv(zdiv(g, x), 1 - x))
xlogy = binary("xlogy", from_scipy("xlogy"), lambda g, y, a, b: zmul(g, log(b)),
               lambda g, y, a, b: zmul(g, zdiv(a, b)), FLOAT)
xlog1py = binary("xlog1py", from_scipy("xlog1py"), lambda g, y, a, b: zmul(g, log1p(b)),
                 lambda g, y, a, b: zmul(g, zdiv(a, 1 + b)), FLOAT)
entr = unary("entr", from_scipy("entr"), lambda g, y, x: -zmul(g, log(x) + 1))
rel_entr = binary("rel_entr", in_double(_rel_entr),
                  lambda g, y, a, b: zmul(g, _log_ratio(a, b) + 1),
                  lambda g, y, a, b: -zmul(g, zdiv(a, b)), FLOAT)

# Bessel functions of the first kind; `bessel_j(n, x)` and `bessel_ie(n, x) = exp(-|x|) I_n(x)` of
# whole orders up to 31. `exp(-|x|)` counts as flat at 0.
j0 = unary("j0", bessel("jv", 0), lambda g, y, x: -zmul(g, j1(x)), traits=(EVEN,))
j1 = unary("j1", bessel("jv", 1), lambda g, y, x: zmul(g, 0.5 * (j0(x) - bessel_j(like(2, x), x))))
i0e = unary("i0e", bessel("ive", 0), lambda g, y, x: zmul(g, select(
    is_far(x), -sign(x) * bessel_gap(x, False), i1e(x) - sign(x) * y)))
i1e = unary("i1e", bessel("ive", 1), lambda g, y, x: zmul(g, select(
    is_far(x), bessel_gap(x, False) - y / x,
    0.5 * (i0e(x) + bessel_ie(like(2, x), x)) - sign(x) * y)))
# Those of the second kind, NaN below 0; `k0e(x) = exp(x) K_0(x)`.
y0 = unary("y0", bessel("yv", 0), lambda g, y, x: -zmul(g, y1(x)))
y1 = unary("y1", bessel("yv", 1), lambda g, y, x: zmul(g, select(
    isinf(y), -y, y0(x) - y / x)))
k0e = unary("k0e", in_double(k0e_of), lambda g, y, x: -zmul(g, select(
    is_far(x), bessel_gap(x, True), k1e(x) - drop_if(isinf(y), y))))
k1e = unary("k1e", in_double(k1e_of), lambda g, y, x: zmul(g, select(
    is_far(x), bessel_gap(x, True), drop_if(isinf(y), y - k0e(x))) - y / x))
bessel_j = binary(
    "bessel_j", bessel("jv"), None,
    lambda g, y, n, x: zmul(g, 0.5 * (bessel_j(n - 1, x) - bessel_j(n + 1, x))), FLOAT)
bessel_ie = binary(
    "bessel_ie", bessel("ive"), None, lambda g, y, n, x: zmul(
        g, 0.5 * (bessel_ie(n - 1, x) + bessel_ie(n + 1, x)) - sign(x) * y), FLOAT)

# The regularised incomplete functions: `_dx` is the derivative in x, `_daa` the second in a.
gammainc = binary("gammainc", from_formula("gammainc"),
                  lambda g, y, a, x: zmul(g, gammainc_da(a, x)),
                  lambda g, y, a, x: zmul(g, gammainc_dx(a, x)), FLOAT)
gammaincc = binary("gammaincc", from_formula("gammaincc"),
                   lambda g, y, a, x: -zmul(g, gammainc_da(a, x)),
                   lambda g, y, a, x: -zmul(g, gammainc_dx(a, x)), FLOAT)
gammainc_dx = binary("gammainc_dx", from_formula("gammainc_dx"),
                     lambda g, y, a, x: zmul(g, gamma_scored(y, a, x)),
                     lambda g, y, a, x: zmul(g, gamma_density_slope(y, a, x)), FLOAT)
gammainc_da = binary("gammainc_da", from_formula("gammainc_da"),
                     lambda g, y, a, x: zmul(g, gammainc_daa(a, x)),
                     lambda g, y, a, x: zmul(g, gamma_scored(gammainc_dx(a, x), a, x)), FLOAT)
gammainc_daa = binary("gammainc_daa", from_formula("gammainc_daa"),
                      lambda g, y, *of: undefined(g, *of),
                      lambda g, y, a, x: zmul(g, zmul(gammainc_dx(a, x), (
                          square(log(x) - digamma(a)) - trigamma(a)))), FLOAT)
betainc = ternary("betainc", from_formula("betainc"),
                  lambda g, y, a, b, x: zmul(g, betainc_da(a, b, x)),
                  lambda g, y, a, b, x: zmul(g, betainc_db(a, b, x)),
                  lambda g, y, a, b, x: zmul(g, betainc_dx(a, b, x)))
betainc_dx = ternary("betainc_dx", from_formula("betainc_dx"),
                     lambda g, y, a, b, x: zmul(g, scored(y, a, b, x)),
                     lambda g, y, a, b, x: zmul(g, scored(y, b, a, 1 - x)),
                     lambda g, y, a, b, x: zmul(g, beta_density_slope(y, a, b, x)))
betainc_da = ternary("betainc_da", from_formula("betainc_da"),
                     lambda g, y, a, b, x: zmul(g, betainc_daa(a, b, x)),
                     lambda g, y, a, b, x: zmul(g, betainc_dab(a, b, x)),
                     lambda g, y, a, b, x: zmul(g, scored(betainc_dx(a, b, x), a, b, x)))
betainc_db = ternary("betainc_db", from_formula("betainc_db"),
                     lambda g, y, a, b, x: zmul(g, betainc_dab(a, b, x)),
                     lambda g, y, a, b, x: zmul(g, betainc_dbb(a, b, x)),
                     lambda g, y, a, b, x: zmul(
                         g, scored(betainc_dx(a, b, x), b, a, 1 - x)))
betainc_daa = ternary("betainc_daa", from_formula("betainc_daa"),
                      lambda g, y, *of: undefined(g, *of), lambda g, y, *of: undefined(g, *of),
                      lambda g, y, a, b, x: zmul(g, zmul(betainc_dx(a, b, x), (
                          square(score(a, b, x)) - trigamma(a) + trigamma(a + b)))))
betainc_dab = ternary("betainc_dab", from_formula("betainc_dab"),
                      lambda g, y, *of: undefined(g, *of), lambda g, y, *of: undefined(g, *of),
                      lambda g, y, a, b, x: zmul(g, zmul(betainc_dx(a, b, x), (
                          score(a, b, x) * score(b, a, 1 - x) + trigamma(a + b)))))
betainc_dbb = ternary("betainc_dbb", from_formula("betainc_dbb"),
                      lambda g, y, *of: undefined(g, *of), lambda g, y, *of: undefined(g, *of),
                      lambda g, y, a, b, x: zmul(g, zmul(betainc_dx(a, b, x), (
                          square(score(b, a, 1 - x)) - trigamma(b) + trigamma(a + b)))))
# fmt: on


def square(x: Node) -> Node:
    y: Node = x * x
    return y


def gamma_scored(y: Node, a: Node, x: Node) -> Node:
    """The density `gammainc_dx(a, x)` times its score `log(x) - digamma(a)`."""
    total: Node = _log_times(y, x, a, lambda low: gammainc_dx(low, x)) - y * digamma(a)
    return total


def scored(y: Node, a: Node, b: Node, x: Node) -> Node:
    """The density `betainc_dx(a, b, x)` times its score in a."""
    less = _log_times(y, x, a, lambda low: betainc_dx(low, b, x))
    total: Node = less + y * (digamma(a + b) - digamma(a))
    return total


def _log_times(y: Node, x: Node, a: Node, density: Callable[[Node], Node]) -> Node:
    """`y log(x)` for `y = density(a)`, which is like `x^(a-1)`. At x = 0 from `a = 1` on the power
    is more than the logarithm: as `x log(x)` times what is like the rest, `density(a - 1)`, so that
    it is 0 for all a, and its slopes in x, which are 0 or infinite, those of the limit."""
    at_edge = zmul(-entr(x), density(a - 1))
    found: Node = select(is_zero(x) & (a > 1.0), at_edge, zmul(y, log(x)))
    return found


def gamma_density_slope(y: Node, a: Node, x: Node) -> Node:
    """Of the density `y = x^(a-1) exp(-x) / Gamma(a)`, in x: `y ((a - 1) / x - 1)`. At 0, where
    that is `0 / 0` from `a = 1` on, by the density of `a - 1`, so that all orders hold."""
    lower = keep_if(a > 1.0, gammainc_dx(a - 1, x))
    slope: Node = select(is_zero(x), lower - y, y * ((a - 1) / x - 1))
    return slope


def beta_density_slope(y: Node, a: Node, b: Node, x: Node) -> Node:
    """Of the density `y = x^(a-1) (1 - x)^(b-1) / B(a, b)`, in x,
    `y ((a - 1) / x - (b - 1) / (1 - x))`; at 0 the first of these, and at 1 the second, by the
    density of a parameter that is less by one."""
    start, end = is_zero(x) & (a >= 1.0), eq(x, like(1, x)) & (b >= 1.0)
    whole = a + b - 1
    at_start = keep_if(a > 1.0, whole * betainc_dx(a - 1, b, x)) - y * (b - 1) / (1 - x)
    at_end = y * (a - 1) / x - keep_if(b > 1.0, whole * betainc_dx(a, b - 1, x))
    inner = y * ((a - 1) / x - (b - 1) / (1 - x))
    slope: Node = select(start, at_start, select(end, at_end, inner))
    return slope


def score(a: Node, b: Node, x: Node) -> Node:
    """The derivative of `log(x^a (1 - x)^b / B(a, b))` in `a`."""
    y: Node = log(x) - digamma(a) + digamma(a + b)
    return y


FAR = 20.0  # from where on Bessel functions of neighbouring orders are close, and have `GAPS`


def is_far(x: Node) -> Node:
    far: Node = abs(x) > FAR
    return far


def _gaps() -> list[float]:
    """Of Hankel's asymptotic series in `FAR / x`, coefficients of order 1 less those of order 0."""
    found, terms = [], [1.0, 1.0]
    for k in range(1, 27):
        terms = [t * (4 * n * n - (2 * k - 1) ** 2) / (8 * k * FAR) for n, t in enumerate(terms)]
        found.append(terms[1] - terms[0])
    return found


GAPS = _gaps()


def bessel_gap(x: Node, is_second: bool) -> Node:
    """`k1e - k0e` at `|x|`, or of the first kind `i0e - i1e`, where the difference would cancel."""
    inverse, total = FAR / abs(x), like(0, x)
    for k in range(len(GAPS), 0, -1):
        total = inverse * (GAPS[k - 1] * (1 if is_second or k % 2 else -1) + total)
    size = math.sqrt(math.pi / 2) if is_second else 1 / math.sqrt(2 * math.pi)
    y: Node = (size / math.sqrt(FAR)) * sqrt(inverse) * total
    return y


def erfcx_slope(y: Node, x: Node) -> Node:
    """`2 x y - 2 / sqrt(pi)`; from 2.5 on, as that cancels, by the continued fraction of
    `y = 1 / (sqrt(pi) (x + q))`, by which it is `-2 q y`."""
    q = like(0, x)
    for k in range(44, 0, -1):
        q = (0.5 * k) / (x + q)
    return select(x > 2.5, -2 * q * y, 2 * x * y - 2 / SQRT_PI)
