"""The functions that run a program's kernels: which thread runs what, and when threads wait.

Every thread goes through the epochs of the plan. In an epoch, bands of rows are shared: block `b`
belongs to thread `b * threads / blocks`, roughly. The other kernels are run by thread 0. Between
epochs all wait for each other, and hear whether an index check failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

from retrograd.backends.kernel import Band, Buffer
from retrograd.backends.llvm.interrupt import LONG
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import Dim

if TYPE_CHECKING:
    from retrograd.backends.llvm.module import Call, Module

STOPPED = 1 << 62  # the result of a run that was told to stop
LONG_ROWS = 1024  # of a matrix product after which a run may stop
PIECE = 200  # calls in a function; longer ones would take LLVM more than linear time
ARGUMENTS = "ptr %block, i64 %thread, i64 %threads, ptr %team"


class Driver:
    """Writes `run` of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.plan = module.plan
        self.functions: list[str] = []
        # A run may stop until it overwrites what the caller would want to keep.
        self.stoppable = not self.plan.donated and (
            bool(self.plan.graph.dim_names) or self.plan.nanoseconds({}) >= LONG
        )

    def text(self) -> list[str]:
        """The functions; the last one is `run`."""
        threaded = self.plan.threaded
        w = Writer(self.module.declare)
        steps = list(self._steps())
        for number, (epoch, names) in enumerate(steps):
            w.line(f"; epoch {epoch}")
            self._epoch(w, names, threaded, last=number == len(steps) - 1)
        if not steps:
            w.line("ret i64 0")
        self.functions.append(f"define i64 @run({ARGUMENTS}) {{\n{w.text()}\n}}")
        return self.functions

    def _steps(self) -> Iterator[tuple[int, list[tuple[str, bool, bool]]]]:
        """Epochs, each a list of functions, with whether threads share one and whether it may
        fail."""
        pairs = list(zip(self.plan.bands, self.module.calls, strict=True))
        for epoch, inside in groupby(pairs, lambda p: p[0].epoch if self.plan.threaded else 0):
            found: list[tuple[str, bool, bool]] = []
            for shared, group in groupby(inside, lambda p: p[0].rows != 0):
                if shared:
                    found += [(self._band(band, calls), True, False) for band, calls in group]
                    continue
                calls = [c for _, own in group for c in own]
                for i in range(0, len(calls), PIECE):
                    piece = calls[i : i + PIECE]
                    fails = self.stoppable or any(c.check for c in piece)
                    found.append((self._piece(piece), False, fails))
            yield epoch, found

    def _epoch(
        self, w: Writer, functions: list[tuple[str, bool, bool]], threaded: bool, last: bool
    ) -> None:
        """The functions of an epoch, then the barrier. A thread whose check failed goes straight
        there; all hear of it, and leave."""
        failing = any(fails for _, _, fails in functions)
        end = w.label()
        ways: list[tuple[str, str]] = []  # results and the blocks they come from
        for name, shared, fails in functions:
            after = ""
            if threaded and not shared:
                mine, after = w.label(), w.label()
                first = w.new("icmp eq i64 %thread, 0")
                w.branch(first, mine, after)
                w.start_block(mine)
            result = w.new(f"call i64 @{name}({ARGUMENTS})")
            if fails:
                on = w.label()
                ways.append((result, w.block))
                w.branch(w.new(f"icmp eq i64 {result}, 0"), on, end)
                w.start_block(on)
            if after:
                w.jump(after)
                w.start_block(after)
        ways.append(("0", w.block))
        w.jump(end)
        w.start_block(end)
        result = "0"
        if failing:
            listed = ", ".join(f"[ {value}, %{block} ]" for value, block in ways)
            result = w.new(f"phi i64 {listed}")
        self._meet(w, result, threaded, last)

    def _meet(self, w: Writer, result: str, threaded: bool, last: bool) -> None:
        if last:
            w.line(f"ret i64 {result}")
            return
        if self.stoppable:
            result = self._told(w, result)
        if result == "0":
            w.declare("void @rg_barrier(ptr, i64, i64)")
            w.line("call void @rg_barrier(ptr %team, i64 %thread, i64 %threads)")
            return
        w.declare("i64 @rg_vote(ptr, i64, i64, i64)")
        result = w.new(f"call i64 @rg_vote(ptr %team, i64 %thread, i64 %threads, i64 {result})")
        on, off = w.label(), w.label()
        w.branch(w.new(f"icmp eq i64 {result}, 0"), on, off)
        w.start_block(off)
        w.line(f"ret i64 {result}")
        w.start_block(on)

    def _piece(self, calls: list[Call]) -> str:
        """Kernels run one after the other by one thread."""
        w = Writer(self.module.declare)
        slots = Slots(w, self.module)
        for call in calls:
            arguments = slots.listed(call)
            if self.stoppable:
                self._look(w)
            if not call.check:
                with self._timed(w, call):
                    w.line(f"call void @{call.function}({arguments})")
                continue
            at = w.new(f"getelementptr i64, ptr %block, i64 {self.module.slots.status}")
            failed = w.new(f"call i64 @{call.function}({slots.listed(call, f'ptr {at}')})")
            on, off = w.label(), w.label()
            w.branch(w.new(f"icmp eq i64 {failed}, 0"), on, off)
            w.start_block(off)
            w.line(f"ret i64 {call.check}")
            w.start_block(on)
        return self._define(w)

    def _band(self, band: Band, calls: list[Call]) -> str:
        """A block of rows through all the kernels of a band, then the next."""
        w = Writer(self.module.declare)
        slots = Slots(w, self.module)
        for call in calls:
            slots.listed(call)  # all that is loaded is loaded before the loop
        rows = slots.of(band.rows) if isinstance(band.rows, Dim) else str(band.rows)
        blocks = str(band.blocks) if band.blocks else _blocks(w, band, rows)
        bounds = []
        for thread in ("%thread", w.new("add i64 %thread, 1")):
            if blocks == "%threads":
                bounds.append(thread)
                continue
            scaled = w.new(f"mul i64 {thread}, {blocks}")
            bounds.append(w.new(f"udiv i64 {scaled}, %threads"))
        scratch = w.new(f"mul i64 %thread, {self.plan.scratch.arena}")
        work = self.plan.work
        if work is not None and work in slots.names:
            slots.names[work] = w.new(f"getelementptr i8, ptr {slots.of(work)}, i64 {scratch}")
        loop = w.open_loop(bounds[1], 1, bounds[0])
        lo = _row(w, loop.counter, rows, blocks)
        hi = _row(w, w.new(f"add i64 {loop.counter}, 1"), rows, blocks)
        for buffer in band.local:
            # The block's rows of a local buffer lie at the start of the thread's scratch.
            row = buffer.bytes // band.rows
            moved = w.new(f"sub i64 {scratch}, {w.new(f'mul i64 {lo}, {row}')}")
            name = slots.of(buffer)
            slots.names[buffer] = w.new(f"getelementptr i8, ptr {name}, i64 {moved}")
        for call in calls:
            if self.stoppable:
                self._look(w)
            with self._timed(w, call):
                arguments = slots.listed(call, f"i64 {lo}", f"i64 {hi}")
                w.line(f"call void @{call.function}({arguments})")
        w.close_loop(loop)
        return self._define(w)

    def _word(self, w: Writer) -> str:
        """The word that says whether the run is to stop, as it is now."""
        at = w.new(f"getelementptr i64, ptr %block, i64 {self.module.slots.status + 2}")
        return w.new(f"load atomic i64, ptr {at} monotonic, align 8")

    def _look(self, w: Writer) -> None:
        """Leave if the run is to stop; what was computed is dropped."""
        on, off = w.label(), w.label()
        w.branch(w.new(f"icmp eq i64 {self._word(w)}, 0"), on, off)
        w.start_block(off)
        w.line(f"ret i64 {STOPPED}")
        w.start_block(on)

    def _told(self, w: Writer, result: str) -> str:
        """The result of an epoch, or that the run is to stop."""
        go = w.new(f"icmp eq i64 {self._word(w)}, 0")
        return w.new(f"select i1 {go}, i64 {result}, i64 {STOPPED}")

    @contextmanager
    def _timed(self, w: Writer, call: Call) -> Iterator[None]:
        """Where times are taken, add the cycles of a call to its kernel's counter."""
        if not self.module.timed:
            yield
            return
        w.declare("i64 @llvm.readcyclecounter()")
        start = w.new("call i64 @llvm.readcyclecounter()")
        yield
        passed = w.new(f"sub i64 {w.new('call i64 @llvm.readcyclecounter()')}, {start}")
        own = w.new(f"getelementptr i64, ptr %block, i64 {self.module.slots.status + 1}")
        table = w.new(f"load ptr, ptr {own}, align 8")
        at = w.new(f"getelementptr i64, ptr {table}, i64 {call.number}")
        w.new(f"atomicrmw add ptr {at}, i64 {passed} monotonic")

    def _define(self, w: Writer) -> str:
        name = f"part{len(self.functions)}"
        w.line("ret i64 0")
        self.functions.append(f"define internal i64 @{name}({ARGUMENTS}) #0 {{\n{w.text()}\n}}")
        return name


