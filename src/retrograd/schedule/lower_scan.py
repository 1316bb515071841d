"""Loop nests of running sums and other scans.

Along rows, what is associative goes in vectors; see `loop_nest.py` for the order. Everything else
takes one element after the other, vectors of neighbouring columns where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from retrograd.ir import Dim, Node
from retrograd.ops.elementwise import cast, exp, isfinite, keep_if, log
from retrograd.ops.scan import LinearScan, shifted, steady_top
from retrograd.schedule.buffer import accumulator_of
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.loop_nest import LoopNest, Store
from retrograd.schedule.ssa import ScalarBlock

if TYPE_CHECKING:
    from retrograd.schedule.lower import NestBuilder

# What is accumulated, by the reduction of the same name.
COMBINED = {
    "cumsum": "reduce_sum",
    "cumprod": "reduce_prod",
    "cummax": "reduce_max",
    "cummin": "reduce_min",
}


def scan(lowering: NestBuilder) -> list[LoopNest]:
    node = lowering.node
    x, axis, reverse = node.inputs[-1], node.attrs["axis"], node.attrs["reverse"]
    others = [i for i, d in enumerate(x.shape) if d != 1 and i != axis]
    inner = not others or others[-1] < axis
    along = inner and node.op in COMBINED
    body = ScalarBlock()
    counters = {i: body.loop(k) for k, i in enumerate((*others, axis))}
    if reverse and not along:
        counters[axis] = body.sub(body.size(x.shape[axis] - 1), counters[axis])
    index = tuple(counters.get(i, body.size(0)) for i in range(x.type.rank))
    reader = IndexMapper(body, lowering.stored)
    store = Store(lowering.out, body.offset(index, x.shape), reader.read(x, index))
    loops: list[int | Dim] = [x.shape[i] for i in (*others, axis)]
    nest = LoopNest("along" if along else "scan", loops, body, [store], kept=len(others))
    nest.op = COMBINED.get(node.op, node.op)
    nest.vec = len(loops) - 1 if along else -1 if inner else len(others) - 1
    nest.accumulator = accumulator_of(x.dtype)
    nest.info = {"reverse": reverse}
    if node.op == "linear_scan":
        nest.info["factor"] = reader.read(node.inputs[0], index)
    if node.op in ("cumargmax", "cumargmin"):
        nest.info["place"] = counters[axis]
    return [nest]


def logcumsumexp(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """`log(s) + top`, where top is `steady_top`, or zero while that is not finite, and s the sum of
    `exp(x - top)`, scaled down whenever top grows; half precision by way of float32."""
    (x,), axis, reverse = inputs, node.attrs["axis"], node.attrs["reverse"]
    x = cast(x, accumulator_of(x.dtype))
    first = steady_top(x, axis, reverse)
    top = keep_if(isfinite(first), first)
    before = shifted(top, axis, reverse, 0)
    total = LinearScan(axis, reverse)(exp(before - top), exp(x - top))
    return cast(log(total) + top, node.dtype)
