"""Functions of complex numbers, written with functions of their parts.

Formulas: W. Kahan, "Branch cuts for complex elementary functions" (1987), arranged so that neither
large nor small parts overflow or cancel where the result does not; R. L. Smith, "Algorithm 116:
Complex division" (1962). Special values follow the array API standard. Branch cuts tell the signs
of zeros apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from retrograd.ir import Node, entering, full
from retrograd.ops import elementwise as e
from retrograd.ops.shape import Concat, Reshape, Slice, reshape

Pair = tuple[Node, Node]

# The parts of the result of an elementwise op, by its name, as a function of those of the operands.
FUNCTIONS: dict[str, Callable[..., Pair]] = {}
on_pairs = entering(FUNCTIONS)


def parts_of(x: Node) -> Pair:
    """The parts of numbers that lie in memory as pairs."""
    first, second = (flat(cut(x)) for flat, cut in (_part(x, 0), _part(x, 1)))
    return first, second


def _part(x: Node, part: int) -> tuple[Reshape, Slice]:
    """What takes a part out of pairs: the second operation, and the first."""
    none, one = (0,) * (x.type.rank - 1), (1,) * x.type.rank
    cut = Slice((*none, part), (*x.shape[:-1], part + 1), one)
    return Reshape(x.shape[:-1]), cut


def joined(z: Pair) -> Node:
    """The pairs of parts, along one more axis at the end."""
    whole = taken_from(z)
    if whole is not None:
        return whole
    shape = (*z[0].shape, 1)
    return Concat(len(shape) - 1)(reshape(z[0], shape), reshape(z[1], shape))


def taken_from(z: Pair) -> Node | None:
    """The array of pairs whose parts these are."""
    whole = _taken_from(z[0], 0)
    return whole if whole is not None and whole is _taken_from(z[1], 1) else None


def _taken_from(x: Node, part: int) -> Node | None:
    """The array whose first or second part this is."""
    if not isinstance(x.prim, Reshape) or not isinstance(x.inputs[0].prim, Slice):
        return None
    (whole,) = x.inputs[0].inputs
    return whole if _part(whole, part) == (x.prim, x.inputs[0].prim) else None


def is_negative(x: Node) -> Node:
    """Whether the sign of `x` is negative, that of a zero included."""
    negative: Node = (x < 0) | (e.eq(x, full(0, x.type)) & (1 / x < 0))
    return negative


def with_sign(size: Node, x: Node) -> Node:
    """`size`, which is not negative, with the sign of `x`."""
    return e.select(is_negative(x), -size, size)


def is_zero(z: Pair) -> Node:
    zero: Node = e.is_zero(z[0]) & e.is_zero(z[1])
    return zero


def choose(c: Node, a: Pair, b: Pair) -> Pair:
    return e.select(c, a[0], b[0]), e.select(c, a[1], b[1])


def times_i(z: Pair) -> Pair:
    return -z[1], z[0]


def over_i(z: Pair) -> Pair:
    return z[1], -z[0]


@on_pairs(e.add)
def add(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


@on_pairs(e.sub)
def sub(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


@on_pairs(e.mul)
def mul(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


@on_pairs(e.div)
def div(a: Pair, b: Pair) -> Pair:
    """Scaled by the larger part of the divisor; by zero, each part is divided by |b|."""
    (x, y), (c, d) = a, b
    turned = e.abs(c) < e.abs(d)
    large, small = e.select(turned, d, c), e.select(turned, c, d)
    ratio = small / large
    below = large + small * ratio
    first = e.select(turned, x * ratio + y, x + y * ratio) / below
    second = e.select(turned, y * ratio - x, y - x * ratio) / below
    nothing = e.abs(large)
    return choose(is_zero(b), (x / nothing, y / nothing), (first, second))


@on_pairs(e.zmul)
def zmul(a: Pair, b: Pair) -> Pair:
    return choose(is_zero(a), a, mul(a, b))


@on_pairs(e.zdiv)
def zdiv(a: Pair, b: Pair) -> Pair:
    return choose(is_zero(a), a, div(a, b))


@on_pairs(e.zzmul)
def zzmul(a: Pair, b: Pair) -> Pair:
    zero = full(0, a[0].type)
    return choose(is_zero(a) | is_zero(b), (zero, zero), mul(a, b))


@on_pairs(e.reciprocal)
def reciprocal(z: Pair) -> Pair:
    return div((full(1, z[0].type), full(0, z[0].type)), z)


@on_pairs(e.sqrt)
def sqrt(z: Pair) -> Pair:
    x, y = z
    info = np.finfo(x.dtype.dtype)
    half = info.nmant // 2 + 1
    largest = e.max(e.abs(x), e.abs(y))
    huge, tiny = largest > float(info.max) / 4, largest < float(info.tiny) * 2.0 ** (2 * half)
    scale = e.select(
        huge, full(0.25, x.type), e.one_if(e.bitwise_not(tiny), full(4.0**half, x.type))
    )
    back = e.select(huge, full(2, x.type), e.one_if(e.bitwise_not(tiny), full(0.5**half, x.type)))
    a, b = x * scale, y * scale
    root = e.sqrt((e.abs(a) + e.hypot(a, b)) * 0.5)
    other = e.abs(b) / (2 * root)
    right = e.bitwise_not(is_negative(x))
    found = e.select(right, root, other) * back, with_sign(e.select(right, other, root) * back, y)
    found = choose(e.isinf(x) & e.isfinite(y), _at_infinity(x, y), found)
    found = choose(e.isinf(y), (e.abs(y), y), found)
    return choose(is_zero(z), (full(0, x.type), y), found)


def _at_infinity(x: Node, y: Node) -> Pair:
    zero = full(0, x.type)
    return e.select(x > 0, x, zero), with_sign(e.select(x > 0, zero, -x), y)


def _limit(x: Node) -> float:
    """Beyond, exp(x) overflows, while its product with a small sine or cosine may not."""
    return math.floor(math.log(float(np.finfo(x.dtype.dtype).max))) - 8.0


@on_pairs(e.exp)
def exp(z: Pair) -> Pair:
    x, y = z
    limit = _limit(x)
    beyond = x > limit
    size = e.exp(e.select(beyond, x - limit, x))
    more = e.select(beyond, full(math.exp(limit), x.type), full(1, x.type))
    wild = e.isinf(x) & e.bitwise_not(e.isfinite(y))
    first = e.select(wild, size, size * e.cos(y) * more)
    second = e.select(wild & (x < 0), size, size * e.sin(y) * more)
    return first, e.select(e.is_zero(y), y, second)


@on_pairs(e.expm1)
def expm1(z: Pair) -> Pair:
    x, y = z
    s = e.sin(y * 0.5)
    plain = e.expm1(x) * e.cos(y) - 2 * s * s
    first, second = exp(z)
    near = e.abs(x) < 1
    return e.select(near, plain, e.select(e.is_zero(y), e.expm1(x), first - 1)), second


@on_pairs(e.log)
def log(z: Pair) -> Pair:
    return _log_size(z), e.atan2(z[1], z[0])


def _log_size(z: Pair) -> Node:
    """`log(hypot(x, y))`, to full accuracy near 1, and without overflow."""
    x, y = z
    a, b = e.max(e.abs(x), e.abs(y)), e.min(e.abs(x), e.abs(y))
    size = e.hypot(x, y)
    near = 0.5 * e.log1p((a - 1) * (a + 1) + b * b)
    far = e.log(e.hypot(x * 0.5, y * 0.5)) + math.log(2)
    plain = e.select(e.isinf(size), far, e.log(size))
    return e.select((size > 0.5) & (size < 2), near, plain)


@on_pairs(e.log1p)
def log1p(z: Pair) -> Pair:
    x, y = z
    small = e.max(e.abs(x), e.abs(y)) < 0.5
    near = 0.5 * e.log1p(x * (2 + x) + y * y)
    return e.select(small, near, _log_size((1 + x, y))), e.atan2(y, 1 + x)


def _hyperbolic(x: Node) -> tuple[Node, Node, Node]:
    """`sinh(x)` and `cosh(x)`, both without the third, a factor that keeps them from overflow."""
    limit = _limit(x)
    size = e.abs(x)
    beyond, rest = size > limit, e.exp(size - limit) * 0.5
    more = e.select(beyond, full(math.exp(limit), x.type), full(1, x.type))
    return e.select(beyond, with_sign(rest, x), e.sinh(x)), e.select(beyond, rest, e.cosh(x)), more


@on_pairs(e.sinh)
def sinh(z: Pair) -> Pair:
    x, y = z
    s, c, more = _hyperbolic(x)
    wild = (e.isinf(x) | e.is_zero(x)) & e.bitwise_not(e.isfinite(y))
    first = e.select(wild, x, s * e.cos(y) * more)
    return first, e.select(e.is_zero(y), y, c * e.sin(y) * more)


@on_pairs(e.cosh)
def cosh(z: Pair) -> Pair:
    x, y = z
    s, c, more = _hyperbolic(x)
    wild = e.isinf(x) & e.bitwise_not(e.isfinite(y))
    first = e.select(wild, e.abs(x), c * e.cos(y) * more)
    flat = e.is_zero(y) | (e.is_zero(x) & e.bitwise_not(e.isfinite(y)))
    none = e.select(is_negative(x), -with_sign(full(0, x.type), y), with_sign(full(0, x.type), y))
    return first, e.select(flat, none, s * e.sin(y) * more)


@on_pairs(e.tanh)
def tanh(z: Pair) -> Pair:
    x, y = z
    limit = 11 if x.dtype.itemsize == 4 else 22
    t = e.tan(y)
    secant, s = 1 + t * t, e.sinh(x)
    below = 1 + secant * s * s
    near = secant * e.sqrt(1 + s * s) * s / below, t / below
    one = with_sign(full(1, x.type), x)
    tail = 4 * e.sin(y) * e.cos(y) * e.exp(-2 * e.abs(x))
    # Without an angle there is no number, but at infinity the limit.
    lost, endless = e.bitwise_not(e.isfinite(y)), e.isinf(x)
    one = e.select(lost & e.bitwise_not(endless), y - y, one)
    far = one, e.select(lost & endless, full(0, x.type), tail)
    first, second = choose(e.abs(x) > limit, far, near)
    first = e.select(e.is_zero(x) & e.bitwise_not(e.isfinite(y)), x, first)
    flat = e.is_zero(y)
    return e.select(flat, e.tanh(x), first), e.select(flat, y, second)


@on_pairs(e.asinh)
def asinh(z: Pair) -> Pair:
    return over_i(asin(times_i(z)))


def _minus_and_plus(z: Pair) -> tuple[Pair, Pair]:
    """The roots of `1 - z` and `1 + z`."""
    x, y = z
    return sqrt((1 - x, -y)), sqrt((1 + x, y))


def _infinite(z: Pair) -> Node:
    infinite: Node = e.isinf(z[0]) | e.isinf(z[1])
    return infinite


def _unknown_height(z: Pair) -> Node:
    """Whether the number is on the imaginary axis, where is NaN."""
    unknown: Node = e.is_zero(z[0]) & e.isnan(z[1])
    return unknown


@on_pairs(e.asin)
def asin(z: Pair) -> Pair:
    x, y = z
    minus, plus = _minus_and_plus(z)
    below = minus[0] * plus[0] - minus[1] * plus[1]
    found = e.atan2(x, below), e.asinh(minus[0] * plus[1] - minus[1] * plus[0])
    far = e.atan2(x, e.abs(y)), with_sign(full(math.inf, x.type), y)
    return choose(_infinite(z), far, choose(_unknown_height(z), z, found))


@on_pairs(e.acos)
def acos(z: Pair) -> Pair:
    x, y = z
    minus, plus = _minus_and_plus(z)
    found = 2 * e.atan2(minus[0], plus[0]), e.asinh(plus[0] * minus[1] - plus[1] * minus[0])
    far = e.atan2(e.abs(y), x), -with_sign(full(math.inf, x.type), y)
    axis = full(math.pi / 2, x.type), y
    return choose(_infinite(z), far, choose(_unknown_height(z), axis, found))


@on_pairs(e.acosh)
def acosh(z: Pair) -> Pair:
    x, y = z
    low, high = sqrt((x - 1, y)), sqrt((x + 1, y))
    found = e.asinh(low[0] * high[0] + low[1] * high[1]), 2 * e.atan2(low[1], high[0])
    far = full(math.inf, x.type), e.atan2(y, x)
    axis = y, full(math.pi / 2, x.type)
    return choose(_infinite(z), far, choose(_unknown_height(z), axis, found))


@on_pairs(e.atanh)
def atanh(z: Pair) -> Pair:
    x, y = z
    a, b = e.abs(x), e.abs(y)
    info = np.finfo(x.dtype.dtype)
    size = e.hypot(x, y)
    wide = size > math.sqrt(float(info.max)) / 4
    near = 0.25 * e.log1p(4 * a / ((1 - a) * (1 - a) + b * b))
    edge = 0.5 * (math.log(2) - e.log(b))
    first = e.select(e.eq(a, full(1, a.type)) & (b < float(info.eps)), edge, near)
    far = e.select(e.isinf(size), full(0, a.type), a / size / size)
    angle = 0.5 * e.atan2(2 * y, (1 - a) * (1 + a) - b * b)
    right = with_sign(full(math.pi / 2, a.type), y)
    found = with_sign(e.select(wide, far, first), x), e.select(wide, right, angle)
    # An infinite number whose height is NaN has no angle.
    found = found[0], e.select(e.isnan(y), y, found[1])
    return choose(_unknown_height(z), z, found)


def _scaled(f: Callable[[Pair], Pair], factor: float) -> Callable[[Pair], Pair]:
    def scaled(z: Pair) -> Pair:
        x, y = f(z)
        return x * factor, y * factor

    return scaled


on_pairs(e.neg)(lambda z: (-z[0], -z[1]))
on_pairs(e.exp2)(lambda z: exp((z[0] * math.log(2), z[1] * math.log(2))))
on_pairs(e.log2)(_scaled(log, 1 / math.log(2)))
on_pairs(e.log10)(_scaled(log, 1 / math.log(10)))
on_pairs(e.sin)(lambda z: over_i(sinh(times_i(z))))
on_pairs(e.cos)(lambda z: cosh(times_i(z)))
on_pairs(e.tan)(lambda z: over_i(tanh(times_i(z))))
on_pairs(e.atan)(lambda z: over_i(atanh(times_i(z))))
