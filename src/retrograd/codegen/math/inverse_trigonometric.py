"""asin, acos, atan, atan2."""

from __future__ import annotations

import math

from retrograd.codegen.math.term import Term, choose, fma, formula, polynomial
from retrograd.codegen.op_builder import emits, outlined
from retrograd.ops import elementwise as el

# fmt: off
# (asin(s) / s - 1) / s^2 in s^2 up to 1/4, to 2^-27.6 and 2^-55.9
_ASIN = {
    "float32": (0.16666752, 0.07495288, 0.04547171, 0.02417248, 0.04217899),
    "float64": (
        0.16666666666665403, 0.0750000000033877, 0.04464285682680054, 0.03038195920241936,
        0.022371756432452934, 0.017359729799203045, 0.013884982531178272, 0.012170906513532843,
        0.006520506213048684, 0.019549067783931312, -0.016257443316376314, 0.03193538302609363,
    ),
}
# (atan(r) / r - 1) / r^2 in r^2 up to tan(pi/8)^2, to 2^-30 and 2^-59
_ATAN = {
    "float32": (-0.33333316, 0.19998467, -0.14243451, 0.10593169, -0.060765084),
    "float64": (
        -0.3333333333333319, 0.19999999999952917, -0.14285714280131842, 0.11111110780355264,
        -0.09090897671850613, 0.07692058740806988, -0.06663087822563526, 0.058477745684820434,
        -0.050388007814438106, 0.03805204945149431, -0.017893791861614078,
    ),
}
# What pi/2 as a float lacks.
_HALF_PI_REST = {"float32": -4.371139e-08, "float64": 6.123233995736766e-17}
# fmt: on
_TAN_EIGHTH = math.sqrt(2) - 1


def _arcsine(x: Term) -> tuple[Term, Term]:
    """Whether `|x| <= 1/2`, and then `asin |x|`; otherwise `asin sqrt((1 - |x|) / 2)`, half the
    angle that is missing to pi/2. NaN beyond 1."""
    a = abs(x)
    small = a <= 0.5
    z = choose(small, a * a, fma(a, -0.5, 0.5))
    s = choose(small, a, z.sqrt())
    return small, fma(s * z, polynomial(z, _ASIN[x.format.dtype.name]), s)


@formula
def _asin(x: Term) -> Term:
    small, p = _arcsine(x)
    rest = _HALF_PI_REST[x.format.dtype.name]
    return choose(small, p, math.pi / 2 - (p + p - rest)).with_sign_of(x)


@formula
def _acos(x: Term) -> Term:
    small, p = _arcsine(x)
    rest = _HALF_PI_REST[x.format.dtype.name]
    middle = math.pi / 2 - (p.with_sign_of(x) - rest)
    ends = choose(x < 0.0, math.pi - (p + p - 2 * rest), p + p)
    return choose(small, middle, ends)


def _arctangent(r: Term) -> Term:
    """`atan(r)`, `|r|` at most tan(pi/8)."""
    z = r * r
    return fma(z * r, polynomial(z, _ATAN[r.format.dtype.name]), r)


@formula
def _atan(x: Term) -> Term:
    """Of `a = |x|`; or pi/4 and that of `(a - 1) / (a + 1)`; or pi/2 and that of `-1 / a`."""
    a = abs(x)
    middle, large = a > _TAN_EIGHTH, a > 1 + math.sqrt(2)
    above = choose(large, a.like(-1), choose(middle, a - 1.0, a))
    below = choose(large, a, choose(middle, a + 1.0, a.like(1)))
    base = choose(large, a.like(math.pi / 2), choose(middle, a.like(math.pi / 4), a.like(0)))
    return (base + _arctangent(above / below)).with_sign_of(x)


@formula
def _atan2(y: Term, x: Term) -> Term:
    """The angle in the first octant, by one quotient, then mirrored."""
    a, b = abs(y), abs(x)
    steep = a > b
    low, high = choose(steep, b, a), choose(steep, a, b)
    both = low.equals(math.inf)
    low, high = choose(both, low.like(1), low), choose(both, low.like(1), high)
    huge = high > 2.0 ** (x.format.bias - 1)  # where the sum may be infinite
    low, high = choose(huge, low * 0.25, low), choose(huge, high * 0.25, high)
    high = choose(high.equals(0.0), high.like(1), high)
    middle = low > high * _TAN_EIGHTH
    above, below = choose(middle, low - high, low), choose(middle, low + high, high)
    base = choose(middle, a.like(math.pi / 4), a.like(0))
    angle = base + _arctangent(above / below)
    rest = _HALF_PI_REST[x.format.dtype.name]
    angle = choose(steep, math.pi / 2 - (angle - rest), angle)
    angle = choose(x.bits() < 0, math.pi - (angle - 2 * rest), angle)
    angle = choose(x.is_nan(), x, choose(y.is_nan(), y, angle))
    return angle.with_sign_of(y)


asin = emits(el.asin)(outlined("asin", _asin))
acos = emits(el.acos)(outlined("acos", _acos))
atan = emits(el.atan)(outlined("atan", _atan))
atan2 = emits(el.atan2)(outlined("atan2", _atan2))
