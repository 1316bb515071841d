"""Special functions that are rare: SciPy computes them in compiled programs, too, which call it.

Their derivatives are those of the table in `functions`; what has none here is NaN, never zero: the
exponential integrals in their order, the hypergeometric functions in their parameters, and Legendre
functions in theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import (
    FLOAT,
    Elementwise,
    add_elementwise,
    binary,
    exp,
    log,
    select,
    unary,
    zdiv,
    zmul,
)
from retrograd.ops.special.functions import (
    betainc_da,
    betainc_db,
    betainc_dx,
    gammainc_da,
    gammainc_dx,
    like,
    ternary,
    undefined,
)
from retrograd.ops.special.reference import from_scipy, in_double, of_order, scipy

SMALL = 0.1  # the parameter of elliptic integrals, below which their slopes are series
NEAR = 0.25  # within which of 0 `log1p(u) / u` is its series


def log1p_ratio(u: Node) -> Node:
    """`log(1 + u) / u`, 1 at 0: near there `2 atanh(s) / u` of `s = u / (2 + u)` by its series, so
    that all derivatives hold."""
    near = (u < NEAR) & (u > -NEAR)
    t = select(near, u, like(0, u))
    s = t / (t + 2)
    square, series = s * s, like(1 / 23, u)
    for k in range(21, 0, -2):
        series = series * square + 1 / k
    far = select(near, like(1, u), u)
    y: Node = select(near, series * 2 / (t + 2), el.log1p(far) / far)
    return y


def _exp1(x: Any) -> Any:
    """SciPy's has no real value below 0."""
    return np.where(x < 0, np.nan, scipy("exp1")(np.abs(x)))


def _expn_slope(n: Node, x: Node) -> Node:
    """`-E_{n-1}(x)`, where `E_0` is `exp(-x) / x`, and of lower orders nothing is defined."""
    lower = select(n > 0.5, n - 1, like(0, n))
    return el.neg(select(lower > 0.5, expn(lower, x), exp(-x) / x))


def _spence_slope(x: Node) -> Node:
    """`log(x) / (1 - x)`."""
    near = (x < 1 + NEAR) & (x > 1 - NEAR)
    t = select(near, like(2, x), x)
    y: Node = select(near, -log1p_ratio(select(near, x, like(1, x)) - 1), log(t) / (1 - t))
    return y


def _near_zero(m: Node, y: Node, terms: list[float]) -> Node:
    """y, but for small m `sum_n terms[n] m**n`, as differences of the integrals cancel there."""
    near = (m < SMALL) & (m > -SMALL)
    t, series = select(near, m, like(0, m)), like(0, m)
    for c in reversed(terms):
        series = series * t + c
    found: Node = select(near, series, y)
    return found


# Of the powers of m in the integral of the first kind.
_SQUARES = [(math.comb(2 * n, n) / 4**n) ** 2 for n in range(20)]
_FIRST = [math.pi / 2 * n * c for n, c in enumerate(_SQUARES)][1:]
_SECOND = [-math.pi / 2 * n / (2 * n - 1) * c for n, c in enumerate(_SQUARES)][1:]


def _first_slope(p: Node, y: Node) -> Node:
    """`(E - (1 - m) K) / (2 m (1 - m))` for `m = 1 - p`."""
    m = 1 - p
    safe = select((m < SMALL) & (m > -SMALL), like(1, m), m)
    return _near_zero(m, (ellipe(m) - zmul(p, y)) / (2 * safe * p), _FIRST)


def _second_slope(m: Node, y: Node) -> Node:
    """`(E - K) / (2 m)`."""
    safe = select((m < SMALL) & (m > -SMALL), like(1, m), m)
    return _near_zero(m, (y - ellipkm1(1 - m)) / (2 * safe), _SECOND)


def _legendre_slope(m: Node, v: Node, x: Node) -> Node:
    y: Node = (v * x * lpmv(m, v, x) - (v + m) * lpmv(m, v - 1, x)) / ((x - 1) * (x + 1))
    return y


