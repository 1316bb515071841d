"""The normal distribution function, its inverse, those of erf and erfc, and erfcx."""

from __future__ import annotations

import math

from retrograd.codegen.math import error_function
from retrograd.codegen.math.double_precision import called, exp, log, special
from retrograd.codegen.math.term import Term, at_least, at_most, choose, fma, polynomial
from retrograd.codegen.op_builder import emits
from retrograd.ops.special import functions
from retrograd.ops.special.asymptotic_series import PPND16

_erfc = called("erfc", error_function.erfc)
_SQRT_HALF = (0.7071067811865476, -4.833646656726457e-17)
# exp(x^2) erfc(x) sqrt(pi) x in 1 / x^2
_ERFCX = tuple((-1) ** k * math.prod(range(1, 2 * k, 2)) / 2**k for k in range(9))


def _erfcx(x: Term) -> Term:
    """Below 0.47 the product; the square of the argument is a sum of two doubles."""
    near = at_least(at_most(x, 0.5), -27.5)
    square = near * near
    e = exp(square)
    product = e * (fma(near, near, -square) + 1.0) * _erfc(near)
    middle = error_function.scaled_erfc(at_least(at_most(x, 27.5), 0.45), 4.0)
    inverse = 1.0 / at_least(x, 27.0)
    far = inverse * (polynomial(inverse * inverse, _ERFCX) * (1 / math.sqrt(math.pi)))
    return choose(x < 0.47, product, choose(x < 27.5, middle, far))


def _ndtr(x: Term) -> Term:
    """`erfc(-x / sqrt(2)) / 2`, with the error of the argument made up for in the first order."""
    bounded = at_least(at_most(x, 40.0), -40.0)
    t = bounded * -_SQRT_HALF[0]
    low = fma(bounded, -_SQRT_HALF[0], -t) + bounded * -_SQRT_HALF[1]
    return _erfc(t) * 0.5 - exp(-(t * t)) * low * (1 / math.sqrt(math.pi))


def _ratio(part: int, x: Term) -> Term:
    above, below = PPND16[part]
    return polynomial(x, above) / polynomial(x, below)


def _quantile(q: Term, p: Term) -> Term:
    """The size of the normal quantile that is `q` above the middle, and leaves a tail of `p`."""
    central = q * _ratio(0, 0.180625 - q * q)
    r = (-log(p)).sqrt()
    tail = choose(r > 5.0, _ratio(2, r - 5.0), _ratio(1, r - 1.6))
    return choose(abs(q) <= 0.425, central, tail)


def _within(p: Term, y: Term, top: float) -> Term:
    """NaN outside of the range, infinite at its ends."""
    y = choose(p.equals(0.0), y.like(math.inf), y)
    return choose((p >= 0.0) & (p <= top), y, y.like(math.nan))


def _ndtri(p: Term) -> Term:
    low = p < 0.5
    tail = choose(low, p, 1.0 - p)
    y = _within(tail, _quantile(abs(p - 0.5), tail), 0.5)
    return choose(low, -y, y)


def _erfinv(x: Term) -> Term:
    a = abs(x)
    tail = (1.0 - a) * 0.5
    y = _within(tail, _quantile(a * 0.5, tail), 0.5) * _SQRT_HALF[0]
    return choose(x.equals(0.0), x, y.with_sign_of(x))


def _erfcinv(x: Term) -> Term:
    low = x < 1.0
    tail = choose(low, x, 2.0 - x) * 0.5
    y = _within(tail, _quantile(abs(1.0 - x) * 0.5, tail), 0.5) * _SQRT_HALF[0]
    return choose(x >= 0.0, choose(low, y, -y), x.like(math.nan))  # half of x may be -0.0


erfcx = emits(functions.erfcx)(special("erfcx", _erfcx))
ndtr = emits(functions.ndtr)(special("ndtr", _ndtr))
ndtri = emits(functions.ndtri)(special("ndtri", _ndtri))
erfinv = emits(functions.erfinv)(special("erfinv", _erfinv))
erfcinv = emits(functions.erfcinv)(special("erfcinv", _erfcinv))
