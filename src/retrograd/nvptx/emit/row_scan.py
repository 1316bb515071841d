"""Running sums and extrema along rows, a block of lanes at a time: as `codegen/emit/scan.py` writes
them in vectors, with a thread in the place of each lane."""

from __future__ import annotations

from collections.abc import Iterable

from retrograd.codegen import types
from retrograd.codegen.emit.compensated_sum import more, settled
from retrograd.codegen.emit.loops import Carried, emit_loops
from retrograd.codegen.emit.reduce import Accumulation
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import Dim, evaluate, float64, product
from retrograd.nvptx.emit.launch import Argument, Launch, Launches, Scratch, Sizes, Word
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.schedule.loop_nest import LANES, LoopNest, RowScan
from retrograd.tuning import TUNING


def team_of(nest: LoopNest) -> int:
    """How many threads go through a row: as many as partial results that matter."""
    if nest.vec < 0:
        return 1
    n = nest.loops[nest.vec]
    return LANES if isinstance(n, Dim) else min(LANES, 1 << max(n - 1, 0).bit_length())


def row_scan(module: DeviceModule, nest: RowScan) -> list[Launches]:
    """A team of threads for each row; or, where rows are few and long, for each block: its own
    total first, then what comes before each, then its elements."""
    domain, team = nest.loops[: nest.kept], team_of(nest)
    length = nest.loops[nest.kept]

    def pays(sizes: Sizes) -> bool:
        threads = evaluate(product(domain), sizes) * team
        blocks = evaluate(length, sizes) // team
        return threads < TUNING.cuda_busy_threads and blocks > TUNING.cuda_scanned_blocks

    known = not any(isinstance(n, Dim) for n in (*domain, length))
    if known and not pays({}):
        return [_whole(module, nest)]
    in_parts = _ScanParts(nest).launches(module)
    if known:
        return [in_parts]
    whole = _whole(module, nest)

    def launches(sizes: Sizes) -> Iterable[Launch]:
        return in_parts(sizes) if pays(sizes) else whole(sizes)

    return [launches]


def _whole(module: DeviceModule, nest: RowScan) -> Launches:
    w = module.emitter()
    domain, team = nest.loops[: nest.kept], team_of(nest)
    w.fixed = dict(enumerate(w.spread(domain, team)))
    w.begin(nest)
    scan = _ScanBlocks(w, nest)

    def row(_: Carried) -> Carried:
        loop = w.open_loop(scan.n, w.team, "0", scan.start)
        x, there, pointer = scan.scanned(loop.counter)
        scan.store(loop.values, x, there, pointer)
        w.close_loop(loop, scan.carried_on(loop.values, scan.end_of(x)))
        return []

    emit_loops(w, 0, nest.kept, row)
    return module.over(w, domain, team)


