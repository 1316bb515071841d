"""Reductions and extremum positions."""

from __future__ import annotations

import numpy as np

from retrograd.codegen import types
from retrograd.codegen.emit.blocked_sum import Chains
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, emit_loops, masked
from retrograd.codegen.emit.masked_rows import Range, domain_of, visible_part
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.codegen.emit.streamed_product import StreamedSums, is_streamed
from retrograd.ir import Dim, DType, bool_, entering, int64, lookup
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Elementwise
from retrograd.ops.numerics.summation import SUMS
from retrograd.schedule.loop_nest import (
    ArgReduction,
    ColumnReduction,
    LoopNest,
    ReductionNest,
    RowReduction,
    Store,
)
from retrograd.schedule.ssa import SSAValue
from retrograd.schedule.tiling.masked_domain import MaskedDomain

# How two numbers are combined by the op of this name: instructions, or intrinsics, for floats, for
# integers with a sign and without one.
_INSTRUCTIONS: dict[str, tuple[str, str, str]] = {}
_combining = entering(_INSTRUCTIONS)
_combining(el.add)(("fadd", "add", "add"))
_combining(el.mul)(("fmul", "mul", "mul"))
_combining(el.max)(("maximum", "smax", "umax"))
_combining(el.min)(("minimum", "smin", "umin"))
_combining(el.bitwise_or)(("or", "or", "or"))
_combining(el.bitwise_and)(("and", "and", "and"))
_CALLED = frozenset(("maximum", "minimum", "smax", "smin", "umax", "umin"))


def combined_by(nest: LoopNest) -> Elementwise | None:
    """The op by which a nest combines elements: that of the reduction, scan or scatter."""
    if nest.is_contraction:
        return el.add
    found: Elementwise | None = lookup(nest.op).combine  # type: ignore[attr-defined]
    return found


class Accumulation:
    """How values of one reduction are combined: by an op; of a contraction, products of two."""

    def __init__(self, w: KernelEmitter, nest: LoopNest, dtype: DType) -> None:
        self.w = w
        op = combined_by(nest)
        assert op is not None
        self.op = op
        self.of_products = nest.is_contraction
        self.dtype = dtype
        # Booleans are combined as bytes: vectors of bits are not laid out as arrays in memory.
        self.scalar = "i8" if dtype is bool_ else types.register_type(dtype)
        kind = 0 if dtype.is_float else 1 if dtype.kind == "int" else 2
        self.name = _INSTRUCTIONS[op.name][kind]

    @property
    def adds_floats(self) -> bool:
        return self.dtype.is_float and self.op is el.add

    @property
    def lanes(self) -> int:
        return self.w.lanes

    @property
    def type(self) -> str:
        """The type of what is accumulated: a vector, where there are lanes."""
        return types.widened(self.scalar, self.lanes)

    def combine(self, a: str, b: str) -> str:
        kind = self.type
        if self.name not in _CALLED:
            return self.w.new(f"{self.name} {kind} {a}, {b}")
        name = f"llvm.{self.name}.{types.suffix(kind)}"
        self.w.declare(f"{kind} @{name}({kind}, {kind})")
        return self.w.new(f"call {kind} @{name}({kind} {a}, {kind} {b})")

    def take(self, total: str, value: SSAValue, t: int) -> str:
        """The accumulated value with one more: what a loop carries on."""
        w = self.w
        if not self.of_products:
            x = w.vector(value, t)
            if self.dtype is bool_:
                bits = types.register_type(bool_, self.lanes)
                x = w.new(f"zext {bits} {x} to {self.type}")
            return masked(w, self.type, self.combine(total, x), total)
        x, y = (w.vector(a, t) for a in value.args)
        if self.dtype.is_float and w.machine.fma:
            name = f"llvm.fma.{types.suffix(self.type)}"
            w.declare(f"{self.type} @{name}({self.type}, {self.type}, {self.type})")
            listed = ", ".join(f"{self.type} {v}" for v in (x, y, total))
            new = w.new(f"call {self.type} @{name}({listed})")
        else:
            times = {"fadd": "fmul", "add": "mul"}[self.name]
            new = self.combine(total, w.new(f"{times} {self.type} {x}, {y}"))
        return masked(w, self.type, new, total) if isinstance(w.nest, RowReduction) else new

    @property
    def neutral(self) -> str:
        """What changes nothing when combined, in every lane. For a sum of floats that is -0.0."""
        return types.splat(self.scalar, self._neutral_text(), self.lanes)

    def _neutral_text(self) -> str:
        if self.dtype is bool_:
            return "1" if self.op in (el.bitwise_and, el.min) else "0"
        return types.literal(self.neutral_value(), self.dtype)

    def neutral_value(self) -> float:
        if self.op is el.add:
            return -0.0 if self.dtype.is_float else 0
        if self.op is el.mul:
            return 1
        least = self.op is el.max
        if self.dtype.is_float:
            return float("-inf") if least else float("inf")
        bits = 8 * self.dtype.itemsize
        if self.dtype.kind == "uint":
            return 0 if least else 2**bits - 1
        return -(2 ** (bits - 1)) if least else 2 ** (bits - 1) - 1

    def result(self, value: str, count: str, lanes: int) -> str:
        """The reduced value; the sum of no floats is 0.0, not -0.0."""
        kind = types.widened(self.scalar, lanes)
        if self.dtype is bool_:
            return self.w.new(f"icmp ne {kind} {value}, {types.splat('i8', '0', lanes)}")
        if not self.adds_floats:
            return value
        zero = types.literal(0.0, self.dtype, lanes)
        if count == "0":
            return zero
        if not count.isdigit():
            none = self.w.new(f"icmp eq i64 {count}, 0")
            return self.w.new(f"select i1 {none}, {kind} {zero}, {kind} {value}")
        return value

    def trees(self, vectors: list[str]) -> list[str]:
        """The partial results of each vector as one: upper half with lower half, until one is
        left. Vectors are halved together, so that one operation serves all of them."""
        if self.w.team > 1:
            return [self._in_team(x) for x in vectors]
        if self.lanes == 1:
            return vectors
        held = vectors
        parts = apart = self.lanes  # partial results of a row, and from row to row
        while parts > 1:
            parts //= 2
            if len(held) > 1:
                held = [*held, held[-1]] if len(held) % 2 else held
                pairs = zip(held[::2], held[1::2], strict=True)
                held, apart = [self._together(a, b, parts) for a, b in pairs], parts
            else:
                high = [i + parts if i % apart < parts else -1 for i in range(self.lanes)]
                held = [self.combine(held[0], self._shuffled(held[0], "poison", high))]
        each = self.lanes // apart
        return [
            self.w.new(f"extractelement {self.type} {held[k // each]}, i64 {k % each * apart}")
            for k in range(len(vectors))
        ]

    def _in_team(self, x: str) -> str:
        """The same between threads, all of which get the result."""
        step = self.w.team
        while step > 1:
            step //= 2
            x = self.combine(x, self.w.across(self.scalar, x, step))
        return x

    def _together(self, a: str, b: str, parts: int) -> str:
        """Two vectors as one, with so many partial results of each row, half of what they have."""
        starts = range(0, 2 * self.lanes, 2 * parts)
        low = [row + i for row in starts for i in range(parts)]
        high = [i + parts for i in low]
        return self.combine(self._shuffled(a, b, low), self._shuffled(a, b, high))

    def _shuffled(self, a: str, b: str, order: list[int]) -> str:
        listed = ", ".join(f"i32 {'poison' if i < 0 else i}" for i in order)
        given = f"{self.type} {a}, {self.type} {b}"
        return self.w.new(f"shufflevector {given}, <{self.lanes} x i32> <{listed}>")


