"""Special functions that are rare: SciPy computes them in compiled programs, too, which call it.

Their derivatives are those of the table in `functions`; what has none here is NaN, never zero: the
exponential integrals in their order, the hypergeometric functions in their parameters from the
second on, and Legendre functions in theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import (
    FLOAT,
    Derivative,
    Elementwise,
    add_elementwise,
    binary,
    drop_if,
    exp,
    is_zero,
    isinf,
    log,
    one_if,
    select,
    unary,
    zdiv,
    zmul,
)
from retrograd.ops.special import hypergeometric
from retrograd.ops.special.functions import (
    betainc_da,
    betainc_db,
    betainc_dx,
    betaln,
    gammainc_da,
    gammainc_dx,
    lgamma,
    like,
    ternary,
    undefined,
    within,
)
from retrograd.ops.special.reference import from_scipy, in_double, of_order, scipy

SMALL = 0.1  # the parameter of elliptic integrals, below which their slopes are series
NEAR = 0.25  # within which of 0 `log1p(u) / u` is its series


def log1p_ratio(u: Node) -> Node:
    """`log(1 + u) / u`, 1 at 0: near there `2 atanh(s) / u` of `s = u / (2 + u)` by its series, so
    that all derivatives hold."""
    s = u / (u + 2)
    square, series = s * s, like(1 / 23, u)
    for k in range(21, 0, -2):
        series = series * square + 1 / k
    y: Node = select(within(u, NEAR), series * 2 / (u + 2), el.log1p(u) / u)
    return y


def _exp1(x: Any) -> Any:
    """SciPy's has no real value below 0."""
    return np.where(x < 0, np.nan, scipy("exp1")(np.abs(x)))


def _expn_slope(n: Node, y: Node, x: Node) -> Node:
    """`-E_{n-1}(x)`, of `y = E_n(x)`; of orders below 1 that is none of SciPy's, and
    `(exp(-x) - (n - 1) y) / x`, which cancels for higher ones."""
    return el.neg(select(n > 1.5, expn(n - 1, x), (exp(-x) - zmul(n - 1, y)) / x))


def _spence_slope(x: Node) -> Node:
    """`log(x) / (1 - x)`."""
    y: Node = select(within(x - 1, NEAR), -log1p_ratio(x - 1), log(x) / (1 - x))
    return y


def _near_zero(m: Node, y: Node, terms: list[float]) -> Node:
    """y, but for small m `sum_n terms[n] m**n`, as differences of the integrals cancel there."""
    series = like(0, m)
    for c in reversed(terms):
        series = series * m + c
    found: Node = select(within(m, SMALL), series, y)
    return found


# Of the powers of m in the integral of the first kind.
_SQUARES = [(math.comb(2 * n, n) / 4**n) ** 2 for n in range(20)]
_FIRST = [math.pi / 2 * n * c for n, c in enumerate(_SQUARES)][1:]
_SECOND = [-math.pi / 2 * n / (2 * n - 1) * c for n, c in enumerate(_SQUARES)][1:]


def _first_slope(p: Node, y: Node) -> Node:
    """`(E - (1 - m) K) / (2 m (1 - m))` for `m = 1 - p`."""
    m = 1 - p
    return _near_zero(m, (ellipe(m) - zmul(p, y)) / (2 * m * p), _FIRST)


def _second_slope(m: Node, y: Node) -> Node:
    """`(E - K) / (2 m)`."""
    return _near_zero(m, (y - ellipkm1(1 - m)) / (2 * m), _SECOND)


def _legendre_slope(m: Node, v: Node, x: Node) -> Node:
    y: Node = (v * x * lpmv(m, v, x) - (v + m) * lpmv(m, v - 1, x)) / ((x - 1) * (x + 1))
    return y


def _power_slope(log_scale: Node, a: Node, p: Node) -> Node:
    """The slope in p of `(c p)^(1/a)`, c by its logarithm: how a quantile leaves an end of its
    range."""
    inverse = 1 / a
    y: Node = exp(log_scale * inverse) * inverse * el.pow(p, inverse - 1)
    return y


