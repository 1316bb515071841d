"""Sliding windows, overlap-add and max pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node, as_dtype
from retrograd.ops.pool import MaxPool, MaxPoolIndex, least
from retrograd.ops.windows import Fold, Windows
from retrograd.xla.lowering.elementwise import in_float32
from retrograd.xla.lowering.rules import JaxTrace, lowers

Ints = Any


def _places(count: int, size: int, stride: int, dilation: int) -> Any:
    """For each window and each of its elements, where that is on the axis."""
    return np.arange(count)[:, None] * stride + np.arange(size)[None] * dilation


def tiles(sizes: Ints, strides: Ints, dilations: Ints) -> bool:
    """Whether windows lie side by side."""
    return tuple(sizes) == tuple(strides) and all(
        d == 1 or k == 1 for k, d in zip(sizes, dilations, strict=True)
    )


def in_tiles(t: JaxTrace, node: Node, x: Any, sizes: Ints, counts: Ints) -> tuple[Any, list[int]]:
    """The value of a node `[..., C, *S]` as `[..., O1, k1, O2, k2, ..., C]`, and the axes k:
    windows side by side. Channels are last, as XLA leaves convolutions, so that what is computed of
    windows is computed of many channels at once; transposes are fused with what is around them."""
    lead = x.ndim - len(sizes)
    if lead:
        x = t.last(node, x) if lead == 2 else t.moved(x, lead - 1, x.ndim - 1)
    first, channels = max(lead - 1, 0), x.shape[-1:] if lead else ()
    taken = [n * k for n, k in zip(counts, sizes, strict=True)]
    x = t.lax.slice(x, (0,) * x.ndim, (*x.shape[:first], *taken, *channels))
    apart = [d for pair in zip(counts, sizes, strict=True) for d in pair]
    axes = [first + 2 * i + 1 for i in range(len(sizes))]
    return t.lax.reshape(x, (*x.shape[:first], *apart, *channels)), axes


def channels_back(t: JaxTrace, node: Node, y: Any, rank: int) -> Any:
    """`[..., *O, C]`, the value of a node, as `[..., C, *O]`."""
    if y.ndim == rank + 2:
        return t.channels_second(node, y)
    return t.moved(y, y.ndim - 1, y.ndim - 1 - rank) if y.ndim > rank else y


def windows_of(
    t: JaxTrace, x: Any, sizes: Ints, strides: Ints, dilations: Ints, counts: Ints
) -> Any:
    """Windows over the last axes, axis by axis: for each of its elements a slice."""
    lax, rank = t.lax, len(sizes)
    lead = x.ndim - rank
    for i, (k, stride, dilation, n) in enumerate(
        zip(sizes, strides, dilations, counts, strict=True)
    ):
        axis = lead + i
        parts = [
            lax.slice_in_dim(x, j * dilation, j * dilation + (n - 1) * stride + 1, stride, axis)
            for j in range(k)
        ]
        x = lax.concatenate([lax.expand_dims(p, (p.ndim,)) for p in parts], x.ndim)
    return x


@lowers(Windows)
def windows(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    lead = x.ndim - len(prim.sizes)
    counts = node.shape[lead : lead + len(prim.sizes)]
    if node.type.size == 0:
        return t.full(node, 0)
    return windows_of(t, x, prim.sizes, prim.strides, prim.dilations, counts)


@lowers(Fold)
def fold(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    rank = len(prim.shape)
    if node.type.size == 0 or x.size == 0:
        return t.full(node, 0)
    sizes = x.shape[x.ndim - rank :]
    if tiles(sizes, prim.strides, prim.dilations):
        y = in_float32(t, node, lambda x: _side_by_side(t, prim.shape, x), [x])
        return channels_back(t, node, y, rank)
    return in_float32(t, node, lambda x: _added(t, prim, x), [x])


def _side_by_side(t: JaxTrace, shape: Ints, x: Any) -> Any:
    """Windows that do not overlap, `[..., C, *O, *K]`, put together: `[..., *S, C]`."""
    rank = len(shape)
    lead, sizes = x.ndim - 2 * rank, x.shape[x.ndim - rank :]
    first = max(lead - 1, 0)
    pairs = [lead + i + j * rank for i in range(rank) for j in (0, 1)]
    x = t.lax.transpose(x, [*range(first), *pairs, *range(first, lead)])
    taken = [n * k for n, k in zip(x.shape[first::2], sizes, strict=False)]
    y = t.lax.reshape(x, (*x.shape[:first], *taken, *x.shape[first + 2 * rank :]))
    widths = [(0, 0, 0)] * y.ndim
    for i, (d, n) in enumerate(zip(shape, taken, strict=True)):
        widths[first + i] = (0, d - n, 0)
    return t.lax.pad(y, t.lax.full((), 0, x.dtype), widths)


def _added(t: JaxTrace, prim: Any, x: Any) -> Any:
    """Windows that overlap, added up axis by axis."""
    lax, rank = t.lax, len(prim.shape)
    lead, zero = x.ndim - 2 * rank, t.lax.full((), 0, x.dtype)
    for i in reversed(range(rank)):  # the last axis is the window's along axis i
        axis, last = lead + i, x.ndim - 1
        n, k, d = x.shape[axis], x.shape[last], prim.shape[i]
        total = None
        for j in range(k):
            part = lax.index_in_dim(x, j, last, keepdims=False)
            low, reach = j * prim.dilations[i], (n - 1) * prim.strides[i] + 1
            widths = [(0, 0, 0)] * part.ndim
            widths[axis] = (low, d - low - reach, prim.strides[i] - 1)
            wide = lax.pad(part, zero, widths)
            total = wide if total is None else total + wide
        x = total
    return x


def _window(node: Node) -> dict[str, Any]:
    """Where windows lie, as XLA's `reduce_window` has it."""
    prim: Any = node.prim
    lead = node.inputs[0].type.rank - len(prim.sizes)
    one = (1,) * lead
    return {
        "window_dimensions": (*one, *prim.sizes),
        "window_strides": (*one, *prim.strides),
        "padding": [(0, 0)] * lead + list(zip(prim.low, prim.high, strict=True)),
        "window_dilation": (*one, *prim.dilations),
    }


