"""Scatters, and the check of indices."""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.emit.compensated_sum import more, settled
from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, Inside, emit_loops
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.codegen.emit.reduce import combined_by
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import float64, int64
from retrograd.ops.numerics.compensated_sum import BLOCK
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import BlockedScatter, CheckNest, ScatterNest, ScatterTotals

_SOME = -128  # of a block, after one or more that were full


@emits_nest(ScatterNest)
def scatter(w: KernelEmitter, nest: ScatterNest) -> None:
    """Let updates meet what is there, one after the other, in row-major order."""
    (store,) = nest.stores
    dtype = store.buffer.type.dtype
    combine = combined_by(nest)

    def meet(_: Carried) -> Carried:
        value = w.vector(store.value)
        if combine is not None:
            pointer = w.address(store.buffer, w.scalar(store.offset))
            before = types.load(w, pointer, dtype, w.lanes, w.mask)
            value = ELEMENTWISE[combine.name](OpBuilder(w, dtype, w.lanes), before, value)
            value = types.rounded(w, value, dtype, w.lanes)
        w.write(value, store)
        return []

    w.begin(nest)
    depth = nest.index.depth if w.places[1] and nest.index is not None else 0

    def each(_: Carried) -> Carried:
        return emit_loops(w, depth, len(nest.loops), meet)

    _own(w, nest, depth, each)


@emits_nest(BlockedScatter)
def sums(w: KernelEmitter, nest: BlockedScatter) -> None:
    """Add updates to what is there, in blocks; see `schedule/loop_nest.py` for the order."""
    (store,), depth, last = nest.stores, nest.kept, len(nest.loops)
    dtype = store.buffer.type.dtype
    (counts, _), *totals = nest.work

    def add(_: Carried) -> Carried:
        at = OpBuilder(w, dtype, w.lanes)
        pointer = w.address(store.buffer, w.scalar(store.offset))
        before = types.load(w, pointer, dtype, w.lanes, w.mask)
        w.write(at.instruction("fadd", before, w.vector(store.value)), store)
        return []

    def each(_: Carried) -> Carried:
        counter = w.address(counts, w.scalar(nest.counter))
        count = w.new(f"add i8 {w.new(f'load i8, ptr {counter}')}, 1")
        full = w.new(f"icmp eq i8 {w.new(f'and i8 {count}, {BLOCK - 1}')}, 0")
        w.line(f"store i8 {w.new(f'select i1 {full}, i8 {_SOME}, i8 {count}')}, ptr {counter}")
        emit_loops(w, depth, last, add)
        go, skip = w.label(), w.label()
        w.branch(full, go, skip)
        w.start_block(go)
        first = w.new(f"icmp eq i8 {count}, {BLOCK}")

        def carry(_: Carried) -> Carried:
            _carry(w, nest, [b for b, _ in totals], first)
            return []

        emit_loops(w, depth, last, carry)
        w.jump(skip)
        w.start_block(skip)
        return []

    w.begin(nest)
    _own(w, nest, depth, each)


def _carry(w: KernelEmitter, nest: BlockedScatter, totals: list[Buffer], first: str) -> None:
    """Add a block to the total, of which it is the first one or not, and begin another."""
    (store,) = nest.stores
    dtype, offset = store.buffer.type.dtype, w.scalar(store.offset)
    at = OpBuilder(w, float64, w.lanes)
    place = w.address(store.buffer, offset)
    block = types.load(w, place, dtype, w.lanes, w.mask)
    block = types.convert(w, block, dtype, float64, w.lanes)
    places = [w.address(b, offset) for b in totals]
    before = [types.load(w, p, float64, w.lanes, w.mask) for p in places]
    if len(totals) == 1:
        after, begin = [at.instruction("fadd", before[0], block)], [block]
    else:
        after = list(more(at, before[0], before[1], block))
        begin = [block, types.literal(-0.0, float64, w.lanes)]
    for p, x, y in zip(places, begin, after, strict=True):
        new = w.new(f"select i1 {first}, {at.type} {x}, {at.type} {y}")
        types.store(w, new, p, float64, w.lanes, w.mask)
    nothing = types.literal(-0.0, dtype, w.lanes)
    types.store(w, nothing, place, dtype, w.lanes, w.mask)


