"""Indexing by data. Positions are checked; reading and writing outside is harmless in XLA, which
keeps reads within the array and drops writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import IndexRangeError
from retrograd.ir import Node
from retrograd.ops.index import Gather, RavelIndex, out_of_range, place_of
from retrograd.ops.leaf import Constant, Iota
from retrograd.xla.lowering.rules import JaxTrace, lowers


def positions(
    t: JaxTrace, node: Node, indices: Node, index: Any, axis: int, size: int, shared: int = 0
) -> Any:
    """Indices counted from the front, each of them checked to be within an axis of this size."""
    key = indices, size
    if key not in t.known:
        if not _is_inside(indices, size):
            _check(t, node, index, axis, size, shared)
        t.known[key] = _from_front(t, index, size)
    return t.known[key]


def _is_inside(indices: Node, size: int) -> bool:
    """Whether it is known before the program runs that all indices are within the axis."""
    prim = indices.prim
    if isinstance(prim, Iota):
        return indices.shape[prim.axis] <= size
    if isinstance(prim, Constant):
        return bool(((prim.value >= -size) & (prim.value < size)).all())
    return False


def _check(t: JaxTrace, node: Node, index: Any, axis: int, size: int, shared: int) -> None:
    of, shape = getattr(node.prim, "of", ""), index.shape
    signed = index.dtype.kind == "i"

    def error(value: int, place: int) -> IndexRangeError:
        if index.dtype.kind == "u" and value < 0:
            value += 2**64
        at = place_of(list(map(int, np.unravel_index(place, shape))), shape, shared) if of else None
        reason = str(out_of_range(node.op, axis, value, size, of, at))
        return IndexRangeError(f"{reason}: {node.describe()}", reason)

    most = np.iinfo(index.dtype).max
    lax, full = t.lax, t.lax.full_like
    bad = lax.ge(index, full(index, size)) if size <= most else full(index, False, dtype=bool)
    if signed and -size >= -most - 1:
        bad = lax.bitwise_or(bad, lax.lt(index, full(index, -size)))
    t.refuse(node, error, bad, index)


def _from_front(t: JaxTrace, index: Any, size: int) -> Any:
    lax = t.lax
    wide = np.int32 if size < 2**31 else np.int64
    if index.dtype.kind == "u":
        if index.dtype.itemsize >= np.dtype(wide).itemsize:
            index = lax.min(index, lax.full_like(index, min(size, np.iinfo(wide).max)))
        return lax.convert_element_type(index, wide)
    if index.dtype.itemsize > np.dtype(wide).itemsize:
        index = lax.clamp(lax.full_like(index, -size - 1), index, lax.full_like(index, size))
    index = lax.convert_element_type(index, wide)
    behind = lax.add(index, lax.full_like(index, size))
    return lax.select(lax.lt(index, lax.full_like(index, 0)), behind, index)


def layout(
    rank: int, index_rank: int, axis: int, shared: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """For XLA's gather and scatter: the axes of what is read that come from the array, the axis
    that is indexed, and the axes that run together."""
    own = index_rank - shared
    of_array = [*range(shared, axis), *range(axis + own, rank - 1 + own)]
    return tuple(of_array), (axis,), tuple(range(shared))


def slice_sizes(shape: Sequence[int], axis: int, shared: int) -> list[int]:
    return [1 if i < shared or i == axis else d for i, d in enumerate(shape)]


@lowers(Gather)
def gather(t: JaxTrace, node: Node, x: Any, index: Any) -> Any:
    prim: Any = node.prim
    axis, shared, lax = prim.axis, prim.shared, t.lax
    at = positions(t, node, node.inputs[1], index, axis, x.shape[axis], shared)
    if node.type.size == 0 or x.size == 0:
        return t.full(node, 0)  # an index into no elements is refused
    windows, along, batch = layout(x.ndim, index.ndim, axis, shared)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=windows,
        collapsed_slice_dims=along,
        start_index_map=along,
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return lax.gather(
        x,
        lax.expand_dims(at, (at.ndim,)),
        numbers,
        slice_sizes(x.shape, axis, shared),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


@lowers(RavelIndex)
def ravel_index(t: JaxTrace, node: Node, *indices: Any) -> Any:
    prim: Any = node.prim
    place: Any = t.full(node, 0)
    for axis, (x, index, size) in enumerate(
        zip(node.inputs, indices, prim.sizes, strict=True), prim.axis
    ):
        own = t.lax.convert_element_type(positions(t, node, x, index, axis, int(size)), np.int64)
        place = place * np.int64(size) + own
    return place