def _gamma_quantile_in_a(a: Node, y: Node) -> Node:
    """Of the y at which `gammainc(a, y)` has a value, in a. Where y is at an end of its range, 0 or
    inf, it is there for all a."""
    return drop_if(is_zero(y) | isinf(y), -gammainc_da(a, y) / gammainc_dx(a, y))


def _gamma_quantile_in_p(a: Node, y: Node, p: Node, q: Node) -> Node:
    """Of the y at which `gammainc(a, y)` is `p = 1 - q`, in p; at an end that of the leading term.
    For a = 1 the density is smooth at 0."""
    start, far = is_zero(y) & el.ne(a, like(1, a)), isinf(y)
    low = _power_slope(lgamma(a + 1), a, p)
    smooth = el.reciprocal(gammainc_dx(a, y))
    return select(start, low, select(far, el.reciprocal(q), smooth))


def _beta_quantile_in_a(a: Node, b: Node, y: Node) -> Node:
    """Of the y at which `betainc(a, b, y)` has a value, in a. At 0 it is there for all a. At 1 the
    distance from there is scaled by a: for b = 1 it is `(1 - p) / a`, and for others its slopes are
    0 or infinite."""
    end = (1 - y) / a
    slope = -betainc_da(a, b, y) / betainc_dx(a, b, y)
    return drop_if(is_zero(y), select(el.eq(y, like(1, y)), end, slope))


def _beta_quantile_in_b(a: Node, b: Node, y: Node) -> Node:
    """The same in b, with the ends exchanged."""
    end = -y / b
    slope = -betainc_db(a, b, y) / betainc_dx(a, b, y)
    return drop_if(el.eq(y, like(1, y)), select(is_zero(y), end, slope))


def _beta_quantile_in_p(a: Node, b: Node, y: Node, p: Node, q: Node) -> Node:
    """Of the y at which `betainc(a, b, y)` is `p = 1 - q`, in p; at an end that of the leading
    term, where the density is not smooth."""
    start = is_zero(y) & el.ne(a, like(1, a))
    end = el.eq(y, like(1, y)) & el.ne(b, like(1, b))
    log_beta = betaln(a, b)
    low = _power_slope(log_beta + log(a), a, p)
    high = _power_slope(log_beta + log(b), b, q)
    smooth = el.reciprocal(betainc_dx(a, b, y))
    return select(start, low, select(end, high, smooth))


# Rules name ops that are declared on a later line.
ellipe: Elementwise
ellipkm1: Elementwise
expn: Elementwise
lpmv: Elementwise
yn: Elementwise
hyp1f1: Elementwise
hyp1f1_da: Elementwise
hyp1f1_db: Elementwise
hyp2f1: Elementwise
hyp2f1_da: Elementwise
hyp2f1_dc: Elementwise


def of_four(name: str, reference: Any, derivatives: tuple[Derivative, ...]) -> Elementwise:
    return add_elementwise(Elementwise(name, reference, derivatives, FLOAT))


# fmt: off
spence = unary("spence", from_scipy("spence"), lambda g, y, x: zmul(g, _spence_slope(x)))
ellipkm1 = unary("ellipkm1", from_scipy("ellipkm1"), lambda g, y, p: -zmul(g, _first_slope(p, y)))
ellipe = unary("ellipe", from_scipy("ellipe"), lambda g, y, m: zmul(g, _second_slope(m, y)))
exp1 = unary("exp1", in_double(_exp1), lambda g, y, x: -zdiv(zmul(g, exp(-x)), x))
expi = unary("expi", from_scipy("expi"), lambda g, y, x: zdiv(
    zmul(g, exp(x)), one_if(isinf(exp(x)), x)))
expn = binary("expn", of_order("expn"), lambda g, y, *of: undefined(g, *of),
              lambda g, y, n, x: zmul(g, _expn_slope(n, y, x)), FLOAT)
yn = binary("yn", of_order("yn"), lambda g, y, *of: undefined(g, *of),
            lambda g, y, n, x: zmul(g, 0.5 * (yn(n - 1, x) - yn(n + 1, x))), FLOAT)
gammaincinv = binary("gammaincinv", from_scipy("gammaincinv"),
                     lambda g, y, a, p: zmul(g, _gamma_quantile_in_a(a, y)),
                     lambda g, y, a, p: zmul(g, _gamma_quantile_in_p(a, y, p, 1 - p)), FLOAT)
