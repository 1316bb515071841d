"""log, log2, log10, log1p, softplus, logaddexp, and the inverse hyperbolic functions.

The argument is split as `x = 2^k (1 + f)` with `1 + f` between sqrt(1/2) and sqrt(2), through its
bits. `log(1 + f)` is a polynomial by Remez' algorithm, added to `k ln 2`.
"""

from __future__ import annotations

import math

from retrograd.codegen.math.exponential import exp_below
from retrograd.codegen.math.term import Format, Term, bits_of, choose, fma, formula, polynomial
from retrograd.codegen.op_builder import emits, outlined
from retrograd.ops import elementwise as el

# fmt: off
# (log(1 + f) - f + f^2 / 2) / f^3, so that the logarithm is right to 2^-30 and 2^-59
_LOG = {
    "float32": (
        0.33333313, -0.2500001, 0.20002118, -0.16667996, 0.14219558, -0.12405563, 0.11888109,
        -0.11675874, 0.06747072,
    ),
    "float64": (
        0.33333333333333454, -0.2499999999999892, 0.1999999999994614, -0.16666666666914345,
        0.14285714293840915, -0.12499999982022585, 0.11111110516074385, -0.10000000383119734,
        0.09090933504784095, -0.08333345764111197, 0.07691714492898354, -0.07142000007916795,
        0.0667514798714768, -0.06269801719129513, 0.058177824372368035, -0.053267760347116916,
        0.05415960447902901, -0.06275044455607941, 0.056968803643782547, -0.02427624618693241,
    ),
}
# fmt: on
# As sums of two floats.
_LN2 = {"float32": (0.6931472, -1.9046542e-09), "float64": (math.log(2), 2.3190468138462996e-17)}
_LG2 = {"float32": (0.30103, -1.4320989e-08), "float64": (math.log10(2), -2.8037281277851704e-18)}
_TINY = {"float32": 2.0**-25, "float64": 2.0**-54}


def _exponent_bits(u: Term, form: Format) -> Term:
    """`k` above the bits of the mantissa."""
    return (u.bits() - bits_of(math.sqrt(0.5), form)) & (-1 << form.mantissa)


def split(x: Term) -> tuple[Term, Term]:
    """`k` and `f` of positive numbers, subnormal ones included."""
    form = x.format
    small = x < 2.0 ** (1 - form.bias)
    x = choose(small, x * 2.0 ** (form.mantissa + 1), x)
    high = _exponent_bits(x, form)
    f = (x.bits() - high).floats() - 1.0
    k = (high >> form.mantissa).rounded()
    return choose(small, k - (form.mantissa + 1.0), k), f


def log_of_one_and(f: Term, low: Term | None = None) -> Term:
    """`log(1 + f)`, plus a small number."""
    z = f * f
    p = polynomial(f, _LOG[f.format.dtype.name])
    tail = z * f * p if low is None else fma(z * f, p, low)
    return f + fma(z, -0.5, tail)


def log_rest(f: Term) -> Term:
    """`log(1 + f) - f`, for `1 + f` between sqrt(1/2) and sqrt(2)."""
    z = f * f
    return fma(z, -0.5, z * f * polynomial(f, _LOG[f.format.dtype.name]))


def with_exponent(k: Term, f: Term) -> Term:
    """`k ln 2 + log(1 + f)`."""
    high, low = _LN2[k.format.dtype.name]
    return fma(k, high, log_of_one_and(f, k * low))


def _special(x: Term, u: Term, y: Term) -> Term:
    """Of an infinity or NaN `x`, itself; where `u` is zero -inf, where it is negative NaN."""
    y = choose(x < math.inf, y, x)
    pole = choose(u.equals(0.0), u.like(-math.inf), u.like(math.nan))
    return choose(u.above(0.0), y, pole)


@emits(el.log)
@formula
def log(x: Term) -> Term:
    return _special(x, x, with_exponent(*split(x)))


