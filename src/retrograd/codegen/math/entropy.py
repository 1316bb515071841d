"""Products with logarithms, and the logit."""

from __future__ import annotations

import math

from retrograd.codegen.math.double_precision import log, log1p, special
from retrograd.codegen.math.term import Term, choose
from retrograd.codegen.op_builder import emits
from retrograd.ops.special import functions


def _absorbed(x: Term, y: Term, product: Term) -> Term:
    """Zero where x is, unless y is NaN."""
    return choose(x.equals(0.0) & ~y.is_nan(), x.like(0), product)


def _xlogy(x: Term, y: Term) -> Term:
    return _absorbed(x, y, x * log(y))


def _xlog1py(x: Term, y: Term) -> Term:
    return _absorbed(x, y, x * log1p(y))


def _entr(x: Term) -> Term:
    """`-x log(x)`"""
    y = choose(x.equals(0.0), x.like(0), -(x * log(x)))
    return choose(x < 0.0, x.like(-math.inf), y)


def _rel_entr(x: Term, y: Term) -> Term:
    """`x log(x / y)`, from `log1p` of the relative distance where both are close."""
    near = (x < y + y) & (y < x + x)
    ratio = choose(near, log1p((x - y) / choose(near, y, y.like(1))), log(x) - log(y))
    value = choose((x > 0.0) & (y > 0.0), x * ratio, x.like(math.inf))
    value = choose(x.equals(0.0) & (y >= 0.0), x.like(0), value)
    return choose(x.is_nan() | y.is_nan(), x + y, value)


def _logit(x: Term) -> Term:
    """`log(x / (1 - x))`, near 1/2 `log1p((2x - 1) / (1 - x))`"""
    near = (x > 0.3) & (x < 0.65)
    r = choose(near, x, x.like(0.5))
    middle = log1p((r + r - 1.0) / (1.0 - r))
    return choose(near, middle, log(x / (1.0 - x)))


xlogy = emits(functions.xlogy)(special("xlogy", _xlogy))
xlog1py = emits(functions.xlog1py)(special("xlog1py", _xlog1py))
entr = emits(functions.entr)(special("entr", _entr))
rel_entr = emits(functions.rel_entr)(special("rel_entr", _rel_entr))
logit = emits(functions.logit)(special("logit", _logit))
