"""Running sums, products and extrema; recurrences; where an extremum was attained."""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen import types
from retrograd.codegen.emit.compensated_sum import more, settled, two_product, two_sum
from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, backwards, emit_loop, emit_loops, masked
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.codegen.emit.reduce import Accumulation, better, combined_by
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import float64, int64
from retrograd.ops import elementwise as el
from retrograd.schedule.loop_nest import LoopNest, RowScan, ScanNest
from retrograd.schedule.ssa import SSAValue


@emits_nest(ScanNest)
def scan(w: KernelEmitter, nest: ScanNest) -> None:
    """Along the innermost loop, one element after the other."""
    w.begin(nest)
    if nest.position is not None:
        _attained(w, nest)
    elif nest.factor is not None:
        _recurrence(w, nest)
    elif _is_float(nest) and combined_by(nest) is el.add:
        _sums(w, nest)
    else:
        _running(w, nest)


def _is_float(nest: LoopNest) -> bool:
    return nest.accumulator is not None and nest.accumulator.is_float


def _through(
    w: KernelEmitter,
    nest: LoopNest,
    count: int,
    step: Callable[[OpBuilder, Carried], tuple[Carried, str]],
) -> None:
    """Along the innermost loop with so many numbers of float64 from element to element; a step
    gives the next ones, and the result of its element."""
    (store,) = nest.stores
    dtype = store.buffer.type.dtype

    def element(carried: Carried) -> Carried:
        after, result = step(OpBuilder(w, float64, w.lanes), carried)
        w.write(types.convert(w, result, float64, dtype, w.lanes), store)
        return after

    def row(_: Carried) -> Carried:
        kind = types.register_type(float64, w.lanes)
        nothing = types.literal(-0.0, float64, w.lanes)
        emit_loops(w, nest.kept, len(nest.loops), element, [kind] * count, [nothing] * count)
        return []

    emit_loops(w, 0, nest.kept, row)


def _wide(w: KernelEmitter, v: SSAValue) -> str:
    return types.convert(w, w.vector(v), v.dtype, float64, w.lanes)


def _is_double(nest: LoopNest) -> bool:
    """Whether what a scan has so far takes two numbers of float64."""
    return nest.accumulator is float64


def _sums(w: KernelEmitter, nest: LoopNest) -> None:
    value = nest.stores[0].value

    def one(at: OpBuilder, carried: Carried) -> tuple[Carried, str]:
        total = at.instruction("fadd", carried[0], _wide(w, value))
        return [total], total

    def two(at: OpBuilder, carried: Carried) -> tuple[Carried, str]:
        after = [*more(at, carried[0], carried[1], _wide(w, value))]
        return after, settled(at, *after)

    _through(w, nest, *((2, two) if _is_double(nest) else (1, one)))


def _running(w: KernelEmitter, nest: LoopNest) -> None:
    (store,) = nest.stores
    assert nest.accumulator is not None
    a = Accumulation(w, nest, nest.accumulator)

    def step(carried: Carried) -> Carried:
        total = a.combine(carried[0], w.vector(store.value))
        w.write(types.convert(w, total, a.dtype, store.buffer.type.dtype, w.lanes), store)
        return [total]

    def result(_: Carried) -> Carried:
        emit_loops(w, nest.kept, len(nest.loops), step, [a.type], [a.neutral])
        return []

    emit_loops(w, 0, nest.kept, result)


def _recurrence(w: KernelEmitter, nest: ScanNest) -> None:
    (store,), factor = nest.stores, nest.factor
    assert factor is not None
    if not _is_float(nest):
        _whole_recurrence(w, nest)
        return

    def moved(at: OpBuilder, by: str, x: str) -> str:
        """`x` times a factor, which zero absorbs."""
        return ELEMENTWISE[el.zmul.name](at, x, by)

    def one(at: OpBuilder, carried: Carried) -> tuple[Carried, str]:
        state = moved(at, _wide(w, factor), carried[0])
        state = at.instruction("fadd", state, _wide(w, store.value))
        return [state], state

    def two(at: OpBuilder, carried: Carried) -> tuple[Carried, str]:
        before, rest = carried
        by, zero = _wide(w, factor), types.literal(0.0, float64, w.lanes)
        state, lost = two_sum(at, moved(at, by, before), _wide(w, store.value))
        rounded = two_product(at, by, before)[1]
        rounded = at.select(at.instruction("fcmp oeq", before, zero), zero, rounded)
        rest = at.instruction("fadd", moved(at, by, rest), at.instruction("fadd", rounded, lost))
        return [state, rest], settled(at, state, rest)

    _through(w, nest, *((2, two) if _is_double(nest) else (1, one)))


