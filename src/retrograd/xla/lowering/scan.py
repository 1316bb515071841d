"""Running sums, products, extrema and recurrences along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.numerics.half import is_half
from retrograd.ops.scan import (
    CumArgMax,
    CumArgMin,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    LinearScan,
    LogCumSumExp,
)
from retrograd.xla.lowering.elementwise import in_float32, logaddexp
from retrograd.xla.lowering.rules import JaxTrace, lowers


def wide_dtype(x: Any) -> Any:
    """Twice the precision, where there is one."""
    return {"float32": np.float64, "complex64": np.complex128}.get(x.dtype.name, x.dtype)


def in_double(t: JaxTrace, node: Node, f: Callable[..., Any], xs: Any) -> Any:
    """`f(*xs)` in twice the precision, rounded once."""

    def value(*xs: Any) -> Any:
        cast = t.lax.convert_element_type
        return cast(f(*[cast(x, wide_dtype(x)) for x in xs]), xs[0].dtype)

    return in_float32(t, node, value, xs)


@lowers(CumSum)
def cumsum(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    return in_double(t, node, lambda x: t.lax.cumsum(x, prim.axis, prim.reverse), [x])


@lowers(CumProd)
def cumprod(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    return in_float32(t, node, lambda x: t.lax.cumprod(x, prim.axis, prim.reverse), [x])


@lowers(CumMax)
def cummax(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    return t.lax.cummax(x, prim.axis, prim.reverse)


@lowers(CumMin)
def cummin(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    return t.lax.cummin(x, prim.axis, prim.reverse)


@lowers(LogCumSumExp)
def logcumsumexp(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim

    def value(x: Any) -> Any:
        if x.shape[prim.axis] == 0:
            return x
        add = lambda a, b: logaddexp(t, a, b)  # noqa: E731
        return t.lax.associative_scan(add, x, prim.reverse, prim.axis)

    return in_double(t, node, value, [x])


@lowers(CumArgMax)
def cumargmax(t: JaxTrace, node: Node, x: Any) -> Any:
    return _attained(t, node, x, lambda a, b: a > b)


@lowers(CumArgMin)
def cumargmin(t: JaxTrace, node: Node, x: Any) -> Any:
    return _attained(t, node, x, lambda a, b: a < b)


def _attained(t: JaxTrace, node: Node, x: Any, beats: Callable[[Any, Any], Any]) -> Any:
    """Where the running extremum was first attained; the first NaN stays."""
    prim: Any = node.prim
    if is_half(x):
        x = t.lax.convert_element_type(x, np.float32)

    def later(first: Any, second: Any) -> Any:
        """Of two stretches one behind the other, the extremum and where it is."""
        (a, i), (b, j) = first, second
        new = beats(b, a) | ((b != b) & (a == a))
        return t.lax.select(new, b, a), t.lax.select(new, j, i)

    place = t.lax.broadcasted_iota(np.int64, x.shape, prim.axis)
    if x.shape[prim.axis] == 0:
        return place
    return t.lax.associative_scan(later, (x, place), prim.reverse, prim.axis)[1]


@lowers(LinearScan)
def linear_scan(t: JaxTrace, node: Node, a: Any, b: Any) -> Any:
    """Step by step, in twice the precision: float64 with what each step rounded off."""
    prim: Any = node.prim
    lax = t.lax

    def value(a: Any, b: Any) -> Any:
        exact = a.dtype.kind not in "fc"
        double = a.dtype in (np.float64, np.complex128)
        wide = wide_dtype(a)
        a, b = (lax.convert_element_type(t.jnp.moveaxis(x, prim.axis, 0), wide) for x in (a, b))

        def step(state: Any, given: Any) -> Any:
            by, more = given
            moved = lax.select(state[0] == 0, state[0], by * state[0])
            if exact or not double:
                y = moved + more
                return (y,), y
            return _compensated(t, state, by, more)

        zero = lax.full(b.shape[1:], 0, wide)
        start = (zero,) if exact or not double else (zero, zero)
        if not exact:
            start = tuple(-z for z in start)
        _, y = lax.scan(step, start, (a, b), reverse=prim.reverse)
        return t.jnp.moveaxis(y, 0, prim.axis)

    def rounded_value(a: Any, b: Any) -> Any:
        return lax.convert_element_type(value(a, b), a.dtype)

    return in_float32(t, node, rounded_value, [a, b])


def _compensated(t: JaxTrace, state: Any, by: Any, more: Any) -> Any:
    """A step of doubles, with what products and sums rounded off beside the state."""
    lax = t.lax
    total, lost = state
    if by.dtype == np.complex128:  # as numbers that are rounded each
        y = lax.select(total == 0, total, by * total) + more
        return (y, lost), y
    product, rest = two_product(t, by, total)
    none = total == 0
    moved = lax.select(none, total, product)
    rest = lax.select(none, lax.full_like(rest, 0), rest)
    after, off = two_sum(moved, more)
    lost = lax.select(lost == 0, lost, by * lost) + (rest + off)
    both = after + lost
    y = lax.select((lost != 0) & (both - both == 0), both, after)
    return (after, lost), y


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum, and what was rounded off."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def two_product(t: JaxTrace, a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product of float64, and what was rounded off (Dekker)."""
    r = t.rounded
    product = r(a * b)

    def halves(x: Any) -> tuple[Any, Any]:
        wide = r(x * 134217729.0)  # 2^27 + 1
        high = wide - (wide - x)
        return high, x - high

    (x, y), (u, v) = halves(a), halves(b)
    return product, ((r(x * u) - product) + r(x * v) + r(y * u)) + r(y * v)