@emits_nest(RowReduction, ColumnReduction)
def reduction(w: KernelEmitter, nest: ReductionNest) -> None:
    """Kept loops around reduced ones; see `schedule/loop_nest.py` for the order."""
    (store,) = nest.stores
    assert nest.accumulator is not None
    w.begin(nest)
    a = Accumulation(w, nest, nest.accumulator)
    domain = domain_of(w)

    def result(_: Carried) -> Carried:
        start = [_so_far(w, a, store, t) if w.first else a.neutral for t in range(w.copies)]
        if domain is None:
            return total(start)
        with visible_part(w, domain, _unit(w, a)) as part:
            return total([_with_hidden(w, a, domain, part)] * w.copies)

    def total(start: Carried) -> Carried:
        kinds = [a.type for _ in start]

        def take(totals: Carried) -> Carried:
            return [a.take(x, store.value, t) for t, x in enumerate(totals)]

        reduced = len(nest.loops) - nest.kept
        # Products of several loops down a column are one chain, no longer than a block.
        short = reduced == 0 or (reduced > 1 and nest.is_column_contraction)
        if a.adds_floats and not short:
            totals = Chains(w, take, a.combine, kinds, a.neutral).summed(nest.kept, start)
        else:
            totals = emit_loops(w, nest.kept, len(nest.loops), take, kinds, start)
        if isinstance(nest, RowReduction):
            totals = a.trees(totals)
        for t, total in enumerate(totals):
            finish(w, nest, a, store, total, t)
        return []

    if is_streamed(w, nest):
        emit_loops(w, 0, nest.vec, lambda _: _streamed(w, nest, a, store))
        return
    emit_loops(w, 0, nest.kept, result)


