"""Loop nests of sorting and searching: a row of the last axis for each iteration."""

from __future__ import annotations

from typing import Any

from retrograd.ir import Dim, TensorType, int64, product
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.loop_nest import LoopNest, Store, loops_over
from retrograd.schedule.nest_builder import NestBuilder
from retrograd.schedule.ssa import ScalarBlock


def _rows(lowering: NestBuilder, kind: str) -> LoopNest:
    """A nest with an iteration for each row; its store has the positions of the first element, in
    the result and in the input."""
    node = lowering.node
    (x,) = node.inputs
    n, rows = x.shape[-1], product(x.shape[:-1])
    body = ScalarBlock()
    loops: list[int | Dim] = [] if rows == 1 else [rows]
    row = body.loop(0) if loops else body.size(0)
    place, start = (body.mul(row, body.size(d)) for d in (node.shape[-1], n))
    nest = LoopNest(kind, loops, body, [Store(lowering.out, place, start)], kept=len(loops))
    nest.info = {"n": body.size(n), "count": body.size(node.shape[-1])}
    nest.info["descending"] = node.attrs["descending"]
    return nest


def sort(lowering: NestBuilder) -> list[LoopNest]:
    """A copy, sorted in place."""
    (x,) = lowering.node.inputs
    copy = lowering.map(x.shape, lambda r, i: r.read(x, i))
    nest = _rows(lowering, "sort")
    nest.info["work"] = [lowering.scratch(x.type)]
    return [copy, nest]


def argsort(lowering: NestBuilder) -> list[LoopNest]:
    """Words of a key and a position are sorted: in the result itself, where they fit."""
    (x,) = lowering.node.inputs
    nest = _rows(lowering, "argsort")
    nests = [nest]
    source = lowering.stored.get(x)
    if source is None:
        source = lowering.scratch(x.type)
        nests.insert(0, lowering.map(x.shape, lambda r, i: r.read(x, i), into=source))
    wide = x.dtype.itemsize == 8
    words = TensorType(int64, (*x.shape, 2) if wide else x.shape)
    apart = wide or lowering.node.shape != x.shape
    nest.info["work"] = [lowering.scratch(words) for _ in range(2 if apart else 1)]
    nest.info["buffers"] = [source]
    return nests


def search(lowering: NestBuilder) -> list[LoopNest]:
    """A position for each value."""
    row, values = lowering.node.inputs
    shared = lowering.node.attrs["shared"]
    body = ScalarBlock()
    loops, index = loops_over(body, values.shape)
    value = IndexMapper(body, lowering.stored).read(values, index)
    store = Store(lowering.out, body.offset(index, values.shape), value)
    nest = LoopNest("search", loops, body, [store], kept=len(loops))
    info: dict[str, Any] = {
        "n": body.size(row.shape[-1]),
        "base": body.offset((*index[:shared], body.size(0)), row.shape),
        "buffers": [lowering.stored[row]],
        "right": lowering.node.attrs["right"],
    }
    nest.info = info
    return [nest]
