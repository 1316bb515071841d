"""pow."""

from __future__ import annotations

import math
from collections.abc import Callable

from retrograd.codegen.math.exponential import excess, power_of_two, scaled
from retrograd.codegen.math.logarithm import split
from retrograd.codegen.math.term import (
    DOUBLE,
    SINGLE,
    Term,
    at_least,
    at_most,
    bits_of,
    choose,
    fma,
    formula,
    polynomial,
)
from retrograd.codegen.op_builder import Emit, OpBuilder, outlined

# fmt: off
# log2(1 + f) / f from sqrt(1/2) - 1 to sqrt(2) - 1, to 2^-38
_LOG2 = (
    1.442695040886574, -0.7213475203275554, 0.4808983488030313, -0.36067379313809866,
    0.28853879571511293, -0.24044643348252295, 0.20610712332454845, -0.18043675355495414,
    0.1602166671795645, -0.14249860489934651, 0.13027557822442445, -0.13462941402369086,
    0.13251226655447784, -0.06973925029714056,
)
# 2^r, |r| <= 1/2, to 2^-29
_EXP2 = (
    1.0000000005631462, 0.6931472060364159, 0.24022646843497159, 0.055503281241696255,
    0.00961849197169637, 0.0013400195525799725, 0.00015345550013374384,
)
# (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2, s up to (sqrt(2) - 1) / (sqrt(2) + 1); with the two
# terms before, to 2^-73
_ATANH = (
    0.1999999999999999, 0.14285714285722576, 0.11111111108763415, 0.09090909435750029,
    0.07692278394981564, 0.06668160271114627, 0.05837377500621971, 0.059947714643097186,
)
# fmt: on
_SQRT_HALF_BITS = bits_of(math.sqrt(0.5), DOUBLE)
# As sums of two floats.
_TWO_BY_LN2 = {
    "float32": (2.88539, 3.851926e-08),
    "float64": (2.8853900817779268, 4.0710547481862066e-17),
}
_THIRD = {
    "float32": (0.33333334, -9.934108e-09),
    "float64": (0.3333333333333333, 1.850371707708594e-17),
}
_FAR = {"float32": 160.0, "float64": 1100.0}  # powers of two that are infinite, or zero


def _special_logarithm(a: Term, y: Term) -> Term:
    """The logarithm of 0, infinity and NaN."""
    y = choose(a < math.inf, y, a)
    return choose(a.equals(0.0), y.like(-math.inf), y)


def _single(a: Term, b: Term) -> Term:
    """`2^(b log2(a))` in double precision, in which the product is good enough."""
    wide, exponent = a.double(), b.double()
    high = (wide.bits() - _SQRT_HALF_BITS) & (-1 << 52)
    f = (wide.bits() - high).floats() - 1.0
    log2 = fma(f, polynomial(f, _LOG2), (high >> 52).rounded())
    v = exponent * _special_logarithm(wide, log2)
    v = at_least(at_most(v, 150.0), -160.0)
    t = v + (DOUBLE.magic + DOUBLE.bias)
    r = v - (t - (DOUBLE.magic + DOUBLE.bias))
    return (polynomial(r, _EXP2) * power_of_two(t.bits(), DOUBLE)).single()


def _in_pairs(a: Term, b: Term) -> Term:
    """The same in sums of two floats; of doubles these have about 65 bits."""
    form = a.format
    far = _FAR[form.dtype.name]
    high, low = _log2(a)
    high = _special_logarithm(a, high)
    v = b * high
    rest = fma(b, low, fma(b, high, -v))
    rest = choose(abs(v) < far, rest, rest.like(0))
    v = at_least(at_most(v, far), -far)
    magic = form.magic + 2 * form.bias
    t = v + magic
    r = ((v - (t - magic)) + rest) * math.log(2)
    return scaled(excess(r) + 1.0, t.bits(), form)


def _log2(a: Term) -> tuple[Term, Term]:
    """`log2(a) = k + (2 / ln 2) atanh(s)`, `s = f / (2 + f)`, of `a = 2^k (1 + f)`, as a sum of two
    floats. `atanh(s) = s + s (s^2 / 3 + s^4 T(s^2))`; of `s`, `s^2` and the third the rest is kept
    as well, of the last term it is too small to count."""
    name = a.format.dtype.name
    third, two_by_ln2 = _THIRD[name], _TWO_BY_LN2[name]
    k, f = split(a)
    # s + s_low
    below = f + 2.0
    inverse = 1.0 / below
    s = f * inverse
    missing = fma(-s, f - (below - 2.0), fma(-s, below, f))
    s_low = missing * inverse
    # w + w_low = s^2 / 3 + s^4 T
    z = s * s
    z_low = fma(s + s, s_low, fma(s, s, -z))
    w = z * third[0]
    w_low = fma(z, third[0], -w)
    w_low = fma(z, third[1], fma(z_low, third[0], w_low))
    w_low = fma(z * z, polynomial(z, _ATANH), w_low)
    # h + h_low = s + s w
    u = s * w
    h = s + u
    h_low = ((s - h) + u) + fma(s, w_low, fma(s_low, w, fma(s, w, -u) + s_low))
    # times 2 / ln 2, plus k
    m = h * two_by_ln2[0]
    m_low = fma(h_low, two_by_ln2[0], fma(h, two_by_ln2[1], fma(h, two_by_ln2[0], -m)))
    high = k + m
    return high, ((k - high) + m) + m_low


def _root(x: Term) -> Term:
    """`x^0.5`: of -0 it is 0, of -inf infinite."""
    return choose(x.equals(-math.inf), x.like(math.inf), (x + 0.0).sqrt())


def _inverse_root(x: Term) -> Term:
    """`x^-0.5`: of -0 it is infinite, of -inf 0."""
    return choose(x.equals(-math.inf), x.like(0), 1.0 / (x + 0.0).sqrt())


# Exponents for which pow is something simpler, special values included. It is that whether the
# exponent is known or not, so that nobody sees by the bits which numbers a program was made for.
_SIMPLE: dict[float, Callable[[Term], Term]] = {
    0.0: lambda x: x.like(1),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -1.0: lambda x: 1.0 / x,
    -2.0: lambda x: 1.0 / x / x,  # a square may be too large or too small where this is not
    0.5: _root,
    -0.5: _inverse_root,
}
CONSTANT: dict[float, Emit] = {value: formula(f) for value, f in _SIMPLE.items()}


@formula
def _pow(x: Term, y: Term) -> Term:
    """The power of `|x|`, then the rules of C99 for signs and special values."""
    a = abs(x)
    p = _single(a, y) if x.format is SINGLE and x.at.doubles else _in_pairs(a, y)
    p = choose(a.equals(1.0), choose(y.is_nan(), y, p.like(1)), p)  # even to an infinite power
    whole = y.equals(y.intrinsic("trunc"))
    half = y * 0.5
    odd = whole & ~half.equals(half.intrinsic("trunc"))
    sign = x.bits() & (-1 << (8 * x.at.dtype.itemsize - 1))
    signed = choose(odd, (p.bits() ^ sign).floats(), p)
    root = (x < 0.0) & (x > -math.inf) & ~whole
    signed = choose(root, p.like(math.nan), signed)
    for value, simple in _SIMPLE.items():
        signed = choose(y.equals(value), simple(x), signed)
    return choose(x.equals(1.0), p.like(1), signed)


_any_pow = outlined("pow", _pow)


def pow(at: OpBuilder, x: str, y: str) -> str:
    for value, emit in CONSTANT.items():
        if y == at.number(value):
            return emit(at, x)
    return _any_pow(at, x, y)