@lowers(MaxPool)
def max_pool(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    lead = x.ndim - len(prim.sizes)
    if tiles(prim.sizes, prim.strides, prim.dilations) and not any((*prim.low, *prim.high)):
        apart, axes = in_tiles(t, node.inputs[0], x, prim.sizes, node.shape[lead:])
        return channels_back(t, node, t.lax.reduce_max(apart, tuple(axes)), len(prim.sizes))
    start = np.asarray(least(node.dtype), node.dtype.dtype)
    window = _window(node)
    return t.lax.reduce_window(
        x,
        start,
        t.lax.max,
        window["window_dimensions"],
        window["window_strides"],
        window["padding"],
        None,
        window["window_dilation"],
    )


@lowers(MaxPoolIndex)
def max_pool_index(t: JaxTrace, node: Node, x: Any) -> Any:
    """The first element of each window that is its maximum, or NaN, and no padding."""
    prim: Any = node.prim
    lax, rank = t.lax, len(prim.sizes)
    lead = x.ndim - rank
    widths = [(0, 0, 0)] * lead + [(a, b, 0) for a, b in zip(prim.low, prim.high, strict=True)]
    counts = node.shape[lead:]

    def slid(a: Any, fill: Any) -> Any:
        padded = lax.pad(a, lax.full((), fill, a.dtype), widths)
        found = windows_of(t, padded, prim.sizes, prim.strides, prim.dilations, counts)
        return lax.reshape(found, (*node.shape, math.prod(prim.sizes)))

    if node.type.size == 0:
        return t.full(node, 0)
    padding = any((*prim.low, *prim.high))
    if tiles(prim.sizes, prim.strides, prim.dilations) and not padding:
        apart, axes = in_tiles(t, node.inputs[0], x, prim.sizes, counts)
        return channels_back(t, node, _first_top(t, apart, axes), rank)
    values = slid(x, least(as_dtype(np.dtype(x.dtype))))
    inside = slid(lax.full(x.shape, True), False) if padding else None
    return _first_top(t, values, [x.ndim], inside)


def _first_top(t: JaxTrace, x: Any, axes: list[int], inside: Any = None) -> Any:
    """The position, along axes taken together, of the first element that is the maximum, or NaN;
    0 where none is inside."""
    lax = t.lax
    kept = [i for i in range(x.ndim) if i not in axes]
    top = lax.broadcast_in_dim(lax.reduce_max(x, tuple(axes)), x.shape, kept)
    hits = lax.bitwise_or(lax.eq(x, top), lax.ne(x, x))
    if inside is not None:
        hits = lax.bitwise_and(hits, inside)
    place, count = lax.full(x.shape, 0, np.int32), 1
    for axis in reversed(axes):
        own = lax.broadcasted_iota(np.int32, x.shape, axis)
        place = lax.add(place, lax.mul(lax.full_like(own, count), own))
        count *= x.shape[axis]
    none = lax.full_like(place, count)
    first = lax.reduce_min(lax.select(hits, place, none), tuple(axes))
    return lax.select(lax.eq(first, lax.full_like(first, count)), lax.full_like(first, 0), first)