# Rules name ops that are declared on a later line.
ellipe: Elementwise
ellipkm1: Elementwise
expn: Elementwise
lpmv: Elementwise
yn: Elementwise
hyp1f1: Elementwise
hyp2f1: Elementwise

# fmt: off
spence = unary("spence", from_scipy("spence"), lambda g, y, x: zmul(g, _spence_slope(x)))
ellipkm1 = unary("ellipkm1", from_scipy("ellipkm1"), lambda g, y, p: -zmul(g, _first_slope(p, y)))
ellipe = unary("ellipe", from_scipy("ellipe"), lambda g, y, m: zmul(g, _second_slope(m, y)))
exp1 = unary("exp1", in_double(_exp1), lambda g, y, x: -zdiv(zmul(g, exp(-x)), x))
expi = unary("expi", from_scipy("expi"), lambda g, y, x: zdiv(zmul(g, exp(x)), x))
expn = binary("expn", of_order("expn"), lambda g, y, n, x: undefined(g, n, x),
              lambda g, y, n, x: zmul(g, _expn_slope(n, x)), FLOAT)
yn = binary("yn", of_order("yn"), lambda g, y, n, x: undefined(g, n, x),
            lambda g, y, n, x: zmul(g, 0.5 * (yn(n - 1, x) - yn(n + 1, x))), FLOAT)
gammaincinv = binary("gammaincinv", from_scipy("gammaincinv"),
                     lambda g, y, a, p: -zdiv(zmul(g, gammainc_da(a, y)), gammainc_dx(a, y)),
                     lambda g, y, a, p: zdiv(g, gammainc_dx(a, y)), FLOAT)
gammainccinv = binary("gammainccinv", from_scipy("gammainccinv"),
                      lambda g, y, a, p: -zdiv(zmul(g, gammainc_da(a, y)), gammainc_dx(a, y)),
                      lambda g, y, a, p: -zdiv(g, gammainc_dx(a, y)), FLOAT)
betaincinv = ternary("betaincinv", from_scipy("betaincinv"),
                     lambda g, y, a, b, p: -zdiv(zmul(g, betainc_da(a, b, y)), betainc_dx(a, b, y)),
                     lambda g, y, a, b, p: -zdiv(zmul(g, betainc_db(a, b, y)), betainc_dx(a, b, y)),
                     lambda g, y, a, b, p: zdiv(g, betainc_dx(a, b, y)))
betainccinv = ternary(
    "betainccinv", from_scipy("betainccinv"),
    lambda g, y, a, b, p: -zdiv(zmul(g, betainc_da(a, b, y)), betainc_dx(a, b, y)),
    lambda g, y, a, b, p: -zdiv(zmul(g, betainc_db(a, b, y)), betainc_dx(a, b, y)),
    lambda g, y, a, b, p: -zdiv(g, betainc_dx(a, b, y)))
hyp1f1 = ternary("hyp1f1", from_scipy("hyp1f1"), lambda g, y, *of: undefined(g, *of),
                 lambda g, y, *of: undefined(g, *of),
                 lambda g, y, a, b, x: zmul(g, a / b * hyp1f1(a + 1, b + 1, x)))
lpmv = ternary("lpmv", of_order("lpmv"), lambda g, y, *of: undefined(g, *of),
               lambda g, y, *of: undefined(g, *of),
               lambda g, y, m, v, x: zmul(g, _legendre_slope(m, v, x)))
hyp2f1 = add_elementwise(Elementwise(
    "hyp2f1", from_scipy("hyp2f1"),
    (*[lambda g, y, *of: undefined(g, *of)] * 3,
     lambda g, y, a, b, c, x: zmul(g, a * b / c * hyp2f1(a + 1, b + 1, c + 1, x))), FLOAT))
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
    lpmv,
    hyp2f1,
)  # fmt: skip
