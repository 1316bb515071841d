"""exp, exp2, expm1, sinh, cosh, tanh, sech2, sigmoid.

The argument is split as `x = n ln 2 + r` with `|r| <= ln(2)/2`: `n` appears in the low bits of
`x / ln 2 + magic`, where it is shifted into the exponent of a power of two. `ln 2` is a sum of two
floats, and `x - n hi` is exact with fma: both are multiples of the last bit of `hi`, and the
difference is less than one. Polynomials by Remez' algorithm, with the relative error noted.
"""

from __future__ import annotations

import math

from retrograd.codegen.math.term import (
    SINGLE,
    Format,
    Term,
    at_least,
    at_most,
    choose,
    either,
    fma,
    formula,
    polynomial,
    quartic,
)
from retrograd.codegen.op_builder import emits
from retrograd.ops import elementwise as el

# fmt: off
# (exp(r) - 1 - r) / r^2, so that exp(r) is right to 2^-28 and 2^-57.9
_EXP = {
    "float32": (0.49999994, 0.1666652, 0.0416684, 0.008368851, 0.001381436),
    "float64": (
        0.5000000000000011, 0.16666666666666408, 0.04166666666652812, 0.008333333333496494,
        0.0013888888944244672, 0.00019841269503797026, 2.4801492391695653e-05,
        2.7557587409144163e-06, 2.7630522695120975e-07, 2.500019142132341e-08,
    ),
}
# (sinh(r) / r - 1) / r^2 in r^2, to 2^-37 and 2^-61
_SINH = {
    "float32": (0.16666667, 0.008333289, 0.00019905204),
    "float64": (
        0.16666666666666677, 0.008333333333321436, 0.0001984126988667423, 2.7557243608289738e-06,
        2.5109262119178996e-08,
    ),
}
# (cosh(r) - 1) / r^2 in r^2, to 2^-34 and 2^-70
_COSH = {
    "float32": (0.5, 0.041666266, 0.0013946448),
    "float64": (
        0.5, 0.04166666666666671, 0.001388888888886355, 2.4801587364113522e-05,
        2.7557241226497487e-07, 2.092460939815285e-09,
    ),
}
# (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.55, to 2^-29.8
_TANH = (-0.33333316, 0.13332586, -0.053852309, 0.021071672, -0.0062742308)
# fmt: on
# From here on the result is infinite, or zero, or 1 or -1, or the argument itself.
_TOP = {"float32": 89.0, "float64": 710.0}
_BOTTOM = {"float32": -104.0, "float64": -746.0}
_FLAT = {"float32": 20.0, "float64": 40.0}
_GONE = {"float32": 53.0, "float64": 374.0}  # 1 / cosh(x)^2 is zero
_TINY = {"float32": 2.0**-25, "float64": 2.0**-54}
_LN2 = {"float32": (0.6931472, -1.9046542e-09), "float64": (math.log(2), 2.3190468138462996e-17)}


def reduced(x: Term, offset: int) -> tuple[Term, Term]:
    """Integers whose low bits are `n + offset`, and `r`."""
    name, magic = x.format.dtype.name, x.format.magic + offset
    high, low = _LN2[name]
    t = fma(x, 1 / math.log(2), magic)
    n = t - magic
    return t.bits(), fma(n, -low, fma(n, -high, x))


def excess(r: Term) -> Term:
    """`exp(r) - 1` of a reduced argument."""
    return fma(r * r, polynomial(r, _EXP[r.format.dtype.name]), r)


def excess_rest(r: Term) -> Term:
    """`exp(r) - 1 - r` of a reduced argument."""
    return r * r * polynomial(r, _EXP[r.format.dtype.name])


def power_of_two(n: Term, form: Format) -> Term:
    """`2^n` from integers whose low bits are `n + bias`, within the normal range."""
    return (n << form.mantissa).floats()


def scaled(x: Term, n: Term, form: Format) -> Term:
    """`x 2^n`, rounded once, from integers whose low bits are `n + 2 bias`. The power may lie far
    outside of the range of exponents: it is applied in two halves."""
    half = n.shifted(1)
    return x * power_of_two(half, form) * power_of_two(n - half, form)


def exp_below(x: Term) -> Term:
    """exp where no argument needs the bound from above: for those that are not positive."""
    form = x.format
    # Computed, a result below the range would take processors a hundred cycles: masks made of -inf
    # are common.
    gone = x < _BOTTOM[form.dtype.name]
    n, r = reduced(choose(gone, x.like(0), x), 2 * form.bias)
    return choose(gone, x.like(0), scaled(excess(r) + 1.0, n, form))


@emits(el.exp)
@formula
def exp(x: Term) -> Term:
    return exp_below(at_most(x, _TOP[x.format.dtype.name]))


@emits(el.exp2)
@formula
def exp2(x: Term) -> Term:
    form = x.format
    x = at_least(at_most(x, form.bias + 2.0), -form.bias - form.mantissa - 2.0)
    magic = form.magic + 2 * form.bias
    t = x + magic
    r = (x - (t - magic)) * math.log(2)
    return scaled(excess(r) + 1.0, t.bits(), form)