def _whole_recurrence(w: KernelEmitter, nest: ScanNest) -> None:
    """Of whole numbers, which wrap."""
    (store,), factor = nest.stores, nest.factor
    assert factor is not None
    dtype = store.buffer.type.dtype

    def step(carried: Carried) -> Carried:
        at = OpBuilder(w, dtype, w.lanes)
        state = at.instruction(
            "add", at.instruction("mul", carried[0], w.vector(factor)), w.vector(store.value)
        )
        w.write(state, store)
        return [state]

    def row(_: Carried) -> Carried:
        kind, nothing = types.register_type(dtype, w.lanes), types.literal(0, dtype, w.lanes)
        emit_loops(w, nest.kept, len(nest.loops), step, [kind], [nothing])
        return []

    emit_loops(w, 0, nest.kept, row)


def _attained(w: KernelEmitter, nest: ScanNest) -> None:
    (store,), last = nest.stores, len(nest.loops) - 1
    dtype, position = store.value.dtype, nest.position
    assert position is not None

    def step(carried: Carried) -> Carried:
        kinds = [types.register_type(d, w.lanes) for d in (dtype, int64)]
        bits = types.widened("i1", w.lanes)
        value = w.vector(store.value)
        wins = better(w, nest, dtype, value, carried[0])
        first = w.new(f"icmp eq i64 {w.counters[last][0]}, 0")
        yes = types.splat("i1", "true", w.lanes)
        wins = w.new(f"select i1 {first}, {bits} {yes}, {bits} {wins}")
        place = types.broadcast(w, w.scalar(position), int64, w.lanes)
        now = [
            w.new(f"select {bits} {wins}, {kind} {new}, {kind} {old}")
            for kind, new, old in zip(kinds, (value, place), carried, strict=True)
        ]
        w.write(now[1], store)
        return now

    def result(_: Carried) -> Carried:
        kinds = [types.register_type(d, w.lanes) for d in (dtype, int64)]
        starts = [types.literal(0, d, w.lanes) for d in (dtype, int64)]
        emit_loops(w, nest.kept, len(nest.loops), step, kinds, starts)
        return []

    emit_loops(w, 0, nest.kept, result)


@emits_nest(RowScan)
def along(w: KernelEmitter, nest: RowScan) -> None:
    """Along rows, a block of lanes at a time; see `schedule/loop_nest.py` for the order."""
    (store,), reverse = nest.stores, nest.reverse
    assert nest.accumulator is not None
    w.begin(nest)
    a = Accumulation(w, nest, nest.accumulator)
    precise = a.adds_floats
    kind = "double" if precise else a.scalar
    count = 2 if precise and _is_double(nest) else 1

    def block(carried: Carried) -> Carried:
        x = types.convert(w, w.vector(store.value), store.value.dtype, a.dtype, w.lanes)
        x = masked(w, a.type, x, a.neutral)
        step = 1
        while step < w.lanes:
            x = a.combine(_moved(w, a, x, step, reverse), x)
            step *= 2
        before = carried[0]
        if precise:
            double = OpBuilder(w, float64)
            before = settled(double, *carried) if count == 2 else before
            before = types.convert(w, before, float64, a.dtype)
        total = a.combine(types.broadcast(w, before, a.dtype, w.lanes), x)
        w.write(types.convert(w, total, a.dtype, store.buffer.type.dtype, w.lanes), store)
        last = x if precise else total
        if w.lanes > 1:
            end = 0 if reverse else w.lanes - 1
            last = w.new(f"extractelement {a.type} {last}, i64 {end}")
        if not precise:
            return [last]
        last = types.convert(w, last, a.dtype, float64)
        if count == 2:
            return [*more(double, carried[0], carried[1], last)]
        return [double.instruction("fadd", carried[0], last)]

    def row(_: Carried) -> Carried:
        go = backwards if reverse and w.lanes > 1 else emit_loop
        neutral = types.literal(a.neutral_value(), float64 if precise else a.dtype)
        go(w, nest.kept, block, [kind] * count, [neutral] * count)
        return []

    emit_loops(w, 0, nest.kept, row)


def _moved(w: KernelEmitter, a: Accumulation, x: str, step: int, reverse: bool) -> str:
    """The lanes moved up by a step, or down; what enters changes nothing."""
    n = w.lanes
    source = range(step, step + n) if reverse else range(-step, n - step)
    picks = ", ".join(f"i32 {i if 0 <= i < n else n}" for i in source)
    return w.new(f"shufflevector {a.type} {x}, {a.type} {a.neutral}, <{n} x i32> <{picks}>")
