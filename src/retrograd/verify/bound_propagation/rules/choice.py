"""Comparisons, choice, bounds, bits and conversions: nothing here rounds, but a cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node, apply, bool_
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    Rectangle,
    either,
    ends_of,
    point,
    rounded,
    where_nan,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import holds, same, whole


def truth(sure: Any, never: Any) -> Interval:
    """A boolean: true for sure, false for sure, or either."""
    return Interval(np.where(sure, 1.0, 0.0), np.where(never, 0.0, 1.0))


def _compare(less: Callable[..., Any], strict: bool, turned: bool) -> Callable[..., Interval]:
    def compare(node: Node, a: Interval, b: Interval) -> Interval:
        nan = np.asarray(either(a.nan, b.nan))
        if same(node):
            equal = np.broadcast_to(np.asarray(not strict), a.shape)
            return truth(equal & ~nan, ~equal)
        if turned:
            a, b = b, a
        if strict:
            sure, never = a.upper < b.lower, a.lower >= b.upper
        else:
            sure, never = a.upper <= b.lower, a.lower > b.upper
        return truth(sure & ~nan, never)

    return compare


for _op, _strict, _turned in (
    (el.lt, True, False),
    (el.le, False, False),
    (el.gt, True, True),
    (el.ge, False, True),
):
    rule(_op)(_compare(np.less, _strict, _turned))


def _equal(node: Node, a: Interval, b: Interval) -> tuple[Any, Any]:
    """Where both are equal for sure, and where they never are."""
    nan = np.asarray(either(a.nan, b.nan))
    if same(node):
        always = np.ones(a.shape, bool)
        return always & ~nan, ~always
    sure = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
    return sure & ~nan, (a.upper < b.lower) | (b.upper < a.lower)


def _parts(node: Node, a: Any, b: Any) -> tuple[Any, Any]:
    if not isinstance(a, Rectangle):
        return _equal(node, a, b)
    (sure, never), (sure_i, never_i) = (_equal(node, a[i], b[i]) for i in range(2))
    return sure & sure_i, never | never_i


@rule(el.eq)
def eq(node: Node, a: Any, b: Any) -> Interval:
    return truth(*_parts(node, a, b))


@rule(el.ne)
def ne(node: Node, a: Any, b: Any) -> Interval:
    sure, never = _parts(node, a, b)
    return truth(never, sure)


@rule(el.isnan)
def isnan(node: Node, x: Interval) -> Interval:
    may = np.broadcast_to(np.asarray(x.nan), x.shape)
    return truth(may & False, ~may)


@rule(el.isinf)
def isinf(node: Node, x: Interval) -> Interval:
    may = (x.lower == -INF) | (x.upper == INF)
    sure = (x.lower == x.upper) & may & ~np.asarray(x.nan)
    return truth(sure, ~may)


@rule(el.isfinite)
def isfinite(node: Node, x: Interval) -> Interval:
    may_not = (x.lower == -INF) | (x.upper == INF) | np.asarray(x.nan)
    return truth(~may_not, (x.lower == x.upper) & np.isinf(x.lower))


@rule(el.signbit)
def signbit(node: Node, x: Interval) -> Interval:
    nan = np.asarray(x.nan)
    return truth((x.upper < 0) & ~nan, (x.lower > 0) & ~nan)


@rule(el.max)
def max_(node: Node, a: Interval, b: Interval) -> Interval:
    return Interval(
        np.maximum(a.lower, b.lower), np.maximum(a.upper, b.upper), either(a.nan, b.nan)
    )


@rule(el.min)
def min_(node: Node, a: Interval, b: Interval) -> Interval:
    return Interval(
        np.minimum(a.lower, b.lower), np.minimum(a.upper, b.upper), either(a.nan, b.nan)
    )


@rule(el.clamp)
def clamp(node: Node, x: Interval, low: Interval, high: Interval) -> Interval:
    return min_(node, max_(node, x, low), high)


@rule(el.relu)
def relu(node: Node, x: Interval) -> Interval:
    low = np.maximum(x.lower, 0.0)
    return Interval(low, low if x.upper is x.lower else np.maximum(x.upper, 0.0), x.nan)


@rule(el.select)
def select(node: Node, c: Interval, a: Any, b: Any) -> Any:
    if isinstance(a, Rectangle):
        return Rectangle(*[select(node, c, a[i], b[i]) for i in range(2)])
    may, may_not = c.upper > 0, c.lower < 1
    nan: Any = False
    if a.nan is not False or b.nan is not False:
        nan = where_nan((np.asarray(a.nan) & may) | (np.asarray(b.nan) & may_not))
    low = np.minimum(np.where(may, a.lower, INF), np.where(may_not, b.lower, INF))
    high = np.maximum(np.where(may, a.upper, -INF), np.where(may_not, b.upper, -INF))
    return Interval(low, high, nan)


# -- bits -----------------------------------------------------------------------------------------


@rule(el.bitwise_not)
def bitwise_not(node: Node, x: Interval) -> Interval:
    if node.dtype is bool_:
        return Interval(1 - x.upper, 1 - x.lower)
    total = -1.0 if node.dtype.kind == "int" else ends_of(node.dtype)[1]
    return whole(total - x.upper, total - x.lower, node.dtype)


def _exact(node: Node, *given: Interval) -> Interval | None:
    """The value where all inputs are known numbers that float64 has."""
    if not all(x.is_point and (x.size < 2.0**53).all() for x in given):
        return None
    kinds = [x.dtype.dtype for x in node.inputs]
    arrays = [x.lower.astype(kind) for x, kind in zip(given, kinds, strict=True)]
    return point(apply(node, arrays))


def _bits(most: Callable[[Interval, Interval], Any]) -> Callable[..., Interval]:
    def bits(node: Node, a: Interval, b: Interval) -> Interval:
        known = _exact(node, a, b)
        if known is not None:
            return known
        least, all_of = ends_of(node.dtype)
        inside = (a.lower >= 0) & (b.lower >= 0)
        low, high = np.where(inside, 0.0, least), np.where(inside, most(a, b), all_of)
        if node.dtype is bool_:
            first = np.maximum if node.prim is el.bitwise_or else np.minimum
            if node.prim is not el.bitwise_xor:
                return Interval(first(a.lower, b.lower), first(a.upper, b.upper))
        points = (
            (a.lower == a.upper) & (b.lower == b.upper) & (np.maximum(a.size, b.size) < 2.0**53)
        )
        kinds = [x.dtype.dtype for x in node.inputs]
        both = [np.where(points, x.lower, 0).astype(k) for x, k in zip((a, b), kinds, strict=True)]
        value = apply(node, both).astype(np.float64)
        return whole(np.where(points, value, low), np.where(points, value, high), node.dtype)

    return bits


def _all_bits(a: Interval, b: Interval) -> Any:
    """The number with all bits that the larger one has."""
    with np.errstate(all="ignore"):
        return 2.0 ** (np.floor(np.log2(np.maximum(np.maximum(a.upper, b.upper), 1.0))) + 1) - 1


rule(el.bitwise_and)(_bits(lambda a, b: np.minimum(a.upper, b.upper)))
rule(el.bitwise_or, el.bitwise_xor)(_bits(_all_bits))


@rule(el.shift_left)
def shift_left(node: Node, a: Interval, b: Interval) -> Interval:
    width = 8 * node.dtype.itemsize
    safe = (b.lower >= 0) & (b.upper < width)
    with np.errstate(all="ignore"):
        ends = [
            x * 2.0 ** np.clip(y, 0, width) for x in (a.lower, a.upper) for y in (b.lower, b.upper)
        ]
    least, most = ends_of(node.dtype)
    low = np.where(safe, np.minimum.reduce(ends), least)
    known = _exact(node, a, b)
    return known or whole(low, np.where(safe, np.maximum.reduce(ends), most), node.dtype)


@rule(el.shift_right)
def shift_right(node: Node, a: Interval, b: Interval) -> Interval:
    """The floor of a quotient by a power of two; a negative or large count leaves signs alone."""
    width = 8 * node.dtype.itemsize
    counts = [np.where((y < 0) | (y >= width), 2 * width, y) for y in (b.lower, b.upper)]
    counts.append(np.where((b.lower < 0) & (b.upper >= 0), 0, counts[0]))
    ends = [np.floor(x * 2.0**-y) for x in (a.lower, a.upper) for y in counts]
    return whole(np.minimum.reduce(ends), np.maximum.reduce(ends), node.dtype)


# -- conversions ----------------------------------------------------------------------------------


@rule(Cast)
def cast(node: Node, x: Any) -> Any:
    (source,) = node.inputs
    to = node.dtype
    if to.is_complex:
        if isinstance(x, Rectangle):
            return Rectangle(*[rounded(p.lower, p.upper, to, p.nan) for p in x])
        zero = np.zeros(x.shape)
        return Rectangle(rounded(x.lower, x.upper, to, x.nan), Interval(zero, zero))
    if to is bool_:
        return _as_bool(x)
    if to.is_float:
        return rounded(x.lower, x.upper, to, x.nan)
    if source.dtype.is_inexact:
        least, most = ends_of(to)
        low, high = np.clip(np.trunc(x.lower), least, most), np.clip(np.trunc(x.upper), least, most)
        nan = np.asarray(x.nan)
        return Interval(
            np.where(nan, np.minimum(low, 0), low), np.where(nan, np.maximum(high, 0), high)
        )
    return whole(x.lower, x.upper, to)


def _as_bool(x: Any) -> Interval:
    parts = x if isinstance(x, Rectangle) else (x,)
    nan = np.asarray(either(*[p.nan for p in parts]))
    zero = np.logical_and.reduce([holds(p, 0) for p in parts])
    only = np.logical_and.reduce([(p.lower == 0) & (p.upper == 0) for p in parts])
    return truth(~zero, only & ~nan)