@emits(el.expm1)
@formula
def expm1(x: Term) -> Term:
    """`2^n (exp(r) - 1) + (2^n - 1)`, at half the scale, which 2^128 would exceed."""
    form = x.format
    name = form.dtype.name
    bounded = at_least(at_most(x, _TOP[name]), -_FLAT[name])
    n, r = reduced(bounded, form.bias - 1)
    scale = power_of_two(n, form)
    y = fma(excess(r), scale, scale - 0.5)
    return choose(abs(x) < _TINY[name], x, y + y)


@emits(el.tanh)
@formula
def tanh(x: Term) -> Term:
    """Near zero a polynomial, which is all that is computed if every lane is near; in double
    precision it would be so long that it does not pay, and `e / (e + 2)` of `e = expm1(2|x|)` needs
    no care there."""
    if x.format is not SINGLE:
        a = at_most(abs(x), _FLAT[x.format.dtype.name] / 2)
        n, r = reduced(a + a, x.format.bias)
        scale = power_of_two(n, x.format)
        e = fma(excess(r), scale, scale - 1.0)
        return (e / (e + 2.0)).with_sign_of(x)
    near = abs(x) < 0.55
    if x.at.lanes == 1:
        (y,) = either(x.at, near.name, lambda: [_near_tanh(x)], lambda: [_far_tanh(x)])
    else:
        small = _near_tanh(x)
        far = (~near).anywhere()
        (y,) = either(x.at, far, lambda: [choose(near, small, _far_tanh(x))], lambda: [small])
    return y.with_sign_of(x)


def _near_tanh(x: Term) -> Term:
    z = x * x
    return fma(x * z, quartic(z, _TANH), x)


def _far_tanh(x: Term) -> Term:
    """`1 - 2 / (e + 1)` of `e = exp(2|x|)`, without a sign. `n` times the rest of `ln 2` is too
    little to matter. Few of the steps wait for the one before."""
    form = x.format
    a = at_most(abs(x), _FLAT["float32"] / 2)
    t = fma(a, 2 / math.log(2), form.magic + form.bias)
    scale = power_of_two(t.bits(), form)
    r = fma(t - (form.magic + form.bias), -_LN2["float32"][0] / 2, a)  # half of the usual
    rest = quartic(r, [c * 2.0 ** (k + 2) for k, c in enumerate(_EXP["float32"])])
    e = fma(fma(r * r, rest, r + r), scale, scale + 1.0)
    return 1.0 - 2.0 / e


@emits(el.sech2)
@formula
def sech2(x: Term) -> Term:
    """`4 e / (1 + e)^2` of `e = exp(-2|x|)`"""
    form = x.format
    a = abs(x)
    gone = a > _GONE[form.dtype.name]
    n, r = reduced(choose(gone, x.like(0), a) * -2.0, 2 * form.bias)
    p = excess(r) + 1.0
    half = n.shifted(1)
    one, two = power_of_two(half, form), power_of_two(n - half, form)
    e = p * one * two
    y = (p * 4.0) / fma(e, e + 2.0, 1.0) * one * two
    return choose(gone, x.like(0), y)


@emits(el.sigmoid)
@formula
def sigmoid(x: Term) -> Term:
    """`1 / (1 + e)` or, for a negative argument, `e / (1 + e)`, of `e = exp(-|x|)`."""
    e = exp_below(-abs(x))
    return choose(x >= 0.0, x.like(1), e) / (e + 1.0)


def _hyperbolic(x: Term) -> tuple[Term, Term, Term, Term]:
    """`sinh r`, `cosh r - 1`, and a quarter of `2^n + 2^-n` and of `2^n - 2^-n`, of `|x|`."""
    form = x.format
    name = form.dtype.name
    n, r = reduced(at_most(abs(x), 89.5 if form is SINGLE else 710.5), form.bias - 2)
    rise = n << form.mantissa
    fall = ((2 * form.bias - 4) << form.mantissa) - rise
    fall = fall.intrinsic("smax", 0)  # too small a power is as good as zero
    z = r * r
    s = fma(z * r, polynomial(z, _SINH[name]), r)
    c = z * polynomial(z, _COSH[name])
    up, down = rise.floats(), fall.floats()
    return s, c, up + down, up - down


@emits(el.cosh)
@formula
def cosh(x: Term) -> Term:
    """`cosh(n ln 2) cosh r + sinh(n ln 2) sinh r`, at half the scale."""
    s, c, plus, minus = _hyperbolic(x)
    y = fma(s, minus, fma(c, plus, plus))
    return y + y


@emits(el.sinh)
@formula
def sinh(x: Term) -> Term:
    """`cosh(n ln 2) sinh r + sinh(n ln 2) cosh r`, at half the scale."""
    s, c, plus, minus = _hyperbolic(x)
    y = fma(s, plus, fma(c, minus, minus))
    return choose(abs(x) < _TINY[x.format.dtype.name], x, (y + y).with_sign_of(x))
