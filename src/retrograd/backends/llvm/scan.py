"""Running sums, products and extrema; recurrences; where an extremum was attained."""

from __future__ import annotations

from retrograd.backends.kernel import Nest, Value
from retrograd.backends.llvm import types
from retrograd.backends.llvm.at import At
from retrograd.backends.llvm.elementwise import ELEMENTWISE
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, backwards, masked, over, walk
from retrograd.backends.llvm.reduce import Accumulation, better
from retrograd.ir import int64

_EXTREMA = {"cumargmax": "argmax", "cumargmin": "argmin"}


def scan(w: KernelWriter, nest: Nest) -> None:
    """Along the innermost loop, one element after the other."""
    w.begin(nest)
    if nest.op in _EXTREMA:
        _attained(w, nest)
    elif nest.op == "linear_scan":
        _recurrence(w, nest)
    else:
        _running(w, nest)


def _running(w: KernelWriter, nest: Nest) -> None:
    (store,) = nest.stores
    assert nest.accumulator is not None
    a = Accumulation(w, nest.op, nest.accumulator)

    def step(carried: Carried) -> Carried:
        total = a.combine(carried[0], w.vector(store.value))
        w.write(types.convert(w, total, a.dtype, store.buffer.type.dtype, w.lanes), store)
        return [total]

    def result(_: Carried) -> Carried:
        walk(w, nest.kept, len(nest.loops), step, [a.type], [a.neutral])
        return []

    walk(w, 0, nest.kept, result)


def _recurrence(w: KernelWriter, nest: Nest) -> None:
    (store,), factor = nest.stores, nest.info["factor"]
    dtype = nest.accumulator
    assert dtype is not None

    def wide(v: Value) -> str:
        return types.convert(w, w.vector(v), v.dtype, dtype, w.lanes)

    def step(carried: Carried) -> Carried:
        at = At(w, dtype, w.lanes)
        product = "zmul" if dtype.is_float else "mul"
        moved = ELEMENTWISE[product](at, carried[0], wide(factor))
        state = ELEMENTWISE["add"](at, moved, wide(store.value))
        w.write(types.convert(w, state, dtype, store.buffer.type.dtype, w.lanes), store)
        return [state]

    def result(_: Carried) -> Carried:
        nothing = types.literal(-0.0 if dtype.is_float else 0, dtype, w.lanes)
        kind = types.register_type(dtype, w.lanes)
        walk(w, nest.kept, len(nest.loops), step, [kind], [nothing])
        return []

    walk(w, 0, nest.kept, result)


def _attained(w: KernelWriter, nest: Nest) -> None:
    (store,), last = nest.stores, len(nest.loops) - 1
    dtype = store.value.dtype

    def step(carried: Carried) -> Carried:
        kinds = [types.register_type(d, w.lanes) for d in (dtype, int64)]
        bits = types.widened("i1", w.lanes)
        value = w.vector(store.value)
        wins = better(w, _EXTREMA[nest.op], dtype, value, carried[0])
        first = w.new(f"icmp eq i64 {w.counters[last][0]}, 0")
        yes = types.splat("i1", "true", w.lanes)
        wins = w.new(f"select i1 {first}, {bits} {yes}, {bits} {wins}")
        place = types.broadcast(w, w.scalar(nest.info["place"]), int64, w.lanes)
        now = [
            w.new(f"select {bits} {wins}, {kind} {new}, {kind} {old}")
            for kind, new, old in zip(kinds, (value, place), carried, strict=True)
        ]
        w.write(now[1], store)
        return now

    def result(_: Carried) -> Carried:
        kinds = [types.register_type(d, w.lanes) for d in (dtype, int64)]
        starts = [types.literal(0, d, w.lanes) for d in (dtype, int64)]
        walk(w, nest.kept, len(nest.loops), step, kinds, starts)
        return []

    walk(w, 0, nest.kept, result)


def along(w: KernelWriter, nest: Nest) -> None:
    """Along rows, a block of lanes at a time; see `kernel/nest.py` for the order."""
    (store,), reverse = nest.stores, nest.info["reverse"]
    assert nest.accumulator is not None
    w.begin(nest)
    a = Accumulation(w, nest.op, nest.accumulator)

    def block(carried: Carried) -> Carried:
        x = types.convert(w, w.vector(store.value), store.value.dtype, a.dtype, w.lanes)
        x = masked(w, a.type, x, a.neutral)
        step = 1
        while step < w.lanes:
            x = a.combine(_moved(w, a, x, step, reverse), x)
            step *= 2
        total = x
        if w.lanes > 1:
            before = types.broadcast(w, carried[0], a.dtype, w.lanes)
            total = a.combine(before, x)
            end = 0 if reverse else w.lanes - 1
            last = w.new(f"extractelement {a.type} {total}, i64 {end}")
        else:
            last = total = a.combine(carried[0], x)
        w.write(types.convert(w, total, a.dtype, store.buffer.type.dtype, w.lanes), store)
        return [last]

    def row(_: Carried) -> Carried:
        go = backwards if reverse and w.lanes > 1 else over
        neutral = types.literal(a.neutral_value(), a.dtype)
        go(w, nest.kept, block, [a.scalar], [neutral])
        return []

    walk(w, 0, nest.kept, row)


def _moved(w: KernelWriter, a: Accumulation, x: str, step: int, reverse: bool) -> str:
    """The lanes moved up by a step, or down; what enters changes nothing."""
    n = w.lanes
    source = range(step, step + n) if reverse else range(-step, n - step)
    picks = ", ".join(f"i32 {i if 0 <= i < n else n}" for i in source)
    return w.new(f"shufflevector {a.type} {x}, {a.type} {a.neutral}, <{n} x i32> <{picks}>")
