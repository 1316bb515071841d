"""Sums, products, quotients, powers and what rounds to whole numbers.

Sums, differences and products are rounded once by every backend. Quotients and roots are not: WGSL
allows 2.5 ulp for a quotient, so they get `QUOTIENT` units. Zero counts with both signs, as an
interval does not tell them apart: `1 / x` may be -inf where x may be 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import DType, Node
from retrograd.ops import elementwise as el
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    computed,
    down,
    either,
    ends_of,
    format_of,
    up,
    where_nan,
    widened,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.complex_numbers import by_parts, on_rectangles

QUOTIENT = 3  # units in the last place of quotients and square roots
FUNCTION = 16  # those of elementary functions; see the README


def holds(x: Interval, value: float) -> Any:
    return (x.lower <= value) & (x.upper >= value)


def is_zero(x: Interval) -> Any:
    """Where an element is 0 for sure."""
    return (x.lower == 0) & (x.upper == 0) & ~np.asarray(x.nan)


def is_unbounded(x: Interval) -> Any:
    return (x.lower == -INF) | (x.upper == INF)


def same(node: Node) -> bool:
    """Whether both inputs are one node, and so have one value."""
    return node.inputs[0] is node.inputs[1]


def whole(lower: Any, upper: Any, dtype: DType) -> Interval:
    """Integers between two numbers that float64 computed; all there are, if some are beyond the
    dtype: they come back at its other end."""
    least, most = ends_of(dtype)
    big = np.maximum(np.abs(lower), np.abs(upper)) >= 2.0**53
    if np.any(big):
        lower, upper = np.where(big, down(lower), lower), np.where(big, up(upper), upper)
    wraps = (lower < least) | (upper > most) | (upper >= 2.0**63)
    if np.any(wraps):
        lower, upper = np.where(wraps, least, lower), np.where(wraps, most, upper)
    return Interval(np.asarray(lower, np.float64), np.asarray(upper, np.float64))


def result(lower: Any, upper: Any, dtype: DType, nan: Any = False) -> Interval:
    """What was computed with one rounding, of floats, or exactly, of integers."""
    if not dtype.is_inexact:
        return whole(lower, upper, dtype)
    return computed(lower, upper, dtype, nan)


@rule(el.add)
@by_parts
def add(node: Node, a: Interval, b: Interval) -> Interval:
    with np.errstate(all="ignore"):
        low, high = a.lower + b.lower, a.upper + b.upper
    clash = ((a.lower == -INF) & (b.upper == INF)) | ((a.upper == INF) & (b.lower == -INF))
    nan = either(a.nan, b.nan, where_nan(clash))
    low, high = np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high)
    if not node.dtype.is_inexact:
        return whole(low, high, node.dtype)
    return exact_zeros(low, high, node.dtype, nan)


def exact_zeros(low: Any, high: Any, dtype: DType, nan: Any) -> Interval:
    """Of sums, in which float64 does not underflow: a zero is one."""
    found = computed(low, high, dtype, nan)
    return Interval(
        np.where(low == 0, 0.0, found.lower), np.where(high == 0, 0.0, found.upper), found.nan
    )


@rule(el.sub)
@by_parts
def sub(node: Node, a: Interval, b: Interval) -> Interval:
    if same(node):
        zero = np.zeros(a.shape)
        return Interval(zero, zero, either(a.nan, where_nan(is_unbounded(a))))
    with np.errstate(all="ignore"):
        low, high = a.lower - b.upper, a.upper - b.lower
    clash = ((a.lower == -INF) & (b.lower == -INF)) | ((a.upper == INF) & (b.upper == INF))
    nan = either(a.nan, b.nan, where_nan(clash))
    low, high = np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high)
    if not node.dtype.is_inexact:
        return whole(low, high, node.dtype)
    return exact_zeros(low, high, node.dtype, nan)


def products(a: Interval, b: Interval) -> tuple[Any, Any]:
    """The least and the greatest product; where 0 meets infinity, 0 counts."""
    with np.errstate(all="ignore"):
        ends = [a.lower * b.lower]
        if a.upper is not a.lower:
            ends.append(a.upper * b.lower)
        if b.upper is not b.lower:
            ends.append(a.lower * b.upper)
            if a.upper is not a.lower:
                ends.append(a.upper * b.upper)
    ends = [np.where(np.isnan(p), 0.0, p) if np.isnan(p).any() else p for p in ends]
    low = high = ends[0]
    for p in ends[1:]:
        low, high = np.minimum(low, p), np.maximum(high, p)
    return low, high


def product(a: Interval, b: Interval, dtype: DType, nan: Any = False) -> Interval:
    """Of two numbers that have nothing to do with each other."""
    low, high = products(a, b)
    if not dtype.is_inexact:
        return whole(low, high, dtype)
    found = computed(low, high, dtype, nan)
    # Where float64 underflows the sign remains.
    low = np.where(low >= 0, np.maximum(found.lower, 0.0), found.lower)
    high = np.where(high <= 0, np.minimum(found.upper, 0.0), found.upper)
    none = ((a.lower == 0) & (a.upper == 0)) | ((b.lower == 0) & (b.upper == 0))
    positive = ((a.lower >= 0) & (b.lower >= 0)) | ((a.upper <= 0) & (b.upper <= 0))
    negative = ((a.lower >= 0) & (b.upper <= 0)) | ((a.upper <= 0) & (b.lower >= 0))
    under = (found.lower != low) & ~(positive | none)
    over = (found.upper != high) & ~(negative | none)
    return Interval(np.where(under, found.lower, low), np.where(over, found.upper, high), found.nan)


def square(x: Interval, dtype: DType) -> Interval:
    size = x.size
    least = np.where(holds(x, 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper)))
    with np.errstate(all="ignore"):
        low, high = least * least, size * size
    if not dtype.is_inexact:
        return whole(low, high, dtype)
    found = computed(low, high, dtype, x.nan)
    zero = size == 0
    return Interval(np.maximum(found.lower, 0.0), np.where(zero, 0.0, found.upper), found.nan)


def zero_times_infinity(a: Interval, b: Interval) -> Any:
    return holds(a, 0) & is_unbounded(b)


@rule(el.mul)
@on_rectangles("mul")
def mul(node: Node, a: Interval, b: Interval) -> Interval:
    if same(node):
        return square(a, node.dtype)
    nan = either(
        a.nan, b.nan, where_nan(zero_times_infinity(a, b)), where_nan(zero_times_infinity(b, a))
    )
    return product(a, b, node.dtype, nan)


@rule(el.zmul)
@on_rectangles("mul")
def zmul(node: Node, a: Interval, b: Interval) -> Interval:
    """`a * b`, and a where that is 0."""
    beside = where_nan(b.nan & ~is_zero(a)) if b.nan is not False else False
    nan = either(a.nan, beside, where_nan(zero_times_infinity(b, a)))
    if same(node):
        return square(a, node.dtype)._replace(nan=a.nan)
    return product(a, b, node.dtype, nan)


@rule(el.zzmul)
@on_rectangles("mul")
def zzmul(node: Node, a: Interval, b: Interval) -> Interval:
    """`a * b`, and 0 where one of them is."""
    first = where_nan(a.nan & ~is_zero(b)) if a.nan is not False else False
    second = where_nan(b.nan & ~is_zero(a)) if b.nan is not False else False
    if same(node):
        return square(a, node.dtype)._replace(nan=a.nan)
    return product(a, b, node.dtype, either(first, second))


def quotients(a: Interval, b: Interval, dtype: DType, nan: Any) -> Interval:
    """Where b may be 0 anything: that has a sign."""
    pole = holds(b, 0)
    with np.errstate(all="ignore"):
        ends = [x / y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    ends = [np.where(np.isnan(q), 0.0, q) for q in ends]  # inf / inf, of which 0 is the least
    low = np.minimum(np.minimum(ends[0], ends[1]), np.minimum(ends[2], ends[3]))
    high = np.maximum(np.maximum(ends[0], ends[1]), np.maximum(ends[2], ends[3]))
    low, high = np.where(pole, -INF, low), np.where(pole, INF, high)
    both = is_unbounded(a) & is_unbounded(b)
    low = np.where(both & ~pole, np.minimum(low, _signed(a, b, -INF)), low)
    high = np.where(both & ~pole, np.maximum(high, _signed(a, b, INF)), high)
    found = widened(low, high, dtype, QUOTIENT, nan)
    # Where float64 underflows the sign remains, and the least number counts.
    none = (a.lower == 0) & (a.upper == 0)
    under = (low == 0) & ~none & ~pole
    over = (high == 0) & ~none & ~pole
    positive = ((a.lower >= 0) & (b.lower > 0)) | ((a.upper <= 0) & (b.upper < 0))
    negative = ((a.lower >= 0) & (b.upper < 0)) | ((a.upper <= 0) & (b.lower > 0))
    return Interval(
        np.where(under & ~positive, -5e-324, found.lower),
        np.where(over & ~negative, 5e-324, found.upper),
        nan,
    )


def _signed(a: Interval, b: Interval, end: float) -> Any:
    """An infinite quotient, where infinity over a small number is one."""
    positive = ((a.upper == INF) & (b.upper > 0)) | ((a.lower == -INF) & (b.lower < 0))
    negative = ((a.upper == INF) & (b.lower < 0)) | ((a.lower == -INF) & (b.upper > 0))
    return np.where(positive if end > 0 else negative, end, 0.0)


@rule(el.div)
@on_rectangles("div")
def div(node: Node, a: Interval, b: Interval) -> Interval:
    both = where_nan(is_unbounded(a) & is_unbounded(b))
    none = where_nan(holds(a, 0) & holds(b, 0))
    nan = either(a.nan, b.nan, both, none)
    if same(node):
        return widened(np.ones(a.shape), np.ones(a.shape), node.dtype, QUOTIENT, nan)
    return quotients(a, b, node.dtype, nan)


@rule(el.zdiv)
@on_rectangles("div")
def zdiv(node: Node, a: Interval, b: Interval) -> Interval:
    """`a / b`, and a where that is 0."""
    zero = is_zero(a)
    beside = where_nan(b.nan & ~zero) if b.nan is not False else False
    nan = either(a.nan, beside, where_nan(is_unbounded(a) & is_unbounded(b)))
    found = quotients(a, b, node.dtype, nan)
    return Interval(np.where(zero, 0.0, found.lower), np.where(zero, 0.0, found.upper), nan)


@rule(el.reciprocal)
@on_rectangles("reciprocal")
def reciprocal(node: Node, x: Interval) -> Interval:
    one = np.ones(x.shape)
    return quotients(Interval(one, one), x, node.dtype, x.nan)


@rule(el.floor_div)
def floor_div(node: Node, a: Interval, b: Interval) -> Interval:
    if node.dtype.is_inexact:
        # NumPy takes the remainder first, so that the floor is of the exact quotient; others may
        # round that first: the intervals hold both.
        pole = where_nan(holds(b, 0) | is_unbounded(a))
        q = quotients(a, b, node.dtype, either(a.nan, b.nan, pole))
        low = np.where(np.isfinite(q.lower), np.floor(q.lower), q.lower)
        return Interval(low, np.floor(q.upper), q.nan)
    with np.errstate(all="ignore"):
        ends = [np.floor(x / y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    low = np.fmin(np.fmin(ends[0], ends[1]), np.fmin(ends[2], ends[3]))
    high = np.fmax(np.fmax(ends[0], ends[1]), np.fmax(ends[2], ends[3]))
    size = a.size
    pole = holds(b, 0)
    found = whole(np.where(pole, -size, low), np.where(pole, size, high), node.dtype)
    large = np.maximum(size, b.size) > 2.0**52
    return Interval(
        np.where(large, ends_of(node.dtype)[0], found.lower),
        np.where(large, ends_of(node.dtype)[1], found.upper),
    )


@rule(el.mod)
def mod(node: Node, a: Interval, b: Interval) -> Interval:
    """Between 0 and b; a itself where it is there for sure."""
    low, high = np.minimum(b.lower, 0.0), np.maximum(b.upper, 0.0)
    positive = (b.lower > 0) & (a.lower >= 0)
    inside = positive & (a.upper < b.lower)
    high = np.where(positive, np.minimum(high, a.upper), high)
    low, high = np.where(inside, a.lower, low), np.where(inside, a.upper, high)
    if not node.dtype.is_inexact:
        zero = holds(b, 0)  # of integers `a mod 0` is a
        low = np.where(zero, np.minimum(low, a.lower), low)
        return whole(low, np.where(zero, np.maximum(high, a.upper), high), node.dtype)
    nan = either(a.nan, b.nan, where_nan(holds(b, 0) | is_unbounded(a)))
    # As computed by a quotient that is rounded, it may be off by what the product loses.
    found = widened(low, high, node.dtype, 4, nan, absolute=np.where(inside, 0.0, 0.0))
    slack = 8 * np.where(inside, 0.0, np.minimum(a.size, 1e300)) * _unit(node.dtype)
    return Interval(found.lower - slack, found.upper + slack, nan)


def _unit(dtype: DType) -> float:
    return format_of(dtype).eps


@rule(el.neg)
@by_parts
def neg(node: Node, x: Interval) -> Interval:
    if node.dtype.is_inexact:
        low = -x.upper
        return Interval(low, low if x.upper is x.lower else -x.lower, x.nan)
    return whole(-x.upper, -x.lower, node.dtype)


@rule(el.abs)
def abs_(node: Node, x: Interval) -> Interval:
    low = np.where(holds(x, 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper)))
    if node.dtype.is_inexact:
        return Interval(low, x.size, x.nan)
    return whole(low, x.size, node.dtype)


@rule(el.copysign)
def copysign(node: Node, a: Interval, b: Interval) -> Interval:
    size = abs_(node, a)
    plus, minus = (b.lower > 0) & ~np.asarray(b.nan), (b.upper < 0) & ~np.asarray(b.nan)
    return Interval(
        np.where(plus, size.lower, -size.upper), np.where(minus, -size.lower, size.upper), a.nan
    )


@rule(el.nextafter)
def nextafter(node: Node, a: Interval, b: Interval) -> Interval:
    """A unit of the dtype to each side; beyond the greatest number that is infinity, and before
    infinity the greatest number."""
    kind = format_of(node.dtype)
    low, high = (np.clip(x, -kind.most, kind.most) for x in (a.lower, a.upper))
    low = low - np.abs(low) * kind.eps - kind.tiny
    high = high + np.abs(high) * kind.eps + kind.tiny
    high = np.where((high > kind.most) | (a.upper == INF), INF, high)
    low = np.where((low < -kind.most) | (a.lower == -INF), -INF, low)
    return Interval(low, high, either(a.nan, b.nan))


def _whole_number(f: Any) -> Any:
    def steps(node: Node, x: Interval) -> Interval:
        return Interval(f(x.lower), f(x.upper), x.nan)

    return steps


for _op, _f in (
    (el.floor, np.floor),
    (el.ceil, np.ceil),
    (el.trunc, np.trunc),
    (el.round, np.rint),
    (el.sign, np.sign),
):
    rule(_op)(_whole_number(_f))


@rule(el.sqrt)
@on_rectangles("sqrt")
def sqrt(node: Node, x: Interval) -> Interval:
    nan = either(x.nan, where_nan(x.lower < 0))
    found = widened(
        np.sqrt(np.maximum(x.lower, 0)), np.sqrt(np.maximum(x.upper, 0)), node.dtype, QUOTIENT, nan
    )
    return found


@rule(el.rsqrt)
def rsqrt(node: Node, x: Interval) -> Interval:
    nan = either(x.nan, where_nan(x.lower < 0))
    with np.errstate(all="ignore"):
        low, high = 1 / np.sqrt(np.maximum(x.upper, 0)), 1 / np.sqrt(np.maximum(x.lower, 0))
    found = widened(low, high, node.dtype, FUNCTION, nan)
    return Interval(np.where(holds(x, 0), -INF, found.lower), found.upper, nan)


@rule(el.pow)
def pow_(node: Node, a: Interval, b: Interval) -> Interval:
    if not node.dtype.is_inexact:
        return _whole_power(node, a, b)
    with np.errstate(all="ignore"):
        size = Interval(np.where(holds(a, 0), 0.0, np.minimum(abs(a.lower), abs(a.upper))), a.size)
        ends = [x**y for x in (size.lower, size.upper) for y in (b.lower, b.upper)]
    least: Any = np.minimum.reduce(ends)
    most: Any = np.maximum.reduce(ends)
    one = (size.lower <= 1) & (size.upper >= 1) | holds(b, 0)
    least, most = (
        np.where(one, np.minimum(least, 1), least),
        np.where(one, np.maximum(most, 1), most),
    )
    fixed = (b.lower == b.upper) & (b.lower == np.rint(b.lower)) & np.isfinite(b.lower)
    odd = fixed & (np.abs(b.lower) % 2 == 1)
    even = fixed & ~odd
    negative = (a.upper < 0) | ((a.upper <= 0) & (b.lower > 0))
    positive = a.lower >= 0
    # An odd power of what has both signs goes from that of the least to that of the greatest; of
    # what is no whole power for sure, there may be both.
    mixed = ~positive & ~even
    with np.errstate(all="ignore"):
        low = np.where(mixed, np.where(odd & negative, -most, -_side(-a.lower, b, most)), least)
        high = np.where(mixed & odd, np.where(negative, -least, _side(a.upper, b, most)), most)
    pole = holds(a, 0) & (b.lower < 0)
    low = np.where(pole & ~even, -INF, low)
    high = np.where(pole, INF, high)
    bad = ~fixed & (a.lower < 0)
    nan = where_nan(bad)
    if a.nan is not False or b.nan is not False:
        nan = either(nan, a.nan, b.nan)  # 1**nan is 1, which is inside anyway
    found = widened(low, high, node.dtype, FUNCTION, nan)
    low = np.where(one & ~mixed, np.minimum(found.lower, 1.0), found.lower)
    return Interval(low, np.where(one, np.maximum(found.upper, 1.0), found.upper), nan)


def _side(x: Any, b: Interval, most: Any) -> Any:
    """The greatest power of numbers from 0 to x, nothing if x is negative."""
    both = np.maximum(np.maximum(x, 0) ** b.lower, np.maximum(x, 0) ** b.upper)
    return np.where(x < 0, 0.0, np.maximum(both, np.where(b.lower <= 0, most, 0.0)))


def _whole_power(node: Node, a: Interval, b: Interval) -> Interval:
    with np.errstate(all="ignore"):
        most = np.maximum(a.size, 1.0) ** np.maximum(b.upper, 0)
    most = np.where(most > 2.0**52, 2.0**70, most)
    positive = (a.lower >= 0) | ((b.lower == b.upper) & (b.lower % 2 == 0))
    with np.errstate(all="ignore"):
        least = np.where(
            (a.lower >= 1) & (b.lower >= 0), np.maximum(a.lower, 1) ** np.maximum(b.lower, 0), 0.0
        )
    least = np.where(least > 2.0**52, 0, least)
    return whole(np.where(positive, least, -most), most, node.dtype)