@emits_nest(ScatterTotals)
def settle(w: KernelEmitter, nest: ScatterTotals) -> None:
    """Add the totals of blocks to what is there, where there are any."""
    (store,) = nest.stores
    dtype = store.buffer.type.dtype

    def add(_: Carried) -> Carried:
        at = OpBuilder(w, float64, w.lanes)
        block = types.convert(w, w.vector(store.value), dtype, float64, w.lanes)
        before = [w.vector(v) for v in nest.totals]
        if len(before) == 1:
            total = at.instruction("fadd", before[0], block)
        else:
            total = settled(at, *more(at, before[0], before[1], block))
        w.write(types.convert(w, total, float64, dtype, w.lanes), store)
        return []

    def each(_: Carried) -> Carried:
        go, skip = w.label(), w.label()
        w.branch(w.new(f"icmp slt i8 {w.scalar(nest.count)}, 0"), go, skip)
        w.start_block(go)
        emit_loops(w, nest.kept, len(nest.loops), add)
        w.jump(skip)
        w.start_block(skip)
        return []

    w.begin(nest)
    emit_loops(w, 0, nest.kept, each)


def _own(w: KernelEmitter, nest: ScatterNest, depth: int, each: Inside) -> None:
    """What `each` writes for every position, in so many loops. Where threads share the places, each
    takes the updates of its own."""
    low, high = w.places

    def own(_: Carried) -> Carried:
        assert nest.index is not None
        at = w.scalar(nest.index)
        go, skip = w.label(), w.label()
        above, below = w.new(f"icmp sge i64 {at}, {low}"), w.new(f"icmp slt i64 {at}, {high}")
        w.branch(w.new(f"and i1 {above}, {below}"), go, skip)
        w.start_block(go)
        each([])
        w.jump(skip)
        w.start_block(skip)
        return []

    emit_loops(w, 0, depth, own if high else each)


@emits_nest(CheckNest)
def check(w: KernelEmitter, nest: CheckNest) -> None:
    """Write positions counted from the front. At one out of range, leave the function with its
    value in the status block and 1 as the result: what comes later may read no memory that is not
    there."""
    (store,) = nest.stores
    w.begin(nest)
    dtype = store.value.dtype

    def inside(_: Carried) -> Carried:
        at = OpBuilder(w, int64, w.lanes)
        value = types.convert(w, w.vector(store.value), dtype, int64, w.lanes)
        size = types.broadcast(w, w.scalar(nest.size), int64, w.lanes)
        place, zero = value, types.splat("i64", "0", w.lanes)
        if dtype.kind == "int":
            negative = w.new(f"icmp slt {at.type} {value}, {zero}")
            place = at.select(negative, at.instruction("add", value, size), value)
        outside = w.new(f"icmp uge {at.type} {place}, {size}")
        if w.mask is not None:
            outside = at.logic("and", outside, w.mask)
        flags = f"i{w.lanes}"
        if w.lanes > 1:
            outside = w.new(f"bitcast {at.bool} {outside} to {flags}")
        no, yes = w.label(), w.label()
        w.branch(w.new(f"icmp ne {flags} {outside}, 0"), no, yes)
        w.start_block(no)
        if w.lanes > 1:
            w.declare(f"{flags} @llvm.cttz.{flags}({flags}, i1)")
            lane = w.new(f"call {flags} @llvm.cttz.{flags}({flags} {outside}, i1 true)")
            value = w.new(f"extractelement {at.type} {value}, {flags} {lane}")
        w.line(f"store i64 {value}, ptr %status, align 8")
        w.line("ret i64 1")
        w.start_block(yes)
        w.write(types.convert(w, place, int64, store.buffer.type.dtype, w.lanes), store)
        return []

    emit_loops(w, 0, len(nest.loops), inside)