@emits(el.log2)
@formula
def log2(x: Term) -> Term:
    k, f = split(x)
    return _special(x, x, fma(log_of_one_and(f), 1 / math.log(2), k))


@emits(el.log10)
@formula
def log10(x: Term) -> Term:
    k, f = split(x)
    high, low = _LG2[x.format.dtype.name]
    y = fma(log_of_one_and(f), 1 / math.log(10), k * low)
    return _special(x, x, fma(k, high, y))


def log1p_of(x: Term) -> Term:
    """`f = x 2^-k + (2^-k - 1)` is rounded once, whatever was lost in `1 + x`, which only gives
    `k`. The power is taken four times as large, and `x` a fourth, lest it be subnormal."""
    form = x.format
    u = x + 1.0
    high = _exponent_bits(u, form)
    scale = (bits_of(4.0, form) - high).floats()
    f = fma(x * 0.25, scale, fma(scale, 0.25, -1.0))
    y = with_exponent((high >> form.mantissa).rounded(), f)
    y = choose(abs(x) < _TINY[form.dtype.name], x, y)
    return _special(x, u, y)


log1p = emits(el.log1p)(formula(log1p_of))


def _log1p_of_fraction(e: Term) -> Term:
    """`log(1 + e)` for `e` from 0 to 1, where `k` is 0 or 1."""
    large = e > math.sqrt(2) - 1
    f = choose(large, fma(e, 0.5, -0.5), e)
    return with_exponent(choose(large, e.like(1), e.like(0)), f)


@formula
def _softplus(x: Term) -> Term:
    """`max(x, 0) + log1p(exp(-|x|))`"""
    return choose(x.above(0.0), x, x.like(0)) + _log1p_of_fraction(exp_below(-abs(x)))


@formula
def _logaddexp(a: Term, b: Term) -> Term:
    """The greater, plus log1p of exp of minus the gap between both."""
    gap = a - b
    y = choose(gap > 0.0, a, b) + _log1p_of_fraction(exp_below(-abs(gap)))
    # Equal operands, infinite ones included, have no gap; a NaN in either is in the gap.
    y = choose(gap.is_nan(), gap, y)
    return choose(a.equals(b), a + math.log(2), y)


@formula
def _asinh(x: Term) -> Term:
    """`log1p(a + a^2 / (1 + sqrt(a^2 + 1)))` of `a = |x|`; of a large one, log(2a)."""
    a = abs(x)
    large = a > 2.0 ** (x.format.mantissa + 3)
    near = choose(large, a.like(1), a)
    z = near * near
    sum_ = near + z / (1.0 + (z + 1.0).sqrt())
    y = log1p_of(choose(large, a, sum_))
    return choose(large, y + math.log(2), y).with_sign_of(x)


@formula
def _acosh(x: Term) -> Term:
    """`log1p(t + sqrt(2t + t^2))` of `t = x - 1`; of a large one, log(2x)."""
    large = x > 2.0 ** (x.format.mantissa + 3)
    t = choose(large, x.like(1), x - 1.0)
    sum_ = t + fma(t, t, t + t).sqrt()
    y = log1p_of(choose(large, x, sum_))
    return choose(x >= 1.0, choose(large, y + math.log(2), y), x.like(math.nan))


@formula
def _atanh(x: Term) -> Term:
    """`log1p(2a / (1 - a)) / 2` of `a = |x|`"""
    a = abs(x)
    y = 0.5 * log1p_of((a + a) / (1.0 - a))
    return choose(a <= 1.0, y, x.like(math.nan)).with_sign_of(x)


softplus = emits(el.softplus)(outlined("softplus", _softplus))
logaddexp = emits(el.logaddexp)(outlined("logaddexp", _logaddexp))
asinh = emits(el.asinh)(outlined("asinh", _asinh))
acosh = emits(el.acosh)(outlined("acosh", _acosh))
atanh = emits(el.atanh)(outlined("atanh", _atanh))
