"""Running sums, products and extrema; recurrences; where an extremum was attained.

Where there are many rows, an invocation goes along each. Where there are few, rows are cut into
blocks: the first dispatch finds what each block as a whole amounts to, the second what comes before
each block, the third goes along every block from there. What is so far of a sum of float32 is in
float64 where the device has that, else the sum of two numbers, the second of which is what was
rounded off: so is that of float64 (`ops/numerics/compensated_sum.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Protocol

from retrograd.ir import DType, TensorType, float64, int32
from retrograd.ops import elementwise as el
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import RowScan, ScanNest
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.emit.reductions import better, combined_by
from retrograd.wgpu.emit.totals import (
    CompensatedSum,
    Total,
    Words,
    assign,
    sum_of_floats,
    variables,
)
from retrograd.wgpu.math.bits import require
from retrograd.wgpu.scalar import Body, converted
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import literal, register_type

ENOUGH_ROWS = 1 << 12  # rows that keep a device busy
LEAST_BLOCK = 32  # elements
MOST_BLOCKS = 1 << 14  # of all rows together


class RunningState(Protocol):
    """What a scan has so far, in a few numbers, of the dtypes `words`: a `Total` of elements."""

    words: list[DType]

    def start(self) -> list[str]:
        """Of no elements."""

    def element(self, body: Body) -> list[str]:
        """Of the element at hand alone."""

    def join(self, before: Words, after: Words) -> list[str]:
        """Of elements and those that come after them."""

    def result(self, now: Words, dtype: DType) -> str:
        """The running value, in a dtype."""


class Running:
    """A `Total` as it goes along."""

    def __init__(self, nest: ScanNest, total: Total) -> None:
        self.value = nest.stores[0].value
        self.words, self.start = total.words, total.start
        self.join, self.result, self.of = total.join, total.result, total.of

    def element(self, body: Body) -> list[str]:
        return self.of(body[self.value], self.value.dtype)


class RunningPosition:
    """The extremum so far, and where it is."""

    def __init__(self, w: ShaderWriter, nest: ScanNest) -> None:
        self.w, self.nest = w, nest
        self.dtype = nest.stores[0].value.dtype
        self.words = [self.dtype, int32]

    def start(self) -> list[str]:
        return [literal(0, self.dtype), "-1i"]

    def element(self, body: Body) -> list[str]:
        assert self.nest.position is not None
        return [body[self.nest.stores[0].value], body.position(self.nest.position)]

    def join(self, before: Words, after: Words) -> list[str]:
        wins = better(self.w, self.nest, self.dtype, after[0], before[0])
        wins = self.w.new(f"{before[1]} < 0i || ({after[1]} >= 0i && {wins})")
        pairs = zip(before, after, strict=True)
        return [self.w.new(f"select({old}, {new}, {wins})") for old, new in pairs]

    def result(self, now: Words, dtype: DType) -> str:
        return converted(self.w, now[1], int32, dtype)


class Recurrence:
    """`y = factor y + x` of integers, or in float64: the product of the factors, and y."""

    def __init__(self, w: ShaderWriter, nest: ScanNest) -> None:
        self.w, self.nest = w, nest
        self.dtype = nest.stores[0].value.dtype
        wide = float64 if self.dtype.is_float else self.dtype
        w.need(wide)
        self.words = [wide, wide]

    def start(self) -> list[str]:
        return [
            literal(1, self.words[0]),
            literal(-0.0 if self.dtype.is_float else 0, self.words[0]),
        ]

    def element(self, body: Body) -> list[str]:
        factor = self.nest.factor
        assert factor is not None
        values = factor, self.nest.stores[0].value
        return [converted(self.w, body[v], v.dtype, self.words[0]) for v in values]

    def join(self, before: Words, after: Words) -> list[str]:
        moved = self.times(before[1], after[0])
        factor = self.w.new(f"{before[0]} * {after[0]}")
        return [factor, self.w.new(f"{moved} + {after[1]}")]

    def times(self, x: str, by: str) -> str:
        """A product that zero absorbs."""
        return self.w.new(f"select({x} * {by}, {x}, {x} == {literal(0, self.words[0])})")

    def result(self, now: Words, dtype: DType) -> str:
        return converted(self.w, now[1], self.words[0], dtype)


class CompensatedRecurrence(CompensatedSum):
    """The same with what was rounded off on the way, one element after the other."""

    def __init__(self, w: ShaderWriter, nest: ScanNest) -> None:
        assert nest.accumulator is not None
        super().__init__(w, nest.accumulator)
        self.nest = nest

    def element(self, body: Body) -> list[str]:
        factor = self.nest.factor
        assert factor is not None
        values = self.nest.stores[0].value, factor
        return [converted(self.w, body[v], v.dtype, self.words[0]) for v in values]

    def join(self, before: Words, after: Words) -> list[str]:
        (x, rest), (value, by), new, zero = before, after, self.w.new, self.zero
        fma = require(self.w, f"fma_{register_type(self.words[0])}")
        moved = new(f"select({self.exact}({x} * {by}), {x}, {x} == {zero})")
        rounded = new(f"{fma}({x}, {by}, -{moved})")
        rounded = new(f"select({zero}, {rounded}, {x} != {zero} && {self.finite(rounded)})")
        total, lost = self.two_sum(moved, value)
        kept = new(f"select({rest} * {by}, {rest}, {rest} == {zero})")
        return [total, new(f"{kept} + ({rounded} + {lost})")]


def state_of(w: ShaderWriter, nest: ScanNest) -> RunningState:
    """What a scan keeps."""
    assert nest.accumulator is not None
    wide = w.context.facts.float64 and nest.accumulator is not float64
    floats = nest.accumulator.is_float
    if nest.position is not None:
        return RunningPosition(w, nest)
    if nest.factor is not None:
        return Recurrence(w, nest) if wide or not floats else CompensatedRecurrence(w, nest)
    op = combined_by(nest)
    adds = floats and op is el.add
    total = sum_of_floats(w, nest.accumulator) if adds else Total(w, op, nest.accumulator)
    return Running(nest, total)


@emits_nest(ScanNest, RowScan)
def scan(nest: ScanNest, context: EmitContext) -> list[Dispatch]:
    """Along the innermost loop."""
    rows, length = (
        number_of_points(loops, context)
        for loops in (nest.loops[: nest.kept], nest.loops[nest.kept :])
    )
    if rows * length == 0:
        return []
    in_blocks = not isinstance(state_of(ShaderWriter(context), nest), CompensatedRecurrence)
    size = max(LEAST_BLOCK, isqrt(length), -(-length * rows // MOST_BLOCKS))
    if not in_blocks or rows >= ENOUGH_ROWS or length < 2 * size:
        return [_along(nest, context, rows, length, 1, [])]
    blocks = -(-length // size)
    words = state_of(ShaderWriter(context), nest).words
    parts = [context.scratch(TensorType(d, (rows, blocks))) for d in words]
    return [
        _whole_blocks(nest, context, rows, size, blocks, parts),
        _before_blocks(nest, context, rows, blocks, parts),
        _along(nest, context, rows, size, blocks, parts),
    ]


def _begin(w: ShaderWriter, nest: ScanNest, count: int, blocks: int) -> tuple[Body, str]:
    """An invocation for each block of each row; and the number of the block."""
    w.line(f"if (at >= {count}i) {{ return; }}")
    body = Body(w, nest)
    row, block = "at", "0i"
    if blocks > 1:
        row, block = w.new(f"at / {blocks}i"), w.new(f"at % {blocks}i")
    counters_of(w, body, nest.loops[: nest.kept], row)
    body.place(nest.kept, 0)
    return body, block


def _walk(
    w: ShaderWriter, body: Body, nest: ScanNest, state: RunningState, now: Words, block: str,
    size: int, write: bool,
) -> None:  # fmt: skip
    """Go along a block, from what is so far; `write` the running values."""
    last, length = len(nest.loops) - 1, w.size(nest.loops[-1])
    first = w.new(f"{block} * {size}i")
    with w.loop(w.new(f"min({first} + {size}i, {length})"), first) as i:
        back = isinstance(nest, RowScan) and nest.reverse
        body.counter(last, w.new(f"{length} - 1i - {i}") if back else i)
        body.place(last + 1)
        assign(w, now, state.join(now, state.element(body)))
        if write:
            (store,) = nest.stores
            value = state.result(now, store.buffer.type.dtype)
            w.store(store.buffer, body.position(store.offset), value)


def _along(
    nest: ScanNest, context: EmitContext, rows: int, size: int, blocks: int, parts: Sequence[Buffer]
) -> Dispatch:
    """The running values, from what `parts` have before each block."""
    w = ShaderWriter(context)
    state = state_of(w, nest)
    body, block = _begin(w, nest, rows * blocks, blocks)
    before = [w.load(p, "at") for p in parts] or state.start()
    _walk(w, body, nest, state, variables(w, state.words, before), block, size, write=True)
    return w.dispatch(-(-rows * blocks // w.workgroup), nest.kind)


def _whole_blocks(
    nest: ScanNest, context: EmitContext, rows: int, size: int, blocks: int, parts: Sequence[Buffer]
) -> Dispatch:
    """What each block amounts to."""
    w = ShaderWriter(context)
    state = state_of(w, nest)
    body, block = _begin(w, nest, rows * blocks, blocks)
    now = variables(w, state.words, state.start())
    _walk(w, body, nest, state, now, block, size, write=False)
    for part, x in zip(parts, now, strict=True):
        w.store(part, "at", x)
    return w.dispatch(-(-rows * blocks // w.workgroup), nest.kind)


def _before_blocks(
    nest: ScanNest, context: EmitContext, rows: int, blocks: int, parts: Sequence[Buffer]
) -> Dispatch:
    """Instead of what each block amounts to, what all before it do."""
    w = ShaderWriter(context)
    w.line(f"if (at >= {rows}i) {{ return; }}")
    state = state_of(w, nest)
    now = variables(w, state.words, state.start())
    with w.loop(w.new(f"(at + 1i) * {blocks}i"), w.new(f"at * {blocks}i")) as i:
        block = [w.new(w.load(part, i)) for part in parts]
        for part, x in zip(parts, now, strict=True):
            w.store(part, i, x)
        assign(w, now, state.join(now, block))
    return w.dispatch(-(-rows // w.workgroup), nest.kind)
