"""Writing kernels: the values of a nest's body, in one lane or in many.

A kernel becomes a function that finds its buffers, and the symbolic sizes it needs, in the block of
its program, at places it is told: so kernels of equal text share one function.

Within a nest, a value is written once, in the outermost place where what it depends on is known.
Values that depend on the loop `vec` are vectors, and positions in memory are followed by their
first lane: the stride from lane to lane is known (`strides`). Values that depend on the loop `tile`
are written in several copies, one for each row of a tile; of positions that grow by a known number
from row to row (`tile_steps`), the first one, to which the others are close in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.emit.lane_strides import depends, in_groups, steps_of
from retrograd.codegen.op_builder import OpBuilder
from retrograd.codegen.register_transpose import (
    every_second,
    in_turn,
    reversed_lanes,
    together,
    transpose_in_registers,
)
from retrograd.codegen.target import Target
from retrograd.errors import BackendError
from retrograd.ir import Dim, Trait, bool_, float32, float64, int64, lookup
from retrograd.ops.elementwise import max as maximum
from retrograd.ops.elementwise import min as minimum
from retrograd.ops.elementwise import traits_of
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import (
    LANES,
    ColumnReduction,
    LoopNest,
    RowReduction,
    RowScan,
    Store,
    live,
    roots,
    shared_destinations,
)
from retrograd.schedule.ssa import INDEX_DIVISIONS, SSAOp, SSAValue
from retrograd.schedule.tiling.affine import loops_of
from retrograd.schedule.tiling.analysis import cut_of, sum_cut
from retrograd.schedule.tiling.masked_domain import Bound, bound_of
from retrograd.tuning import TUNING

Names = dict[SSAValue, list[str]]  # a name for each copy, or one for all


class KernelEmitter(FunctionBuilder):
    """Writes one kernel. `parameters` are its buffers and sizes in the order of first use. With
    `rows`, the function does only the rows from `%lo` up to `%hi` of so many: multiples of
    `tile_multiple`, most often no more than `tile_rows` apart, if that is not 0."""

    def __init__(
        self, declare: Callable[[str], None], machine: Target, rows: int | Dim = 0,
        summing: bool = False, light: bool = False, polls: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(declare, brief=light and machine.width == 1)
        self.polls = polls  # looks now and then if the run is to stop
        self.light = light  # little to compute: row by row, for the text to be short
        self.group_rows = rows
        self.tile_multiple, self.tile_rows = 1, 0
        self.summing = summing  # over rows: what is there is added to
        self.machine = machine
        self.parameters: dict[Buffer | Dim, str] = {}
        self.lanes = self.copies = 1
        self.rows = 1  # of a tile
        self.mask: str | None = None  # lanes that count, where not all do
        # What is read of rows for several steps of a contraction at once, and the step.
        self.turned: dict[tuple[SSAValue, int], str] | None = None
        self.step = ""
        self.even = True  # the rows of a tile follow one another
        # Of a nest whose iterations are threads of their own (`retrograd.nvptx`): the counters of
        # loops of which one iteration is written; how many threads go through a row together, each
        # in the place of a lane, and which lane this one is.
        self.fixed: dict[int, str] = {}
        self.team, self.lane = 1, "0"
        self.team_loop = -1  # that they share, if it is not `vec`

    # -- parameters ---------------------------------------------------------------------------
    def parameter(self, what: Buffer | Dim) -> str:
        found = self.parameters.get(what)
        if found is None:
            kind = "s" if isinstance(what, Dim) else "p"
            found = self.parameters[what] = f"%{kind}{len(self.parameters)}"
        return found

    def find_parameters(self, checking: bool) -> None:
        """Have the function find all it uses."""
        for k, (what, name) in enumerate(self.parameters.items()):
            kind = "i64" if isinstance(what, Dim) else "ptr"
            self.entry += [
                f"  {name}.k = getelementptr i64, ptr %slots, i64 {k}",
                f"  {name}.slot = load i64, ptr {name}.k, align 8",
                f"  {name}.at = getelementptr i64, ptr %block, i64 {name}.slot",
                f"  {name} = load {kind}, ptr {name}.at, align 8",
            ]
        more = ["status"] * checking + ["stop.at"] * self.polls
        for k, name in enumerate(more, len(self.parameters)):
            self.entry += [
                f"  %{name}.k = getelementptr i64, ptr %slots, i64 {k}",
                f"  %{name}.slot = load i64, ptr %{name}.k, align 8",
                f"  %{name} = getelementptr i64, ptr %block, i64 %{name}.slot",
            ]
        if self.polls:
            self.entry.append("  %stop = load ptr, ptr %stop.at, align 8")

    def size(self, size: int | Dim) -> str:
        return self.parameter(size) if isinstance(size, Dim) else str(size)

    def address(self, buffer: Buffer, offset: str) -> str:
        if offset == "0":
            return self.parameter(buffer)
        kind = types.memory_type(buffer.type.dtype)
        return self.new(f"getelementptr {kind}, ptr {self.parameter(buffer)}, i64 {offset}")

    # -- a nest -------------------------------------------------------------------------------
    def begin(self, nest: LoopNest) -> None:
        """Start a nest: find out what its values depend on, write those that need no loop."""
        self.nest, self.copies, self.mask = nest, 1, None
        self.counters: dict[int, list[str]] = {}
        self.in_blocks: set[int] = (
            set()
        )  # loops that go through a part at a time, see blocked_sum.py
        self.levels: list[list[SSAValue]] = [[] for _ in range(len(nest.loops) + 2)]
        self.uses: dict[SSAValue, int] = {}  # loops a value depends on, as bits
        self._scalars: list[Names] = [{}]  # by open loop
        self._vectors: list[Names] = [{}]
        self._pointers: list[dict[tuple[Buffer, SSAValue], str]] = [{}]
        # Conditions that are bounds of `vec`: a mask of so many lanes, not a comparison of each.
        self.ramps: dict[SSAValue, Bound] = {}
        for v in self._needed(nest):
            self.levels[v.depth].append(v)
            uses = 1 << v.attr if v.op is SSAOp.LOOP else 0
            if v in self.ramps:
                uses = sum(1 << k for k in {nest.vec, *(k for k, _ in self.ramps[v].steps)})
            for a in self._args(v):
                uses |= self.uses[a]
            self.uses[v] = uses
        self.strides = steps_of(self.uses, nest.vec)
        self.alone, self.in_turn = in_groups(nest)
        self.tile_steps = steps_of(self.uses, nest.tile)
        self.lanes = self._choose_lanes()
        self.rows = self._choose_rows()
        self.turning, self.at_once = self._loop_to_turn()
        self._unwritten = self._only_guards()
        self._splats = {
            a
            for v in self.uses
            if self.is_vector(v) and v.op is not SSAOp.LOAD and v not in self._unwritten
            for a in self._args(v)
        }
        self.place(0)
        self._cut()

    def _needed(self, nest: LoopNest) -> list[SSAValue]:
        """The values to be written: all that are live, but for what only ramps are made of."""
        values = live(nest)
        for v in values:
            bound = bound_of(v, nest.vec) if v.dtype is bool_ and nest.vec >= 0 else None
            if bound is not None:
                self.ramps[v] = bound
        if not self.ramps:
            return values
        seen = set(roots(nest))
        todo = list(seen)
        while todo:
            fresh = [a for a in self._args(todo.pop()) if a not in seen]
            seen.update(fresh)
            todo += fresh
        return [v for v in values if v in seen]

    def _only_guards(self) -> set[SSAValue]:
        """The chosen positions of which vectors need the guard alone, as nothing but loads use
        them, see `read`. Where there is one lane they are written."""
        found = {v for v in self.uses if self.is_vector(v) and self._guards(v)}
        for v in self.uses:
            if found and v.op is not SSAOp.LOAD:
                found.difference_update(self._args(v))
        return found.difference(roots(self.nest)) if found else found

    def _guards(self, offset: SSAValue) -> bool:
        """Whether a position is one in memory that lies side by side where a guard holds."""
        return offset.op is SSAOp.ISEL and self.strides[offset.args[1]] == 1

    def _args(self, v: SSAValue) -> tuple[SSAValue, ...]:
        """What a value is written from."""
        return () if v in self.ramps else v.args

    def _loop_to_turn(self) -> tuple[int, int]:
        """The loop of a contraction along which what its lanes gather lies side by side, or -1, and
        how many of its steps to take at once."""
        nest, last = self.nest, len(self.nest.loops) - 1
        if (
            not nest.is_contraction
            or isinstance(nest, RowReduction)
            or self.light
            or self.lanes < TUNING.shuffle_bytes // 4
        ):
            return -1, 1
        steps = steps_of(self.uses, last)
        loads = [v for v in self.uses if v.op is SSAOp.LOAD and self.varies(v)]
        gathered = [v for v in loads if self.strides[v.args[0]] != 1]
        kinds = {v.dtype for v in gathered}
        fit = all(
            steps[v.args[0]] == 1 and isinstance(self.strides[v.args[0]], int) for v in gathered
        )
        if not fit or len(kinds) != 1 or not kinds <= {float32, float64}:
            return -1, 1
        return last, together(gathered[0].dtype, self.lanes)

    def varies(self, v: SSAValue) -> bool:
        """Whether a value differs between lanes."""
        return depends(self.uses[v], self.nest.vec)

    def is_vector(self, v: SSAValue) -> bool:
        """Whether a value is written as a vector."""
        return self.lanes > 1 and self.varies(v) and self.strides[v] is None

    def _choose_lanes(self) -> int:
        nest = self.nest
        if nest.vec < 0:
            return 1
        varying = [v for v in self.uses if self.varies(v)]
        rows, apart = (
            isinstance(nest, RowReduction | RowScan),
            [self.strides[s.offset] for s in self.alone],
        )
        if not rows and (self.machine.width == 1 or any(step != 1 for step in apart)):
            return 1
        if not rows and any(v.op in INDEX_DIVISIONS for v in varying):
            return 1  # divisions of vectors are divisions one by one
        lanes = self._row_lanes() if rows else self.machine.width
        if not rows:
            data = [v.dtype.itemsize for v in varying if self.strides[v] is None]
            if data and max(data) == 8:
                lanes = max(lanes // 2, 2)
            if nest.is_contraction and not self._gathers():
                lanes *= 2
            elif isinstance(nest, ColumnReduction) and not self._gathers():
                lanes *= self._columns_at_once(lanes)
        n = nest.loops[nest.vec]
        if not isinstance(n, Dim):
            lanes = min(lanes, 1 << max(n - 1, 0).bit_length())
        return lanes

    def _row_lanes(self) -> int:
        """Those of a row. One extreme after the other waits for the one before, so that one long
        row, of which no order is given, has several vectors side by side."""
        nest = self.nest
        n = nest.loops[nest.vec]
        if not isinstance(nest, RowReduction) or nest.tile >= 0 or nest.is_contraction:
            return LANES
        extreme = lookup(nest.op).combine in (maximum, minimum)  # type: ignore[attr-defined]
        long = not isinstance(n, Dim) and n >= TUNING.long_row
        return LANES * TUNING.extremes_at_once if extreme and long else LANES

    def _columns_at_once(self, lanes: int) -> int:
        """How many vectors of columns are added up side by side: rows that are read a vector at a
        time are far apart in memory."""
        n = self.nest.loops[self.nest.vec]
        values = sum(self.varies(v) and self.strides[v] is None for v in self.uses)
        times = 4 if values <= TUNING.column_values else 1
        while times > 1 and (isinstance(n, Dim) or n < 2 * times * lanes):
            times //= 2
        return times

    def _gathers(self) -> bool:
        """Whether lanes read what does not lie side by side."""
        loads = [v for v in self.uses if v.op is SSAOp.LOAD and self.varies(v)]
        return any(self.strides[v.args[0]] != 1 for v in loads)

    def _choose_rows(self) -> int:
        """How many rows of a tile fit into the registers."""
        nest = self.nest
        if self.light or nest.tile < 0 or (self.lanes == 1 and not nest.is_contraction):
            return 1
        if nest.is_contraction:
            own = -(-self.lanes // self.machine.width)
            # As many sums side by side as take no longer than one waits for the next product.
            return min(16 // own, self.machine.registers // (2 * own))
        if not isinstance(nest, RowReduction):
            return 1
        values = sum(self.is_vector(v) for v in self.uses)
        return 4 if values <= 16 else 2 if values <= 32 else 1

    def _cut(self) -> None:
        """Find out which part of which loops the rows are that are to be done."""
        self.ranges: dict[int, tuple[str, str]] = {}
        self.multiples: dict[int, int] = {}  # of which both ends of a range are one
        self.places = "", ""  # the part of the places of a scatter
        self.first = ""  # of the rows that are added up: nothing is there yet
        rows = self.group_rows
        if rows == 0:
            return
        if self.summing:
            assert isinstance(rows, int)
            cut = sum_cut(self.nest, rows)
        else:
            cut = cut_of(self.nest, rows)
        assert cut is not None
        lo, hi = "%lo", "%hi"
        if cut.times != 1:
            lo, hi = (self.new(f"mul i64 {x}, {self.size(cut.times)}") for x in (lo, hi))
        if cut.outer:
            loops = loops_of(self.nest, self.summing)
            at = self.new(f"udiv i64 {lo}, {loops[cut.loop]}")
            start = self.new(f"mul i64 {at}, {loops[cut.loop]}")
            lo, hi = (self.new(f"sub i64 {x}, {start}") for x in (lo, hi))
            for k in reversed(cut.outer):
                one = at
                if k:
                    one = self.new(f"urem i64 {at}, {loops[k]}")
                    at = self.new(f"udiv i64 {at}, {loops[k]}")
                self.ranges[k] = one, self.new(f"add i64 {one}, 1")
        if shared_destinations(self.nest) is not None:
            self.places = lo, hi
            return
        self.ranges[cut.loop] = lo, hi
        if isinstance(cut.times, int):
            multiple = self.tile_multiple * cut.times
            if cut.outer:  # of which the range is a part
                multiple = gcd(multiple, loops[cut.loop])
            self.multiples[cut.loop] = multiple
            if self.nest.tile == cut.loop and self.tile_rows:
                self.rows = _of_a_tile(self.rows, self.tile_rows * cut.times, multiple)
        if self.summing:
            self.first = self.new(f"icmp eq i64 {lo}, 0")
        if self.nest.tile in cut.outer:
            self.rows = 1  # of one iteration

    def bounds(self, number: int) -> tuple[str, str]:
        """Where a loop starts and ends."""
        return self.ranges.get(number) or ("0", self.size(self.nest.loops[number]))

    def across(self, kind: str, x: str, step: int) -> str:
        """What the thread of a team that is `step` lanes away has."""
        raise NotImplementedError("threads of a CPU go through rows alone")

    # -- values -------------------------------------------------------------------------------
    def place(self, depth: int) -> None:
        """Write the values of a depth; all counters up to it must be known."""
        for v in self.levels[depth]:
            if v.op is SSAOp.PRODUCT or (v in self._unwritten and self.lanes > 1):
                continue
            count = self.copies if self._copied(v) else 1
            if count > 1 and self._is_even(v):
                self._scalars[-1][v] = [self._value(v, 0, 1), *[""] * (count - 1)]
            elif self.is_vector(v):
                self._vectors[-1][v] = [self._value(v, t, self.lanes) for t in range(count)]
                continue
            else:
                self._scalars[-1][v] = [self._value(v, t, 1) for t in range(count)]
            if v in self._splats and v.op not in (SSAOp.CONST, SSAOp.SIZE):
                for t in range(count):
                    self.vector(v, t)

    def _copied(self, v: SSAValue) -> bool:
        return depends(self.uses[v], self.nest.tile)

    def _is_even(self, v: SSAValue) -> bool:
        """Whether a value grows by a known number from row to row of a tile."""
        return self.even and isinstance(self.tile_steps[v], int) and not self.is_vector(v)

    def scalar(self, v: SSAValue, t: int = 0) -> str:
        """A value in its first lane."""
        found = _find(self._scalars, v, t)
        if not found and t:
            step, first = self.tile_steps[v], self.scalar(v)
            assert isinstance(step, int)
            known = first.isdigit() and step >= 0
            found = (
                str(int(first) + t * step)
                if known
                else self.new(f"add nsw i64 {first}, {t * step}")
            )
            self._scalars[-1].setdefault(v, [""] * self.copies)[t] = found
        return found

    def vector(self, v: SSAValue, t: int = 0) -> str:
        """A value in all lanes; that is the scalar where there is one lane."""
        if self.lanes == 1:
            return self.scalar(v, t)
        if not self._copied(v):
            t = 0
        found = _find(self._vectors, v, t)
        if not found:
            found = self._widened(v, t)
            names = self._vectors[-1].setdefault(v, [""] * self.copies)
            names[t] = found
        return found

    def _widened(self, v: SSAValue, t: int) -> str:
        if v.op is SSAOp.CONST:
            return types.literal(v.attr, v.dtype, self.lanes)
        first = types.broadcast(self, self.scalar(v, t), v.dtype, self.lanes)
        stride = self.strides[v]
        if stride == 0:
            return first
        kind = types.register_type(int64, self.lanes)
        assert stride is not None
        return self.new(f"add nsw {kind} {first}, {self._steps(stride)}")

    def _steps(self, stride: int | Dim) -> str:
        """0, 1, 2, ... times a stride."""
        if not isinstance(stride, Dim):
            return "<" + ", ".join(f"i64 {i * stride}" for i in range(self.lanes)) + ">"
        wide = types.broadcast(self, self.size(stride), int64, self.lanes)
        kind = types.register_type(int64, self.lanes)
        return self.new(f"mul nsw {kind} {wide}, {self._steps(1)}")

    def get(self, v: SSAValue, t: int, lanes: int) -> str:
        return self.scalar(v, t) if lanes == 1 else self.vector(v, t)

    def bound(self, bound: Bound, t: int = 0) -> str:
        """A bound in a copy, of which counters may be known by the first one."""
        total = self.size(bound.start)
        for loop, step in bound.steps:
            counters = self.counters[loop]
            counter = counters[t if loop == self.nest.tile and len(counters) > 1 else 0]
            if loop == self.nest.tile and len(counters) == 1 and t:
                counter = self.new(f"add nsw i64 {counter}, {t}")
            share = counter if step == 1 else self.new(f"mul nsw i64 {counter}, {self.size(step)}")
            total = self.new(f"add nsw i64 {total}, {share}")
        return total

    def _ramp(self, bound: Bound, t: int, lanes: int) -> str:
        """Which lanes are within a bound."""
        total, here = self.bound(bound, t), self.counters[self.nest.vec][0]
        if lanes == 1:
            return self.new(f"icmp {'sge' if bound.lower else 'slt'} i64 {here}, {total}")
        left = self.new(f"sub nsw i64 {total}, {here}")
        for name, limit in (("smax", 0), ("smin", lanes)):
            self.declare(f"i64 @llvm.{name}.i64(i64, i64)")
            left = self.new(f"call i64 @llvm.{name}.i64(i64 {left}, i64 {limit})")
        kind = types.widened("i32", lanes)
        short = self.new(f"trunc i64 {left} to i32")
        first = self.new(f"insertelement {kind} poison, i32 {short}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        wide = self.new(f"shufflevector {kind} {first}, {kind} poison, {zeros}")
        steps = "<" + ", ".join(f"i32 {i}" for i in range(lanes)) + ">"
        return self.new(f"icmp {'sle' if bound.lower else 'sgt'} {kind} {wide}, {steps}")

    def _value(self, v: SSAValue, t: int, lanes: int) -> str:
        if v in self.ramps:
            return self._ramp(self.ramps[v], t, lanes)
        core = CORE.get(v.op)
        if core is not None:
            return core(self, v, t, lanes)
        emit = ELEMENTWISE.get(v.op)
        if emit is None:
            raise BackendError(f"the llvm backend has no lowering of {v.op!r}")
        # The operands of select differ in dtype; its last ones are like the result.
        at = OpBuilder(self, v.args[-1].dtype, lanes)
        result = emit(at, *[self.get(a, t, lanes) for a in v.args])
        if v.dtype.is_half and Trait.UNROUNDED not in traits_of(v.op):
            result = types.rounded(self, result, v.dtype, lanes)
        return result

    # -- memory -------------------------------------------------------------------------------
    def pointer(self, buffer: Buffer, position: SSAValue, t: int = 0) -> str:
        """The address of an element, in its first lane."""
        step = self.tile_steps[position]
        if t == 0 or not self._copied(position) or not self._is_even(position):
            key = buffer, position
            known = (
                next((p[key] for p in reversed(self._pointers) if key in p), "") if not t else ""
            )
            if not known:
                known = self.address(buffer, self.scalar(position, t))
                if not t:
                    self._pointers[-1][key] = known
            return known
        assert isinstance(step, int)
        first, kind = self.pointer(buffer, position), types.memory_type(buffer.type.dtype)
        return self.new(f"getelementptr {kind}, ptr {first}, i64 {t * step}")

    def read(self, v: SSAValue, t: int, lanes: int) -> str:
        """A load."""
        (offset,), buffer = v.args, v.attr
        if lanes == 1:
            return types.load(self, self.pointer(buffer, offset, t), v.dtype)
        guard, position = self.mask, offset
        if self._guards(offset):
            # Read where the guard holds; elsewhere the value is not used.
            position = offset.args[1]
            guard = self.both(guard, self.vector(offset.args[0], t))
        if self.strides[position] == 1:
            pointer = self.pointer(buffer, position, t)
            if guard is not None and position is not offset:
                pointer = self._mapped(pointer, guard, buffer)
            return types.load(self, pointer, v.dtype, lanes, guard)
        if self.turned is not None:
            return self._column(v, t)
        if guard is None and self.strides[position] in (2, -1):
            return self._near(v, t)
        base, at = self.parameter(buffer), self.vector(offset, t)
        return types.gather(self, base, at, v.dtype, lanes, self.mask)

    def _near(self, load: SSAValue, t: int) -> str:
        """Every second element, or elements in the other direction, of vectors that are read whole:
        a fourth of the time of gathering."""
        (position,), lanes, dtype = load.args, self.lanes, load.dtype
        pointer, kind = self.pointer(load.attr, position, t), types.memory_type(dtype)
        wide = types.register_type(dtype, lanes)
        if self.strides[position] == 2:
            later = self.new(f"getelementptr {kind}, ptr {pointer}, i64 {lanes - 1}")
            first, second = (types.load(self, p, dtype, lanes) for p in (pointer, later))
            return every_second(self, first, second, wide, lanes)
        before = self.new(f"getelementptr {kind}, ptr {pointer}, i64 {1 - lanes}")
        return reversed_lanes(self, types.load(self, before, dtype, lanes), wide, lanes)

    def _mapped(self, pointer: str, guard: str, buffer: Buffer) -> str:
        """The pointer where any lane is read, else the start of the buffer: far outside of it there
        may be no memory, and x86 takes hundreds of cycles to read no lane of that."""
        kind = types.register_type(bool_, self.lanes)
        bits = self.new(f"bitcast {kind} {guard} to i{self.lanes}")
        some = self.new(f"icmp ne i{self.lanes} {bits}, 0")
        return self.new(f"select i1 {some}, ptr {pointer}, ptr {self.parameter(buffer)}")

    def _column(self, v: SSAValue, t: int) -> str:
        """What a load reads at a step of those whose rows are read at once: they are kept where it
        is first written."""
        assert self.turned is not None
        kind = types.register_type(v.dtype, self.lanes)
        if (v, t) not in self.turned:
            found = self._columns(v, self.pointer(v.attr, v.args[0], t))
            self.turned[v, t] = area = self.reserve(f"[{len(found)} x {kind}]")
            for i, x in enumerate(found):
                place = self.new(f"getelementptr {kind}, ptr {area}, i64 {i}")
                self.line(f"store {kind} {x}, ptr {place}")
            return found[0]
        at = self.new(f"getelementptr {kind}, ptr {self.turned[v, t]}, i64 {self.step}")
        return self.new(f"load {kind}, ptr {at}")

    def _columns(self, load: SSAValue, row: str) -> list[str]:
        """What a load reads at so many steps: vectors of the elements at `row` and at the rows
        after it, then of the elements beside those, and so on. Lanes that do not count have the
        last row that does."""
        apart = self.strides[load.args[0]]
        assert isinstance(apart, int)
        last = (self.lanes if self.mask is None else self.mask.count("i1 1")) - 1
        kind = types.memory_type(load.dtype)
        rows = [
            self.new(f"getelementptr {kind}, ptr {row}, i64 {min(lane, last) * apart}")
            for lane in range(self.lanes)
        ]
        return transpose_in_registers(self, rows, load.dtype)

    def both(self, a: str | None, b: str) -> str:
        """The conjunction of two masks, of which the first may be none."""
        if a is None:
            return b
        return self.new(f"and {types.register_type(bool_, self.lanes)} {a}, {b}")

    def write(self, value: str, store: Store, t: int = 0) -> None:
        """Write a value in the buffer's dtype, in all lanes that count."""
        pointer = self.pointer(store.buffer, store.offset, t)
        types.store(self, value, pointer, store.buffer.type.dtype, self.lanes, self.mask)

    def write_in_turn(self, values: Sequence[str], stores: Sequence[Store]) -> None:
        """Write values that lie in turn in memory."""
        first, dtype = stores[0], stores[0].buffer.type.dtype
        scalar = types.register_type(dtype)
        pointer, kind = self.pointer(first.buffer, first.offset), types.memory_type(dtype)
        masks: list[str | None] = [None] * len(values)
        if self.mask is not None:
            masks = [*in_turn(self, [self.mask] * len(values), "i1", self.lanes)]
        whole = in_turn(self, values, scalar, self.lanes)
        for i, (x, mask) in enumerate(zip(whole, masks, strict=True)):
            at = self.new(f"getelementptr {kind}, ptr {pointer}, i64 {i * self.lanes}")
            types.store(self, x, at, dtype, self.lanes, mask)

    # -- loops --------------------------------------------------------------------------------
    def enter(self) -> None:
        """What is written from here on is known until `leave`."""
        self._scalars.append({})
        self._vectors.append({})
        self._pointers.append({})

    def leave(self) -> None:
        self._scalars.pop()
        self._vectors.pop()
        self._pointers.pop()

    def divisor(self, v: SSAValue) -> str:
        """A size to divide by. No element of an empty array is used, but one may be computed."""
        return self.at_least_one(self.scalar(v)) if isinstance(v.attr, Dim) else self.scalar(v)

    def at_least_one(self, size: str) -> str:
        self.declare("i64 @llvm.smax.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)")