class _ScanParts:
    """The kernels for few long rows."""

    def __init__(self, nest: RowScan) -> None:
        self.nest, self.team = nest, team_of(nest)
        self.domain = nest.loops[: nest.kept]
        self.ends = Scratch(lambda sizes: 8 * self._many(sizes))
        self.carries = Scratch(lambda sizes: 16 * self._many(sizes))

    def count(self, sizes: Sizes) -> int:
        """The blocks of a row."""
        return -(-evaluate(self.nest.loops[self.nest.kept], sizes) // self.team)

    def _many(self, sizes: Sizes) -> int:
        return evaluate(product(self.domain), sizes) * self.count(sizes)

    def launches(self, module: DeviceModule) -> Launches:
        kernels = [self._ends(module), self._carries(module), self._elements(module)]

        def launches(sizes: Sizes) -> list[Launch]:
            words, blocks = {"blocks": self.count(sizes)}, self._many(sizes) * self.team
            rows = evaluate(product(self.domain), sizes)
            threads = (blocks, rows, blocks) if rows else ()
            return [
                Launch(name, arguments, many, words)
                for (name, arguments), many in zip(kernels, threads, strict=False)
            ]

        return launches

    def _begin(self, module: DeviceModule, each_block: bool) -> tuple[_ScanBlocks, str, list[str]]:
        """The kernel, how many blocks a row has, and the index of a row, or of a block of one."""
        w = module.emitter()
        blocks = w.parameter(Word("blocks"))
        if each_block:
            index = w.spread([*self.domain, blocks], self.team)
        else:
            index = w.spread(self.domain)
            w.team = self.team
        w.fixed = dict(enumerate(index[: len(self.domain)]))
        w.begin(self.nest)
        return _ScanBlocks(w, self.nest), blocks, index

    def _at(self, w: ThreadEmitter, index: list[str], blocks: str) -> str:
        """The number of a block among those of all rows."""
        at = "0"
        for size, i in zip([*map(w.size, self.domain), blocks], index, strict=True):
            at = i if at == "0" else w.new(f"add i64 {w.times(at, size)}, {i}")
        return at

    def _ends(self, module: DeviceModule) -> tuple[str, tuple[Argument, ...]]:
        scan, blocks, index = self._begin(module, True)
        w, kind = scan.w, scan.a.type

        def block(_: Carried) -> Carried:
            end = scan.end_of(scan.scanned(w.times(index[-1], str(self.team)))[0])
            at = self._at(w, index, blocks)
            to = w.new(f"getelementptr i64, ptr {w.parameter(self.ends)}, i64 {at}")
            w.line(f"store {kind} {end}, ptr {to}")
            return []

        emit_loops(w, 0, self.nest.kept, block)
        return module.kernel(w)

    def _carries(self, module: DeviceModule) -> tuple[str, tuple[Argument, ...]]:
        scan, blocks, index = self._begin(module, False)
        w = scan.w
        first = self._at(w, [*index, "0"], blocks)
        loop = w.open_loop(blocks, 1, "0", scan.start)
        at = w.new(f"add i64 {first}, {loop.counter}")
        for place, x in zip(self._places(scan, at), loop.values, strict=True):
            w.line(f"store {scan.kind} {x}, ptr {place}")
        source = w.new(f"getelementptr i64, ptr {w.parameter(self.ends)}, i64 {at}")
        end = w.new(f"load {scan.a.type}, ptr {source}")
        w.close_loop(loop, scan.carried_on(loop.values, end))
        return module.kernel(w)

    def _places(self, scan: _ScanBlocks, at: str) -> list[str]:
        """Where what comes before a block is."""
        w = scan.w
        first = w.new(f"mul i64 {at}, 2")
        places = [first, w.new(f"add i64 {first}, 1")][: len(scan.start)]
        carries = w.parameter(self.carries)
        return [w.new(f"getelementptr i64, ptr {carries}, i64 {place}") for place in places]

    def _elements(self, module: DeviceModule) -> tuple[str, tuple[Argument, ...]]:
        scan, blocks, index = self._begin(module, True)
        w = scan.w

        def block(_: Carried) -> Carried:
            x, there, pointer = scan.scanned(w.times(index[-1], str(self.team)))
            places = self._places(scan, self._at(w, index, blocks))
            carried = [w.new(f"load {scan.kind}, ptr {place}") for place in places]
            scan.store(carried, x, there, pointer)
            return []

        emit_loops(w, 0, self.nest.kept, block)
        return module.kernel(w)


class _ScanBlocks:
    """The blocks of one row."""

    def __init__(self, w: ThreadEmitter, nest: RowScan) -> None:
        assert nest.accumulator is not None
        self.w, self.nest = w, nest
        self.a = Accumulation(w, nest, nest.accumulator)
        self.n = w.size(nest.loops[nest.kept])
        self.precise = self.a.adds_floats
        self.two = self.precise and nest.accumulator is float64
        self.kind = "double" if self.precise else self.a.scalar

    @property
    def start(self) -> list[tuple[str, str]]:
        """What comes before the first block: types and values."""
        dtype = float64 if self.precise else self.a.dtype
        neutral = types.literal(self.a.neutral_value(), dtype)
        return [(self.kind, neutral)] * (2 if self.two else 1)

    def _place(self, start: str) -> tuple[str, str]:
        """The position of this lane in the block that starts after so many, and whether there is
        an element: blocks of a reversed row begin at its end, and the last has its first lanes."""
        w, n = self.w, self.n
        if not self.nest.reverse:
            at = w.new(f"add nsw i64 {start}, {w.lane}")
            return at, w.new(f"icmp slt i64 {at}, {n}")
        first = w.new(f"sub nsw i64 {n}, {w.new(f'add nsw i64 {start}, {w.team}')}")
        whole = w.new(f"icmp sge i64 {first}, 0")
        left = w.new(f"sub nsw i64 {n}, {start}")
        base = w.new(f"select i1 {whole}, i64 {first}, i64 0")
        count = w.new(f"select i1 {whole}, i64 {w.team}, i64 {left}")
        return w.new(f"add nsw i64 {base}, {w.lane}"), w.new(f"icmp slt i64 {w.lane}, {count}")

    def scanned(self, start: str) -> tuple[str, str, str]:
        """Of the block that starts after so many elements, combined from its first one to that of
        this lane; whether this lane has one; and where its result belongs."""
        w, nest, a = self.w, self.nest, self.a
        at, there = self._place(start)
        (store,) = nest.stores
        # What is not there is read where something is, and not used.
        last = w.new(f"sub nsw i64 {self.n}, 1")
        near = w.new(f"select i1 {there}, i64 {at}, i64 {last}")
        w.counters[nest.kept] = [near]
        w.enter()
        w.place(nest.kept + 1)
        x = types.convert(w, w.scalar(store.value), store.value.dtype, a.dtype)
        x = w.new(f"select i1 {there}, {a.type} {x}, {a.type} {a.neutral}")
        pointer = w.pointer(store.buffer, store.offset)
        w.leave()
        step = 1
        while step < w.team:
            x = a.combine(self._moved(x, step), x)
            step *= 2
        return x, there, pointer

    def end_of(self, x: str) -> str:
        """What all of a block is combined to."""
        end = "0" if self.nest.reverse else str(self.w.team - 1)
        return self.w.shuffled("idx", self.a.scalar, x, end)

    def carried_on(self, carried: Carried, end: str) -> Carried:
        """What comes before the next block."""
        w, a = self.w, self.a
        if not self.precise:
            return [a.combine(carried[0], end)]
        end, double = types.convert(w, end, a.dtype, float64), OpBuilder(w, float64)
        if self.two:
            return [*more(double, carried[0], carried[1], end)]
        return [double.instruction("fadd", carried[0], end)]

    def store(self, carried: Carried, x: str, there: str, pointer: str) -> None:
        """Write what comes before a block combined with what is in it."""
        w, a, before = self.w, self.a, carried[0]
        if self.precise:
            before = settled(OpBuilder(w, float64), *carried) if self.two else before
            before = types.convert(w, before, float64, a.dtype)
        dtype = self.nest.stores[0].buffer.type.dtype
        total = types.convert(w, a.combine(before, x), a.dtype, dtype)
        go, on = w.label(), w.label()
        w.branch(there, go, on)
        w.start_block(go)
        types.store(w, total, pointer, dtype)
        w.jump(on)
        w.start_block(on)

    def _moved(self, x: str, step: int) -> str:
        """What the lane `step` before this one has; nothing that changes anything, if none is."""
        w, a = self.w, self.a
        how = "down" if self.nest.reverse else "up"
        other = w.shuffled(how, a.scalar, x, str(step))
        if self.nest.reverse:
            inside = w.new(f"icmp slt i64 {w.lane}, {w.team - step}")
        else:
            inside = w.new(f"icmp sge i64 {w.lane}, {step}")
        return w.new(f"select i1 {inside}, {a.type} {other}, {a.type} {a.neutral}")
