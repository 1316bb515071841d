"""Reading and writing at positions, known or not.

A position that is not known is one of a range. What is read there is one of the elements in it;
what is written may be written to each of them, or not. Positions outside of an axis are refused
when the program runs, so ranges end at the ends of the axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.index import Gather, RavelIndex, ScatterAdd, _result
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    Rectangle,
    either,
    hull,
    where_nan,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import product
from retrograd.verify.bound_propagation.rules.complex_numbers import by_parts
from retrograd.verify.bound_propagation.rules.contraction import at_least_zero, summed
from retrograd.verify.bound_propagation.rules.movement import moved

WIDTH = 64  # positions of a range that are looked at one by one; of a wider one, all of the axis


def ranges(index: Interval, size: int) -> tuple[Any, Any]:
    """The first and the last position from the front that an index may mean."""
    low, high = np.clip(index.lower, -size, size - 1), np.clip(index.upper, -size, size - 1)
    low, high = low.astype(np.int64), high.astype(np.int64)
    behind = high < 0
    both = (low < 0) & ~behind
    low, high = np.where(behind, low + size, low), np.where(behind, high + size, high)
    return np.where(both, 0, low), np.where(both, size - 1, high)


def _in_steps(low: Any, high: Any, size: int) -> list[tuple[Any, Any]]:
    """The positions of ranges, one of each at a time, and whether it is one still."""
    width = int((high - low).max(initial=0)) + 1
    if width > WIDTH:
        wide = high - low >= WIDTH
        low, high = np.where(wide, 0, low), np.where(wide, size - 1, high)
        width = size
    return [(np.minimum(low + d, high), low + d <= high) for d in range(width)]


@rule(Gather)
def gather(node: Node, x: Any, index: Interval) -> Any:
    prim: Any = node.prim
    if index.is_point:
        at = index.lower.astype(np.int64)
        return moved(lambda v: prim.reference(v, at), x)
    if isinstance(x, Rectangle):
        return Rectangle(*[gather(node, part, index) for part in x])
    size = x.shape[prim.axis]
    low, high = ranges(index, size)
    found = None
    for at, _ in _in_steps(low, high, size):
        here = moved(lambda v, at=at: prim.reference(v, at), x)
        found = here if found is None else hull(found, here)
    return found


@rule(RavelIndex)
def ravel_index(node: Node, *indices: Interval) -> Interval:
    total = Interval(np.zeros(indices[0].shape), np.zeros(indices[0].shape))
    for index, size in zip(indices, node.prim.sizes, strict=True):  # type: ignore[attr-defined]
        low, high = ranges(index, int(size))
        total = Interval(total.lower * int(size) + low, total.upper * int(size) + high)
    return total


@rule(ScatterAdd)
@by_parts
def scatter_add(node: Node, x: Interval, index: Interval, updates: Interval) -> Interval:
    prim: Any = node.prim
    size = x.shape[prim.axis]
    low, high = ranges(index, size)
    zero = np.zeros(x.shape)
    total = {"low": x.lower, "high": x.upper, "size": x.size}
    terms, nan = zero, np.broadcast_to(x.nan, x.shape) * 1.0
    negative, positive = (x.lower < 0) * 1.0, (x.upper > 0) * 1.0
    full = _over(node, low == high)
    for at, still in _in_steps(low, high, size):
        on = _over(node, still)
        parts = {
            "low": np.where(full, updates.lower, np.minimum(updates.lower, 0)),
            "high": np.where(full, updates.upper, np.maximum(updates.upper, 0)),
            "size": updates.size,
        }

        def put(target: Any, part: Any, at: Any = at, on: Any = on) -> Any:
            with np.errstate(all="ignore"):
                return prim.reference(target, at, np.where(on, part, 0.0))

        total = {k: put(v, parts[k]) for k, v in total.items()}
        terms = put(terms, np.ones(updates.shape))
        nan = put(nan, np.broadcast_to(updates.nan, updates.shape) * 1.0)
        negative = put(negative, (updates.lower < 0) * 1.0)
        positive = put(positive, (updates.upper > 0) * 1.0)
    low_end, high_end = total["low"], total["high"]
    low_end = np.where(np.isnan(low_end), -INF, low_end)
    high_end = np.where(np.isnan(high_end), INF, high_end)
    clash = np.isinf(total["size"]) & (low_end == -INF) & (high_end == INF)
    many = int(terms.max(initial=0)) + 1
    found = summed(
        low_end,
        high_end,
        total["size"],
        many,
        node.dtype,
        either(where_nan(nan > 0), where_nan(clash)),
        rounds=0,
    )
    if not node.dtype.is_inexact:
        return found
    untouched = terms == 0  # these stay what they are
    found = at_least_zero(found, negative == 0, positive == 0)
    return Interval(
        np.where(untouched, x.lower, found.lower),
        np.where(untouched, x.upper, found.upper),
        found.nan,
    )


def _over(node: Node, mask: Any) -> Any:
    """A mask of indices, for each of the updates."""
    prim: Any = node.prim
    x, index = node.inputs[0].shape, node.inputs[1].shape
    shared, behind = prim.shared, len(x) - prim.axis - 1
    shape = (
        *map(int, index[:shared]), *(1,) * (prim.axis - shared),
        *map(int, index[shared:]), *(1,) * behind,
    )  # fmt: skip
    return np.broadcast_to(mask.reshape(shape), tuple(map(int, _result(prim, x, index))))


@rule(ScatterSet)
def scatter_set(node: Node, x: Any, index: Interval, updates: Any) -> Any:
    prim: Any = node.prim
    if index.is_point:
        at = index.lower.astype(np.int64)
        return moved(lambda a, b: prim.reference(a, at, b), x, updates)
    if isinstance(x, Rectangle):
        return Rectangle(*[scatter_set(node, x[i], index, updates[i]) for i in range(2)])
    return _perhaps(node, x, index, updates, lambda old, new: new)


def _perhaps(
    node: Node, x: Interval, index: Interval, updates: Interval, meet: Callable[..., Interval]
) -> Interval:
    """Where an update may come, what is there or what it makes of it; updates in any order."""
    prim: Any = node.prim
    put = ScatterMin(prim.axis, prim.shared).reference, ScatterMax(prim.axis, prim.shared).reference
    low, high = ranges(index, x.shape[prim.axis])
    lower, upper, nan = x.lower, x.upper, np.broadcast_to(x.nan, x.shape) * 1.0
    news = np.broadcast_to(updates.nan, updates.shape) * 1.0
    for at, still in _in_steps(low, high, x.shape[prim.axis]):
        on = _over(node, still)
        lower = put[0](lower, at, np.where(on, updates.lower, INF))
        upper = put[1](upper, at, np.where(on, updates.upper, -INF))
        nan = put[1](nan, at, np.where(on, news, 0.0))
    return meet(x, Interval(lower, upper, where_nan(nan > 0)))


def _extremum(node: Node, x: Interval, index: Interval, updates: Interval, top: bool) -> Interval:
    prim: Any = node.prim
    if index.is_point:
        at = index.lower.astype(np.int64)
        nans = either(x.nan, updates.nan)
        if nans is False:
            return moved(lambda a, b: prim.reference(a, at, b), x, updates)
        lower = prim.reference(x.lower, at, updates.lower)
        upper = prim.reference(x.upper, at, updates.upper)
        both = [np.broadcast_to(v.nan, v.shape) * 1.0 for v in (x, updates)]
        nan = ScatterMax(prim.axis, prim.shared).reference(both[0], at, both[1]) > 0
        return Interval(lower, upper, where_nan(nan))
    found = _perhaps(node, x, index, updates, lambda old, new: new)
    if top:
        return Interval(x.lower, found.upper, found.nan)
    return Interval(found.lower, x.upper, found.nan)


@rule(ScatterMax)
def scatter_max(node: Node, x: Interval, index: Interval, updates: Interval) -> Interval:
    return _extremum(node, x, index, updates, True)


@rule(ScatterMin)
def scatter_min(node: Node, x: Interval, index: Interval, updates: Interval) -> Interval:
    return _extremum(node, x, index, updates, False)


@rule(ScatterMul)
def scatter_mul(node: Node, x: Interval, index: Interval, updates: Interval) -> Interval:
    """One update after the other, each of which multiplies one element, or perhaps one."""
    prim: Any = node.prim
    low, high = ranges(index, x.shape[prim.axis])
    sure = _over(node, low == high)
    news = np.broadcast_to(updates.nan, updates.shape)
    maybe = Interval(
        np.where(sure, updates.lower, np.minimum(updates.lower, 1)),
        np.where(sure, updates.upper, np.maximum(updates.upper, 1)),
    )
    places = np.arange(x.lower.size).reshape(x.shape)
    flat = Interval(x.lower.reshape(-1).copy(), x.upper.reshape(-1).copy())
    nan = np.broadcast_to(x.nan, x.shape).reshape(-1).copy()
    for at, still in _in_steps(low, high, x.shape[prim.axis]):
        on = _over(node, still).reshape(-1)
        where = Gather(prim.axis, prim.shared).reference(places, at).reshape(-1)
        for k in np.flatnonzero(on):
            i = where[k]
            old = Interval(flat.lower[i], flat.upper[i])
            new = Interval(maybe.lower.reshape(-1)[k], maybe.upper.reshape(-1)[k])
            y = product(old, new, node.dtype)
            flat.lower[i], flat.upper[i] = y.lower, y.upper
            wild = not np.isfinite([*old, *new][:2]).all() or not np.isfinite(new[:2]).all()
            nan[i] |= news.reshape(-1)[k] or wild
    return Interval(
        flat.lower.reshape(x.shape), flat.upper.reshape(x.shape), where_nan(nan.reshape(x.shape))
    )