gammainccinv = binary("gammainccinv", from_scipy("gammainccinv"),
                      lambda g, y, a, q: zmul(g, _gamma_quantile_in_a(a, y)),
                      lambda g, y, a, q: -zmul(g, _gamma_quantile_in_p(a, y, 1 - q, q)), FLOAT)
betaincinv = ternary("betaincinv", from_scipy("betaincinv"),
                     lambda g, y, a, b, p: zmul(g, _beta_quantile_in_a(a, b, y)),
                     lambda g, y, a, b, p: zmul(g, _beta_quantile_in_b(a, b, y)),
                     lambda g, y, a, b, p: zmul(g, _beta_quantile_in_p(a, b, y, p, 1 - p)))
betainccinv = ternary(
    "betainccinv", from_scipy("betainccinv"),
    lambda g, y, a, b, q: zmul(g, _beta_quantile_in_a(a, b, y)),
    lambda g, y, a, b, q: zmul(g, _beta_quantile_in_b(a, b, y)),
    lambda g, y, a, b, q: -zmul(g, _beta_quantile_in_p(a, b, y, 1 - q, q)))
hyp1f1 = ternary("hyp1f1", hypergeometric.hyp1f1,
                 lambda g, y, *of: zmul(g, hyp1f1_da(*of)),
                 lambda g, y, *of: zmul(g, hyp1f1_db(*of)),
                 lambda g, y, a, b, x: zmul(g, a / b * hyp1f1(a + 1, b + 1, x)))
hyp1f1_da = ternary(
    "hyp1f1_da", hypergeometric.hyp1f1_da,
    lambda g, y, *of: undefined(g, *of), lambda g, y, *of: undefined(g, *of),
    lambda g, y, a, b, x: zmul(g, (
        hyp1f1(a + 1, b + 1, x) + a * hyp1f1_da(a + 1, b + 1, x)) / b))
hyp1f1_db = ternary(
    "hyp1f1_db", hypergeometric.hyp1f1_db,
    lambda g, y, *of: undefined(g, *of), lambda g, y, *of: undefined(g, *of),
    lambda g, y, a, b, x: zmul(g, a / b * (
        hyp1f1_db(a + 1, b + 1, x) - hyp1f1(a + 1, b + 1, x) / b)))
lpmv = ternary("lpmv", of_order("lpmv"), lambda g, y, *of: undefined(g, *of),
               lambda g, y, *of: undefined(g, *of),
               lambda g, y, m, v, x: zmul(g, _legendre_slope(m, v, x)))
hyp2f1 = of_four("hyp2f1", from_scipy("hyp2f1"), (
    lambda g, y, *of: zmul(g, hyp2f1_da(*of)),
    lambda g, y, a, b, c, x: zmul(g, hyp2f1_da(b, a, c, x)),
    lambda g, y, *of: zmul(g, hyp2f1_dc(*of)),
    lambda g, y, a, b, c, x: zmul(g, a * b / c * hyp2f1(a + 1, b + 1, c + 1, x))))
hyp2f1_da = of_four("hyp2f1_da", hypergeometric.hyp2f1_da, (
    *[lambda g, y, *of: undefined(g, *of)] * 3,
    lambda g, y, a, b, c, x: zmul(g, b / c * (
        hyp2f1(a + 1, b + 1, c + 1, x) + a * hyp2f1_da(a + 1, b + 1, c + 1, x)))))
hyp2f1_dc = of_four("hyp2f1_dc", hypergeometric.hyp2f1_dc, (
    *[lambda g, y, *of: undefined(g, *of)] * 3,
    lambda g, y, a, b, c, x: zmul(g, a * b / c * (
        hyp2f1_dc(a + 1, b + 1, c + 1, x) - hyp2f1(a + 1, b + 1, c + 1, x) / c))))
# fmt: on
FROM_SCIPY = (
    spence,
    ellipkm1,
    ellipe,
    exp1,
    expi,
    expn,
    yn,
    gammaincinv,
    gammainccinv,
    betaincinv,
    betainccinv,
    hyp1f1,
    hyp1f1_da,
    hyp1f1_db,
    lpmv,
    hyp2f1,
    hyp2f1_da,
    hyp2f1_dc,
)  # fmt: skip
