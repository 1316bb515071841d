"""Reductions, running sums and their kin, order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import DType, Node
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
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
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.ops.windows import Fold
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    accumulator,
    either,
    ends_of,
    full,
    point,
    where_nan,
    widened,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import (
    FUNCTION,
    exact_zeros,
    product,
    whole,
)
from retrograd.verify.bound_propagation.rules.complex_numbers import by_parts, on_rectangles
from retrograd.verify.bound_propagation.rules.contraction import additions, at_least_zero, summed

MOST_PAIRS = 1 << 24  # pairs of elements that are compared to find what may be where in an order


def linear(
    node: Node, x: Interval, f: Callable[..., Any], terms: int, rounds: int = 0,
    added: int | None = None,
) -> Interval:  # fmt: skip
    """Sums of elements that `f` adds up."""
    with np.errstate(all="ignore"):
        low = f(x.lower)
        high = low if x.upper is x.lower else f(x.upper)
        size = f(x.size)
    nan = False if x.nan is False else where_nan(f(np.broadcast_to(x.nan, x.shape) * 1.0) > 0)
    clash = np.isnan(low) | np.isnan(high)
    if clash.any() or np.isinf(size).any():
        plus, minus = f((x.upper == INF) * 1.0) > 0, f((x.lower == -INF) * 1.0) > 0
        low, high = np.where(minus, -INF, low), np.where(plus, INF, high)
        nan = either(nan, where_nan(plus & minus))
    found = summed(low, high, size, terms, node.dtype, nan, rounds, added)
    if not node.dtype.is_inexact:
        return found
    positive = f((x.lower < 0) * 1.0) == 0
    return at_least_zero(found, positive, f((x.upper > 0) * 1.0) == 0)


@rule(ReduceSum)
@by_parts
def reduce_sum(node: Node, x: Interval) -> Interval:
    axes = node.prim.axes  # type: ignore[attr-defined]
    terms = math.prod(x.shape[i] for i in axes)
    return linear(node, x, lambda v: np.sum(v, axis=axes), terms, added=additions(terms, len(axes)))


@rule(CumSum)
@by_parts
def cumsum(node: Node, x: Interval) -> Interval:
    prim: Any = node.prim

    def f(v: Any) -> Any:
        back = slice(None, None, -1) if prim.reverse else slice(None)
        at = (*(slice(None),) * prim.axis, back)
        return np.cumsum(v[at], axis=prim.axis)[at]

    return linear(node, x, f, x.shape[prim.axis])


@rule(Fold)
@by_parts
def fold(node: Node, x: Interval) -> Interval:
    sizes = node.inputs[0].shape
    terms = max(1, math.prod(map(int, sizes)) // max(1, math.prod(map(int, node.shape))) * 4)
    terms = max(terms, int(node.prim.reference(np.ones(x.shape)).max(initial=1)))
    return linear(node, x, node.prim.reference, terms)


# -- products -------------------------------------------------------------------------------------


def _multiply(x: Interval, dtype: DType, running: bool) -> Interval:
    """Products along the last axis, of all or of those so far, in any order.

    Beside the errors of products that each round, parts of a product may leave the range of the
    dtype although all of it does not."""
    count = x.shape[-1]
    ones = np.ones(x.shape[:-1])
    found, greatest, least = Interval(ones, ones), ones, ones
    steps = []
    for t in range(count):
        factor = Interval(
            x.lower[..., t], x.upper[..., t],
            False if x.nan is False else np.broadcast_to(x.nan, x.shape)[..., t],
        )  # fmt: skip
        nan = either(found.nan, factor.nan)
        found = product(found, factor, dtype, nan) if t or not dtype.is_inexact else factor
        if dtype.is_inexact:
            with np.errstate(all="ignore"):
                greatest = greatest * np.maximum(factor.size, 1)
                size = np.minimum(np.abs(factor.lower), np.abs(factor.upper))
                has_zero = (factor.lower <= 0) & (factor.upper >= 0)
                least = least * np.where(has_zero, 0.0, np.minimum(size, 1))
        steps.append(_in_any_order(found, greatest, least, t + 1, dtype) if running else found)
    if running:
        nans = [np.broadcast_to(s.nan, s.shape) for s in steps]
        if not steps:
            return Interval(np.zeros(x.shape), np.zeros(x.shape))
        return Interval(
            np.stack([s.lower for s in steps], -1),
            np.stack([s.upper for s in steps], -1),
            where_nan(np.stack(nans, -1)),
        )
    return _in_any_order(found, greatest, least, count, dtype)


def _in_any_order(x: Interval, greatest: Any, least: Any, count: int, dtype: DType) -> Interval:
    if not dtype.is_inexact or count < 2:
        return x
    kind = accumulator(dtype)
    with np.errstate(all="ignore"):
        over = greatest * (1 + count * kind.eps) >= kind.most
        under = (least * (1 - count * kind.eps) < kind.tiny) & (greatest > 1)
    found = widened(x.lower, x.upper, dtype, count, x.nan)
    low, high, nan = found
    if np.any(under):
        low = np.where(under, np.minimum(2 * low, 0), low)
        high = np.where(under, np.maximum(2 * high, 0), high)
    if np.any(over):
        low, high = np.where(over, -INF, low), np.where(over, INF, high)
        nan = either(nan, over)
    return Interval(low, high, nan)


def _rows(x: Interval, axes: tuple[int, ...]) -> Interval:
    """With some axes joined as the last one."""
    kept = [i for i in range(len(x.shape)) if i not in axes]
    shape = (*[x.shape[i] for i in kept], math.prod(x.shape[i] for i in axes))

    def f(v: Any) -> Any:
        return np.transpose(v, (*kept, *axes)).reshape(shape)

    nan = x.nan if np.ndim(x.nan) == 0 else f(x.nan)
    return Interval(f(x.lower), f(x.upper), nan)


@rule(ReduceProd)
@on_rectangles("reduce_prod")
def reduce_prod(node: Node, x: Interval) -> Interval:
    return _multiply(_rows(x, node.prim.axes), node.dtype, False)  # type: ignore[attr-defined]


def along_last(node: Node, f: Callable[..., Interval], *given: Interval) -> Interval:
    """A function of intervals that goes along the last axis, in the direction of a scan."""
    prim: Any = node.prim

    def turned(v: Any) -> Any:
        v = np.moveaxis(v, prim.axis, -1)
        return v[..., ::-1] if prim.reverse else v

    def back(v: Any) -> Any:
        return np.moveaxis(v[..., ::-1] if prim.reverse else v, -1, prim.axis)

    def each(x: Interval, g: Callable[..., Any]) -> Interval:
        nan = x.nan if np.ndim(x.nan) == 0 else g(x.nan)
        return Interval(g(x.lower), g(x.upper), nan)

    return each(f(*[each(x, turned) for x in given]), back)


@rule(CumProd)
@on_rectangles("cumprod")
def cumprod(node: Node, x: Interval) -> Interval:
    return along_last(node, lambda v: _multiply(v, node.dtype, True), x)


@rule(LinearScan)
@on_rectangles("linear_scan")
def linear_scan(node: Node, a: Interval, b: Interval) -> Interval:
    return along_last(node, lambda x, y: _recurrence(x, y, node.dtype), a, b)


def _recurrence(a: Interval, b: Interval, dtype: DType) -> Interval:
    """Step by step; and beside that, for other orders, an error in the size of all terms."""
    zero = np.zeros(a.shape[:-1])
    state, size = Interval(zero, zero), zero
    lows, highs, nans = [], [], []
    kind = accumulator(dtype) if dtype.is_inexact else None
    every = [np.broadcast_to(x.nan, x.shape) for x in (a, b)]
    with np.errstate(all="ignore"):
        for t in range(a.shape[-1]):
            by = Interval(a.lower[..., t], a.upper[..., t])
            more = Interval(b.lower[..., t], b.upper[..., t])
            none = (state.lower == 0) & (state.upper == 0)
            bad = every[0][..., t] & ~none
            bad = bad | ((by.lower == 0) | (by.upper == 0) | (by.lower * by.upper < 0)) & (
                np.isinf(state.lower) | np.isinf(state.upper)
            )
            moved = product(state, by, dtype)
            low, high = moved.lower + more.lower, moved.upper + more.upper
            low, high = np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high)
            clash = np.isinf(moved.size) & np.isinf(more.size)
            nan = either(state.nan, where_nan(bad | every[1][..., t] | clash))
            if kind is None:
                state = whole(low, high, dtype)
            else:
                state = exact_zeros(low, high, dtype, nan)
                size = by.size * size + more.size
                share = 2 * (t + 1) * kind.eps
                slack = np.where(np.isfinite(size), share * size, INF)
                slack = slack + np.where(size > 0, kind.tiny, 0)
                lows.append(state.lower - (slack if t else 0))
                highs.append(state.upper + (slack if t else 0))
                nans.append(np.broadcast_to(np.asarray(state.nan), state.shape))
                continue
            lows.append(state.lower)
            highs.append(state.upper)
    if not lows:
        return Interval(np.zeros(a.shape), np.zeros(a.shape))
    nan = where_nan(np.stack(nans, -1)) if nans else False
    low, high = np.stack(lows, -1), np.stack(highs, -1)
    return Interval(np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high), nan)


# -- extrema --------------------------------------------------------------------------------------


def _any_nan(nan: Any, shape: tuple[int, ...], axes: Any) -> Any:
    return False if nan is False else where_nan(np.any(np.broadcast_to(nan, shape), axis=axes))


def _extremum(f: Any) -> Callable[..., Interval]:
    def reduce(node: Node, x: Interval) -> Interval:
        axes = node.prim.axes  # type: ignore[attr-defined]
        low = f(x.lower, axis=axes)
        high = low if x.upper is x.lower else f(x.upper, axis=axes)
        return Interval(np.asarray(low), np.asarray(high), _any_nan(x.nan, x.shape, axes))

    return reduce


rule(ReduceMax, ReduceAny)(lambda node, x: _extremum_or(node, x, np.max, 0.0))
rule(ReduceMin, ReduceAll)(lambda node, x: _extremum_or(node, x, np.min, 1.0))


def _extremum_or(node: Node, x: Interval, f: Any, empty: float) -> Interval:
    """Of nothing, any is false and all true; a maximum of nothing is refused before."""
    axes = node.prim.axes  # type: ignore[attr-defined]
    if math.prod(x.shape[i] for i in axes) == 0:
        value = np.full(tuple(map(int, node.shape)), empty)
        return Interval(value, value)
    return _extremum(f)(node, x)


def _running_extremum(f: Any) -> Callable[..., Interval]:
    def scan(node: Node, x: Interval) -> Interval:
        def along(v: Interval) -> Interval:
            nan = v.nan if np.ndim(v.nan) == 0 else np.logical_or.accumulate(v.nan, -1)
            return Interval(f.accumulate(v.lower, -1), f.accumulate(v.upper, -1), nan)

        return along_last(node, along, x)

    return scan


rule(CumMax)(_running_extremum(np.maximum))
rule(CumMin)(_running_extremum(np.minimum))


@rule(MaxPool)
def max_pool(node: Node, x: Interval) -> Interval:
    f = node.prim.reference
    nan: Any = False
    if x.nan is not False:
        nan = where_nan(f(np.broadcast_to(x.nan, x.shape) * 1.0) > 0)
    least = -INF if node.dtype.is_inexact else ends_of(node.dtype)[0]  # of windows of padding
    low, high = (np.maximum(f(v), least) for v in (x.lower, x.upper))
    return Interval(low, high, nan)


def _negated(x: Interval) -> Interval:
    return Interval(-x.upper, -x.lower, x.nan)


@rule(ArgMax)
def argmax(node: Node, x: Interval) -> Interval:
    """The first and the last place whose element may be the greatest."""
    axis = node.prim.axis  # type: ignore[attr-defined]
    top = np.max(x.lower, axis=axis, keepdims=True)
    may = (x.upper >= top) | np.asarray(x.nan)
    if x.nan is False:  # what is never less than an earlier one that may be is not the first
        first = np.argmax(x.lower == top, axis=axis, keepdims=True)
        place = np.arange(x.shape[axis]).reshape(
            [-1 if i == axis else 1 for i in range(x.lower.ndim)]
        )
        may &= ~((place > first) & (x.upper <= top))
    size = x.shape[axis]
    low = np.argmax(may, axis=axis)
    high = size - 1 - np.argmax(np.flip(may, axis), axis=axis)
    return Interval(low.astype(np.float64), high.astype(np.float64))


@rule(ArgMin)
def argmin(node: Node, x: Interval) -> Interval:
    return argmax(node, _negated(x))


def _attained(turn: Callable[[Interval], Interval]) -> Callable[..., Interval]:
    def scan(node: Node, x: Interval) -> Interval:
        if x.is_point:
            return point(node.prim.reference(x.lower.astype(node.inputs[0].dtype.dtype)))
        size = x.shape[node.prim.axis]  # type: ignore[attr-defined]
        found = along_last(node, _attained_along, turn(x))
        if not node.prim.reverse:  # type: ignore[attr-defined]
            return found
        return Interval(size - 1 - found.upper, size - 1 - found.lower)

    return scan


def _attained_along(x: Interval) -> Interval:
    """Of each place, the first and the last up to there whose element may be the greatest."""
    top = np.maximum.accumulate(x.lower, -1)
    nan = np.broadcast_to(x.nan, x.shape)
    low, high = np.zeros(x.shape), np.zeros(x.shape)
    for t in range(x.shape[-1]):
        may = (x.upper[..., : t + 1] >= top[..., t, None]) | nan[..., : t + 1]
        low[..., t] = np.argmax(may, -1)
        high[..., t] = t - np.argmax(may[..., ::-1], -1)
    return Interval(low, high)


rule(CumArgMax)(_attained(lambda x: x))
rule(CumArgMin)(_attained(_negated))


@rule(MaxPoolIndex)
def max_pool_index(node: Node, x: Interval) -> Interval:
    """In each window, the first and the last place whose element may be the greatest."""
    prim: Any = node.prim
    low, high = (prim.windows(v, -INF) for v in (x.lower, x.upper))
    inside = prim.windows(np.ones(x.shape, np.bool_), False)
    may = inside & (high >= np.max(low, axis=-1, keepdims=True))
    if x.nan is not False:
        may |= prim.windows(np.broadcast_to(x.nan, x.shape), False)
    elif low.size:
        top = np.max(low, axis=-1, keepdims=True)
        first = np.argmax(inside & (low == top), axis=-1)[..., None]
        may &= ~((np.arange(low.shape[-1]) > first) & (high <= top))
    least = np.argmax(may, -1)
    most = np.where(may.any(-1), may.shape[-1] - 1 - np.argmax(may[..., ::-1], -1), 0)
    return Interval(least.astype(np.float64), most.astype(np.float64))


# -- logarithms of sums of exponentials -----------------------------------------------------------


def _log_error(added: int, dtype: DType, low: Any, high: Any, size: Any, nan: Any) -> Interval:
    """The relative errors of a sum of exponentials are absolute ones of its logarithm: those of
    additions, of exponentials, and of their arguments, of which `exp(-d) d <= 1/e` is left."""
    kind = accumulator(dtype)
    with np.errstate(all="ignore"):
        slack = (2 * added + 64) * kind.eps + 4 * kind.eps * np.where(np.isfinite(size), size, 0)
        slack = np.where(np.isinf(high) & np.isinf(low), 0.0, slack)
    return widened(low, high, dtype, FUNCTION, nan, absolute=slack)


@rule(LogSumExp)
def logsumexp(node: Node, x: Interval) -> Interval:
    f, axes = node.prim.reference, node.prim.axes  # type: ignore[attr-defined]
    count = math.prod(x.shape[i] for i in axes)
    size = np.max(x.size, axis=axes, initial=0.0)
    nan = _any_nan(x.nan, x.shape, axes)
    if count == 0:
        return full(node.type, -INF, -INF)
    added = additions(count, len(axes)) + 1
    return _log_error(added, node.dtype, f(x.lower), f(x.upper), size, nan)


@rule(LogCumSumExp)
def logcumsumexp(node: Node, x: Interval) -> Interval:
    def along(v: Interval) -> Interval:
        with np.errstate(all="ignore"):
            low, high = (np.logaddexp.accumulate(e, -1) for e in (v.lower, v.upper))
        size = np.maximum.accumulate(v.size, -1)
        nan = v.nan if np.ndim(v.nan) == 0 else np.logical_or.accumulate(v.nan, -1)
        return _log_error(3 * x.shape[node.prim.axis], node.dtype, low, high, size, nan)  # type: ignore[attr-defined]

    return along_last(node, along, x)


# -- order ----------------------------------------------------------------------------------------


@rule(Sort)
def sort(node: Node, x: Interval) -> Interval:
    """The k-th of all grows with each element."""
    axis, turned = node.prim.axis, node.prim.descending  # type: ignore[attr-defined]

    def f(v: Any) -> Any:
        found = np.sort(v, axis=axis)
        return np.flip(found, axis) if turned else found

    nan: Any = False
    low, high = f(x.lower), f(x.upper)
    if x.nan is not False:  # which stands at the end, and moves others
        row = np.any(np.broadcast_to(x.nan, x.shape), axis=axis, keepdims=True)
        nan = where_nan(np.broadcast_to(row, x.shape))
        low = np.where(row, np.min(x.lower, axis=axis, keepdims=True), low)
        high = np.where(row, np.max(x.upper, axis=axis, keepdims=True), high)
    return Interval(low, high, nan)


@rule(ArgSort)
def argsort(node: Node, x: Interval) -> Interval:
    prim: Any = node.prim
    if x.is_point:
        return point(prim.reference(x.lower.astype(node.inputs[0].dtype.dtype)))
    count, axis = x.shape[prim.axis], prim.axis
    places = int(node.shape[axis])
    shape = tuple(map(int, node.shape))
    if x.nan is not False or x.lower.size * count > MOST_PAIRS:
        return Interval(np.zeros(shape), np.full(shape, float(max(count - 1, 0))))
    x = _negated(x) if prim.descending else x
    low, high = (np.moveaxis(v, axis, -1) for v in (x.lower, x.upper))
    at = np.arange(count)
    earlier = at[:, None] < at[None, :]  # [j, i]: j stands before i
    a, b = low[..., :, None], high[..., :, None]
    sure = (b < low[..., None, :]) | ((b <= low[..., None, :]) & earlier)
    maybe = (a < high[..., None, :]) | ((a <= high[..., None, :]) & earlier)
    maybe &= at[:, None] != at[None, :]
    first, last = sure.sum(-2), maybe.sum(-2)  # the ranks that an element may have
    k = np.arange(places)
    may = (first[..., None, :] <= k[:, None]) & (last[..., None, :] >= k[:, None])
    least = np.argmax(may, -1)
    most = count - 1 - np.argmax(may[..., ::-1], -1)
    return Interval(
        np.moveaxis(least, -1, axis).astype(np.float64),
        np.moveaxis(most, -1, axis).astype(np.float64),
    )


@rule(SearchSorted)
def searchsorted(node: Node, row: Interval, values: Interval) -> Interval:
    """The place grows with the value, and falls with each element of the row."""
    prim: Any = node.prim
    size = float(row.shape[-1])
    low, high = prim.reference(row.upper, values.lower), prim.reference(row.lower, values.upper)
    found = Interval(low.astype(np.float64), high.astype(np.float64))
    order = np.diff(row.lower, axis=-1)
    is_sorted = not (np.diff(row.upper, axis=-1) < 0).any() and not (order < 0).any()
    if not is_sorted or np.any(row.nan) or np.any(values.nan):
        return Interval(np.zeros(values.shape), np.full(values.shape, size))
    return found