class Slots:
    """Arguments of kernels, loaded from the block when first needed."""

    def __init__(self, w: Writer, module: Module) -> None:
        self.w = w
        self.module = module
        self.names: dict[Buffer | Dim, str] = {}

    def of(self, what: Buffer | Dim) -> str:
        if what not in self.names:
            slot = self.module.slots.of(what)
            at = self.w.new(f"getelementptr i64, ptr %block, i64 {slot}")
            kind = "i64" if isinstance(what, Dim) else "ptr"
            self.names[what] = self.w.new(f"load {kind}, ptr {at}, align 8")
        return self.names[what]

    def listed(self, call: Call, *more: str) -> str:
        """The arguments of a call; there may be none, where nothing is to be computed."""
        own = [f"{'i64' if isinstance(p, Dim) else 'ptr'} {self.of(p)}" for p in call.arguments]
        return ", ".join([*own, *more])


def _blocks(w: Writer, band: Band, rows: str) -> str:
    """One block for each thread; more of a long matrix product, so that it can be told to stop."""
    if not any(n.kind == "gemm" and not n.loops for k in band.kernels for n in k.nests):
        return "%threads"
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    many = w.new(f"udiv i64 {rows}, {LONG_ROWS}")
    return w.new(f"call i64 @llvm.smax.i64(i64 {many}, i64 %threads)")


def _row(w: Writer, block: str, rows: str, blocks: str) -> str:
    """The first row of a block."""
    if rows.isdigit() and blocks.isdigit() and int(rows) % int(blocks) == 0:
        return w.new(f"mul i64 {block}, {int(rows) // int(blocks)}")
    return w.new(f"udiv i64 {w.new(f'mul i64 {block}, {rows}')}, {blocks}")
