"""Loop nests of sorting and searching: a row of the last axis for each iteration."""

from __future__ import annotations

from typing import TypedDict

from retrograd.ir import Dim, TensorType, int64, product
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.loop_nest import (
    ArgSortNest,
    LoopNest,
    SearchNest,
    SortNest,
    Store,
    loops_over,
)
from retrograd.schedule.nest_builder import NestBuilder
from retrograd.schedule.ssa import ScalarBlock, SSAValue


class _RowLoops(TypedDict):
    """What both nests have, with an iteration for each row."""

    loops: list[int | Dim]
    body: ScalarBlock
    stores: list[Store]
    kept: int
    n: SSAValue
    descending: bool


def _rows(lowering: NestBuilder) -> _RowLoops:
    """The store has the positions of the first element of a row, in the result and in the input."""
    node = lowering.node
    (x,) = node.inputs
    n, rows = x.shape[-1], product(x.shape[:-1])
    body = ScalarBlock()
    loops: list[int | Dim] = [] if rows == 1 else [rows]
    row = body.loop(0) if loops else body.size(0)
    place, start = (body.mul(row, body.size(d)) for d in (node.shape[-1], n))
    return {
        "loops": loops,
        "body": body,
        "stores": [Store(lowering.out, place, start)],
        "kept": len(loops),
        "n": body.size(n),
        "descending": node.attrs["descending"],
    }


def sort(lowering: NestBuilder) -> list[LoopNest]:
    """A copy, sorted in place."""
    (x,) = lowering.node.inputs
    copy = lowering.map(x.shape, lambda r, i: r.read(x, i))
    return [copy, SortNest(**_rows(lowering), work=[lowering.scratch(x.type)])]


def argsort(lowering: NestBuilder) -> list[LoopNest]:
    """Words of a key and a position are sorted: in the result itself, where they fit."""
    node, (x,) = lowering.node, lowering.node.inputs
    nests: list[LoopNest] = []
    source = lowering.stored.get(x)
    if source is None:
        source = lowering.scratch(x.type)
        nests.append(lowering.map(x.shape, lambda r, i: r.read(x, i), into=source))
    wide = x.dtype.itemsize == 8
    words = TensorType(int64, (*x.shape, 2) if wide else x.shape)
    apart = wide or node.shape != x.shape
    rows = _rows(lowering)
    count = rows["body"].size(node.shape[-1])
    work = [lowering.scratch(words) for _ in range(2 if apart else 1)]
    return [*nests, ArgSortNest(**rows, work=work, count=count, source=source)]


def search(lowering: NestBuilder) -> list[LoopNest]:
    """A position for each value."""
    row, values = lowering.node.inputs
    shared = lowering.node.attrs["shared"]
    body = ScalarBlock()
    loops, index = loops_over(body, values.shape)
    value = IndexMapper(body, lowering.stored).read(values, index)
    store = Store(lowering.out, body.offset(index, values.shape), value)
    nest = SearchNest(
        loops,
        body,
        [store],
        kept=len(loops),
        n=body.size(row.shape[-1]),
        source=lowering.stored[row],
        start=body.offset((*index[:shared], body.size(0)), row.shape),
        right=lowering.node.attrs["right"],
    )
    return [nest]