def _of_a_tile(rows: int, most: int, multiple: int) -> int:
    """How many rows at a time, `rows` at most, where no more than `most` follow one another, and
    their number is a multiple of another: as even as they can be if that leaves none."""
    even = -(-most // -(-most // rows))
    return even if multiple % even == 0 else min(rows, 1 << most.bit_length() - 1)


def _find(scopes: list[Names], v: SSAValue, t: int) -> str:
    for names in reversed(scopes):
        found = names.get(v)
        if found is not None:
            name = found[t] if t < len(found) else found[0]
            if name:
                return name
    return ""


Core = Callable[[KernelEmitter, SSAValue, int, int], str]


def _binary(op: str, fold: Callable[[int, int], int] | None = None) -> Core:
    def emit(w: KernelEmitter, v: SSAValue, t: int, lanes: int) -> str:
        a, b = (w.get(x, t, lanes) for x in v.args)
        if fold is not None and a.isdigit() and b.isdigit():
            return str(fold(int(a), int(b)))
        if op == "add nsw" and (a == "0" or b == "0"):
            return b if a == "0" else a
        return w.new(f"{op} {types.register_type(int64, lanes)} {a}, {b}")

    return emit


def _division(op: str) -> Core:
    def emit(w: KernelEmitter, v: SSAValue, t: int, lanes: int) -> str:
        divisor = types.broadcast(w, w.divisor(v.args[1]), int64, lanes)
        a = w.get(v.args[0], t, lanes)
        return w.new(f"{op} {types.register_type(int64, lanes)} {a}, {divisor}")

    return emit


def _choose(w: KernelEmitter, v: SSAValue, t: int, lanes: int) -> str:
    return OpBuilder(w, int64, lanes).select(*[w.get(x, t, lanes) for x in v.args])


def _cast(w: KernelEmitter, v: SSAValue, t: int, lanes: int) -> str:
    (x,) = v.args
    return types.convert(w, w.get(x, t, lanes), x.dtype, v.dtype, lanes)


CORE: dict[str, Core] = {
    SSAOp.LOOP: lambda w, v, t, lanes: w.counters[v.attr][t if w._copied(v) else 0],
    SSAOp.SIZE: lambda w, v, t, lanes: w.size(v.attr),
    SSAOp.CONST: lambda w, v, t, lanes: types.literal(v.attr, v.dtype),
    SSAOp.IADD: _binary("add nsw", lambda a, b: a + b),
    SSAOp.ISUB: _binary("sub nsw"),
    SSAOp.IMUL: _binary("mul nsw", lambda a, b: a * b),
    SSAOp.IDIV: _division("sdiv"),
    SSAOp.IMOD: _division("srem"),
    SSAOp.ILT: _binary("icmp slt"),
    SSAOp.IGE: _binary("icmp sge"),
    SSAOp.ISEL: _choose,
    SSAOp.LOAD: lambda w, v, t, lanes: w.read(v, t, lanes),
    SSAOp.CAST: _cast,
}
