"""Loop nests of running sums and other scans.

Along rows, what is associative goes in vectors; see `loop_nest.py` for the order. Everything else
takes one element after the other, vectors of neighbouring columns where there are any.
"""

from __future__ import annotations

from retrograd.ir import Dim
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.ops.scan import AxisScan, CumArgMax, CumArgMin, LinearScan
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.loop_nest import LoopNest, RowScan, ScanNest, Store
from retrograd.schedule.nest_builder import NestBuilder
from retrograd.schedule.ssa import ScalarBlock


def scan(lowering: NestBuilder) -> list[LoopNest]:
    node = lowering.node
    x, axis, reverse = node.inputs[-1], node.attrs["axis"], node.attrs["reverse"]
    others = [i for i, d in enumerate(x.shape) if d != 1 and i != axis]
    inner = not others or others[-1] < axis
    assert isinstance(node.prim, AxisScan)
    places = isinstance(node.prim, CumArgMax | CumArgMin)
    along = inner and node.prim.combine is not None and not places
    body = ScalarBlock()
    counters = {i: body.loop(k) for k, i in enumerate((*others, axis))}
    if reverse and not along:
        counters[axis] = body.sub(body.size(x.shape[axis] - 1), counters[axis])
    index = tuple(counters.get(i, body.size(0)) for i in range(x.type.rank))
    reader = IndexMapper(body, lowering.stored)
    store = Store(lowering.out, body.offset(index, x.shape), reader.read(x, index))
    loops: list[int | Dim] = [x.shape[i] for i in (*others, axis)]
    nest = (RowScan if along else ScanNest)(
        loops,
        body,
        [store],
        op=node.op,
        accumulator=accumulator_of(x.dtype),
        kept=len(others),
        vec=len(loops) - 1 if along else -1 if inner else len(others) - 1,
        reverse=reverse,
    )
    if isinstance(node.prim, LinearScan):
        nest.factor = reader.read(node.inputs[0], index)
    if places:
        nest.position = counters[axis]
    return [nest]
