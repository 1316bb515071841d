"""Reductions. A thread, or a team along rows, for each result; where these are few and sums long,
for each block of each sum, whose totals are then added up, in the same order.

The order is that of `ops/numerics/summation.py`: terms in blocks, blocks in groups, groups in
batches, batches in pairs. Blocks are independent of one another, and so are groups.
"""

from __future__ import annotations

from collections.abc import Iterable

from retrograd.codegen.emit.blocked_sum import LEVELS, Chains
from retrograd.codegen.emit.loops import Carried, emit_loop, emit_loops
from retrograd.codegen.emit.nest_emitters import NESTS
from retrograd.codegen.emit.reduce import Accumulation, combined_by, finish
from retrograd.ir import Dim, evaluate, product
from retrograd.nvptx.emit.launch import Argument, Launch, Launches, Scratch, Sizes, Word
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.row_scan import team_of
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.ops import elementwise as el
from retrograd.ops.numerics.summation import PARTS, PRODUCTS, SUMS
from retrograd.schedule.loop_nest import ReductionNest, RowReduction
from retrograd.tuning import TUNING


def reduction(module: DeviceModule, nest: ReductionNest) -> list[Launches]:
    """Whole sums, each by a thread or a team; or their blocks first."""
    parts = _ReductionParts(nest) if _has_blocks(nest) else None
    if parts is None or (parts.is_known and not parts.pays({})):
        return [_whole(module, nest)]
    in_parts = parts.launches(module)
    if parts.is_known:
        return [in_parts]
    whole = _whole(module, nest)

    def launches(sizes: Sizes) -> Iterable[Launch]:
        return in_parts(sizes) if parts.pays(sizes) else whole(sizes)

    return [launches]


def _whole(module: DeviceModule, nest: ReductionNest) -> Launches:
    w = module.emitter()
    domain = nest.loops[: nest.kept]
    team = team_of(nest) if isinstance(nest, RowReduction) else 1
    w.fixed = dict(enumerate(w.spread(domain, team)))
    NESTS[type(nest)](w, nest)
    return module.over(w, domain, team)


def _has_blocks(nest: ReductionNest) -> bool:
    """Whether blocks of the outermost loop that is reduced may be taken by themselves: of sums, and
    where the order makes no difference."""
    loops = nest.loops[nest.kept :]
    if not loops or (len(loops) > 1 and nest.is_column_contraction):
        return False
    if isinstance(loops[0], int) and loops[0] <= SUMS.block:
        return False
    assert nest.accumulator is not None
    floats = nest.accumulator.is_float
    return not (floats and combined_by(nest) is el.mul)