def _streamed(w: KernelEmitter, nest: ReductionNest, a: Accumulation, store: Store) -> Carried:
    """The results of a row, or of those of a tile, see `streamed_product.py`."""

    def take(totals: Carried) -> Carried:
        return [a.take(x, store.value, t) for t, x in enumerate(totals)]

    def write(total: str, t: int) -> None:
        finish(w, nest, a, store, total, t)

    StreamedSums(w, nest, take, a.combine).write(a.scalar, lambda: a.type, lambda: a.neutral, write)
    return []


def _unit(w: KernelEmitter, a: Accumulation) -> int:
    """Where in a row a sum may begin as if nothing were before: where the order of what follows is
    the same."""
    size = w.nest.loops[-1]
    if not a.adds_floats:
        return w.lanes
    if isinstance(size, Dim) or size > SUMS.group * w.lanes:
        return 0
    return w.lanes if size <= SUMS.block * w.lanes else SUMS.block * w.lanes


def _with_hidden(w: KernelEmitter, a: Accumulation, domain: MaskedDomain, part: Range) -> str:
    """What a reduction begins with that leaves out what is hidden: zeros, whose sum is not -0.0."""
    if not a.adds_floats or np.signbit(domain.fill[0]):
        return a.neutral
    first, last = part
    length = w.new(f"sub i64 {last}, {first}")
    whole = w.new(f"icmp eq i64 {length}, {w.size(w.nest.loops[-1])}")
    zero = types.literal(0.0, a.dtype, a.lanes)
    return w.new(f"select i1 {whole}, {a.type} {a.neutral}, {a.type} {zero}")


def _so_far(w: KernelEmitter, a: Accumulation, store: Store, t: int) -> str:
    """What earlier rows add up to."""
    pointer = w.address(store.buffer, w.scalar(store.offset, t))
    there = types.load(w, pointer, a.dtype, w.lanes, w.mask)
    return w.new(f"select i1 {w.first}, {a.type} {a.neutral}, {a.type} {there}")


def finish(
    w: KernelEmitter, nest: ReductionNest, a: Accumulation, store: Store, total: str, t: int
) -> None:
    """Write a reduced value, in the dtype of the buffer."""
    row, dtype = isinstance(nest, RowReduction), store.buffer.type.dtype
    lanes = 1 if row else w.lanes
    value = a.result(total, w.scalar(nest.count), lanes)
    value = types.convert(w, value, a.dtype, dtype, lanes)
    if row:
        types.store(w, value, w.pointer(store.buffer, store.offset, t), dtype)
    else:
        w.write(value, store, t)


@emits_nest(ArgReduction)
def argument(w: KernelEmitter, nest: LoopNest) -> None:
    """The position of the first extremum; the first NaN counts as one."""
    (store,), last = nest.stores, len(nest.loops) - 1
    dtype = store.value.dtype
    w.begin(nest)

    def step(carried: Carried) -> Carried:
        kind, whole = types.register_type(dtype, w.lanes), types.register_type(int64, w.lanes)
        old, position = carried
        value = w.vector(store.value)
        wins = better(w, nest, dtype, value, old)
        counter = w.counters[last][0]
        bits = types.register_type(bool_, w.lanes)
        first = w.new(f"icmp eq i64 {counter}, 0")
        yes = types.splat("i1", "true", w.lanes)
        wins = w.new(f"select i1 {first}, {bits} {yes}, {bits} {wins}")
        best = w.new(f"select {bits} {wins}, {kind} {value}, {kind} {old}")
        here = types.broadcast(w, counter, int64, w.lanes)
        at = w.new(f"select {bits} {wins}, {whole} {here}, {whole} {position}")
        return [best, at]

    def result(_: Carried) -> Carried:
        zero = types.literal(0, int64, w.lanes)
        begin = types.literal(0, dtype, w.lanes)
        kinds = [types.register_type(d, w.lanes) for d in (dtype, int64)]
        at = emit_loops(w, nest.kept, len(nest.loops), step, kinds, [begin, zero])[1]
        w.write(at, store)
        return []

    emit_loops(w, 0, nest.kept, result)


def better(w: KernelEmitter, nest: LoopNest, dtype: DType, value: str, old: str) -> str:
    """Whether a value takes the place of the extremum so far: a NaN does, once."""
    kind, more = types.register_type(dtype, w.lanes), combined_by(nest) is el.max
    bits = types.register_type(bool_, w.lanes)
    if not dtype.is_float:
        letter = "s" if dtype.kind == "int" else "u"
        return w.new(f"icmp {letter}{'gt' if more else 'lt'} {kind} {value}, {old}")
    better = w.new(f"fcmp {'ogt' if more else 'olt'} {kind} {value}, {old}")
    nan, had = (w.new(f"fcmp uno {kind} {x}, {x}") for x in (value, old))
    not_had = w.new(f"xor {bits} {had}, {types.splat('i1', 'true', w.lanes)}")
    return w.new(f"or {bits} {better}, {w.new(f'and {bits} {nan}, {not_had}')}")