class _ReductionParts:
    """The kernels of a long reduction: of blocks, of groups of them, and of what is left."""

    def __init__(self, nest: ReductionNest) -> None:
        self.nest = nest
        self.domain = nest.loops[: nest.kept]
        self.team = team_of(nest) if isinstance(nest, RowReduction) else 1
        self.length = nest.loops[nest.kept]
        self.is_known = not any(isinstance(n, Dim) for n in (*self.domain, self.length))
        # How many iterations of its outermost loop a block of a sum has.
        order = PRODUCTS if nest.is_column_contraction else SUMS
        self.size = order.block * (self.team if nest.kept == nest.vec else 1)
        self.blocks = Scratch(lambda sizes: 8 * self._many(sizes, self.count(sizes)))
        self.groups = Scratch(lambda sizes: 8 * self._many(sizes, -(-self.count(sizes) // PARTS)))

    def count(self, sizes: Sizes) -> int:
        """The blocks of a sum."""
        return -(-evaluate(self.length, sizes) // self.size)

    def _many(self, sizes: Sizes, parts: int) -> int:
        return evaluate(product(self.domain), sizes) * parts * self.team

    def pays(self, sizes: Sizes) -> bool:
        """Whether there are several blocks, and too few results to keep a device busy."""
        return self.count(sizes) > 1 and 0 < self._many(sizes, 1) < TUNING.cuda_busy_threads

    def launches(self, module: DeviceModule) -> Launches:
        blocks, own = self._of_blocks(module)
        groups, both = self._of_groups(module)
        results, totals = self._of_results(module)

        def launches(sizes: Sizes) -> list[Launch]:
            count, last = self.count(sizes), totals
            found = [Launch(blocks, own, self._many(sizes, count), {"parts": count})]
            if count > PARTS:
                fewer = -(-count // PARTS)
                words = {"parts": count, "groups": fewer}
                found.append(Launch(groups, both, self._many(sizes, fewer), words))
                last = tuple(self.groups if p is self.blocks else p for p in last)
                count = fewer
            return [*found, Launch(results, last, self._many(sizes, 1), {"parts": count})]

        return launches

    # -- kernels ------------------------------------------------------------------------------
    def _begin(self, w: ThreadEmitter, more: list[str]) -> list[str]:
        """What a thread is there for: the counters of kept loops are set, those of `more` given."""
        index = w.spread([*self.domain, *more], self.team)
        w.fixed = dict(enumerate(index[: len(self.domain)]))
        w.begin(self.nest)
        return index

    def _accumulation(self, w: ThreadEmitter) -> Accumulation:
        assert self.nest.accumulator is not None
        return Accumulation(w, self.nest, self.nest.accumulator)

    def _place(self, w: ThreadEmitter, scratch: Scratch, index: list[str], many: str) -> str:
        """Where the total of a part is: those of one result and lane are a team's width apart."""
        at = "0"
        for size, i in zip([*map(w.size, self.domain), many], index, strict=True):
            at = i if at == "0" else w.new(f"add i64 {w.times(at, size)}, {i}")
        if self.team > 1:
            at = w.new(f"add i64 {w.times(at, str(self.team))}, {w.lane}")
        return w.new(f"getelementptr i64, ptr {w.parameter(scratch)}, i64 {at}")

    def _of_blocks(self, module: DeviceModule) -> tuple[str, tuple[Argument, ...]]:
        w, nest, number = module.emitter(), self.nest, self.nest.kept
        parts = w.parameter(Word("parts"))
        index = self._begin(w, [parts])
        a = self._accumulation(w)
        (store,) = nest.stores

        def take(totals: Carried) -> Carried:
            return [a.take(totals[0], store.value, 0)]

        chains = Chains(w, take, a.combine, [a.type], a.neutral)

        def block(_: Carried) -> Carried:
            first = w.times(index[-1], str(self.size))
            with chains.within(number, first, self.size, w.size(self.length)):
                (total,) = emit_loop(w, number, chains.terms(number), [a.type], [a.neutral])
            w.line(f"store {a.type} {total}, ptr {self._place(w, self.blocks, index, parts)}")
            return []

        emit_loops(w, 0, nest.kept, block)
        return module.kernel(w)

    def _added(
        self, w: ThreadEmitter, a: Accumulation, scratch: Scratch, index: list[str], many: str,
        bounds: tuple[str, str],
    ) -> str:  # fmt: skip
        """Totals of parts one after the other."""
        first, last = bounds
        loop = w.open_loop(last, 1, first, [(a.type, a.neutral)])
        place = self._place(w, scratch, [*index, loop.counter], many)
        part = w.new(f"load {a.type}, ptr {place}")
        w.close_loop(loop, [a.combine(loop.values[0], part)])
        return loop.values[0]

    def _of_groups(self, module: DeviceModule) -> tuple[str, tuple[Argument, ...]]:
        w = module.emitter()
        parts, groups = (w.parameter(Word(name)) for name in ("parts", "groups"))
        *index, group = self._begin(w, [groups])
        a = self._accumulation(w)
        bounds = self._bounds(w, w.times(group, str(PARTS)), parts)
        total = self._added(w, a, self.blocks, index, parts, bounds)
        place = self._place(w, self.groups, [*index, group], groups)
        w.line(f"store {a.type} {total}, ptr {place}")
        return module.kernel(w)

    def _bounds(self, w: ThreadEmitter, first: str, last: str) -> tuple[str, str]:
        """So many parts from the first one on, as far as there are any."""
        w.declare("i64 @llvm.smin.i64(i64, i64)")
        end = w.new(f"add i64 {first}, {PARTS}")
        return first, w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 {last})")

    def _of_results(self, module: DeviceModule) -> tuple[str, tuple[Argument, ...]]:
        w, nest = module.emitter(), self.nest
        parts = w.parameter(Word("parts"))
        index = self._begin(w, [])
        a = self._accumulation(w)
        (store,) = nest.stores

        def result(_: Carried) -> Carried:
            total = self._in_pairs(w, a, index, parts)
            if isinstance(nest, RowReduction):
                (total,) = a.trees([total])
            finish(w, nest, a, store, total, 0)
            return []

        emit_loops(w, 0, nest.kept, result)
        return module.kernel(w)

    def _in_pairs(self, w: ThreadEmitter, a: Accumulation, index: list[str], parts: str) -> str:
        """The totals of batches in pairs: those that wait for a partner are in a table, as the
        digits of the number of batches."""
        kind = a.type
        table = w.reserve(f"[{LEVELS} x {kind}]")
        loop = w.open_loop(parts, PARTS, "0", [("i64", "0"), (kind, a.neutral)])
        count = loop.values[0]
        bounds = self._bounds(w, loop.counter, parts)
        total = self._added(w, a, self.blocks, index, parts, bounds)
        ended = w.new(f"icmp eq i64 {bounds[1]}, {parts}")

        # A digit that is 1 is a total that waits; the last one is added to all of them.
        def more(values: list[str]) -> str:
            digit, left, _ = values
            del digit
            odd = w.new(f"icmp ne i64 {w.new(f'and i64 {left}, 1')}, 0")
            some = w.new(f"and i1 {ended}, {w.new(f'icmp ne i64 {left}, 0')}")
            return w.new(f"or i1 {odd}, {some}")

        def joined(values: list[str]) -> list[str]:
            digit, left, so_far = values
            waits = w.new(f"getelementptr {kind}, ptr {table}, i64 {digit}")
            there = w.new(f"icmp ne i64 {w.new(f'and i64 {left}, 1')}, 0")
            (new,) = w.either_of(
                there, kind,
                lambda: [a.combine(w.new(f"load {kind}, ptr {waits}"), so_far)],
                lambda: [so_far],
            )  # fmt: skip
            return [w.new(f"add i64 {digit}, 1"), w.new(f"lshr i64 {left}, 1"), new]

        digit, _, total = w.repeat_while(
            [("i64", "0"), ("i64", count), (kind, total)], more, joined
        )
        w.line(
            f"store {kind} {total}, ptr {w.new(f'getelementptr {kind}, ptr {table}, i64 {digit}')}"
        )
        w.close_loop(loop, [w.new(f"add i64 {count}, 1"), total])
        return loop.values[1]
