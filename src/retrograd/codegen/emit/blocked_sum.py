"""Sums of floats as loops: the blocks, groups and pairs of `ops/numerics/summation.py`.

A loop of a nest that is summed over is a chain of its own: its terms are the totals of the loops
inside, or, of the innermost one, what is added up, a vector of lanes along a row. A loop that is
known to be no longer than a block is left as it is. What is longer becomes loops over parts, with
bounds that are computed while they run, around one over terms; the totals of batches wait in a
table for their partners, as the digits do of a binary number that counts the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, emit_loop, look, looks
from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PARTS, PRODUCTS, SUMS

LEVELS = 44  # of pairs, where it is not known how many batches there are
Combine = Callable[[str, str], str]


class Chains:
    """Writes the sums over the loops from `first` on of the nest at hand. `take` is what a pass
    through the innermost loop makes of the totals so far; `kinds` are their types, `neutral` what
    they begin with."""

    def __init__(
        self, w: KernelEmitter, take: Callable[[Carried], Carried], combine: Combine,
        kinds: list[str], neutral: str,
    ) -> None:  # fmt: skip
        self.w = w
        self.order = PRODUCTS if w.nest.is_column_contraction else SUMS
        self.take = take
        self.combine = combine
        self.kinds = kinds
        self.neutral = [neutral] * len(kinds)

    def summed(self, number: int, start: Carried) -> Carried:
        """`start` and what the loops from `number` on add up to."""
        w, size = self.w, self.w.nest.loops[number]
        known = None if isinstance(size, Dim) else -(-size // self._step(number))
        order = self.order
        if known is not None and known <= order.block:
            return emit_loop(w, number, self.terms(number), self.kinds, start)
        if known is not None and known <= order.batch:
            part = order.block if known <= order.group else order.group
            return self._one_by_one(number, part, w.bounds(number), start)
        assert not w.first, "what is taken up block by block is not so long"
        return self._in_pairs(number, w.bounds(number))

    def _step(self, number: int) -> int:
        """How many iterations of a loop one term is made of."""
        w = self.w
        return w.lanes * w.team if number == w.nest.vec else 1

    def terms(self, number: int) -> Callable[[Carried], Carried]:
        if number == len(self.w.nest.loops) - 1:
            return self.take
        return lambda totals: self._added(totals, self.summed(number + 1, self.neutral))

    def _added(self, totals: Carried, more: Carried) -> Carried:
        return [self.combine(x, y) for x, y in zip(totals, more, strict=True)]

    def _listed(self, values: Carried) -> list[tuple[str, str]]:
        return list(zip(self.kinds, values, strict=True))

    def _one_by_one(
        self, number: int, terms: int, bounds: tuple[str, str], start: Carried
    ) -> Carried:
        """The totals of parts of so many terms, one after the other, from the first iteration up to
        the last one."""
        w, (first, last) = self.w, bounds
        size = terms * self._step(number)
        loop = w.open_loop(last, size, first, self._listed(start))
        with self.within(number, loop.counter, size, last) as inside:
            if terms == self.order.block:
                if looks(w, number):
                    look(w)
                total = emit_loop(w, number, self.terms(number), self.kinds, self.neutral)
            else:
                total = self._one_by_one(number, terms // PARTS, inside, self.neutral)
        w.close_loop(loop, self._added(loop.values, total))
        return loop.values

    @contextmanager
    def within(self, number: int, first: str, size: int, last: str) -> Iterator[tuple[str, str]]:
        """The bounds of a loop while it goes through so much, from `first` on, up to `last`."""
        w, before = self.w, self.w.ranges.get(number)
        w.declare("i64 @llvm.smin.i64(i64, i64)")
        end = w.new(f"add nsw i64 {first}, {size}")
        end = w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 {last})")
        w.ranges[number] = first, end
        w.in_blocks.add(number)
        yield first, end
        w.in_blocks.discard(number)
        del w.ranges[number]
        if before is not None:
            w.ranges[number] = before

    def _in_pairs(self, number: int, bounds: tuple[str, str]) -> Carried:
        """The totals of batches, in pairs."""
        w, (first, last), n = self.w, bounds, len(self.kinds)
        size, length = self.order.batch * self._step(number), w.nest.loops[number]
        most = LEVELS if isinstance(length, Dim) else (-(-length // size)).bit_length()
        table = [w.reserve(f"[{most} x {kind}]") for kind in self.kinds]

        def place(t: int, level: str) -> str:
            return w.new(f"getelementptr {self.kinds[t]}, ptr {table[t]}, i64 {level}")

        def waiting(level: str) -> Carried:
            return [w.new(f"load {self.kinds[t]}, ptr {place(t, level)}") for t in range(n)]

        w.declare("i64 @llvm.cttz.i64(i64, i1)")
        w.declare("i64 @llvm.ctlz.i64(i64, i1)")
        carried = [("i64", "0"), *self._listed(self.neutral)]
        batches = w.open_loop(last, size, first, carried)
        count = batches.values[0]
        with self.within(number, batches.counter, size, last) as inside:
            total = self._one_by_one(number, self.order.group, inside, self.neutral)
        # The last one has nothing to wait for: all that waits is added to it.
        ended = w.new(f"icmp eq i64 {inside[1]}, {last}")
        digits = w.new(f"sub i64 64, {w.new(f'call i64 @llvm.ctlz.i64(i64 {count}, i1 false)')}")
        zeros = w.new(f"xor i64 {count}, -1")
        partners = w.new(f"call i64 @llvm.cttz.i64(i64 {zeros}, i1 false)")
        levels = w.new(f"select i1 {ended}, i64 {digits}, i64 {partners}")
        pairs = w.open_loop(levels, carried=self._listed(total))
        digit = w.new(f"and i64 {w.new(f'lshr i64 {count}, {pairs.counter}')}, 1")
        there = w.new(f"icmp ne i64 {digit}, 0")
        sums = self._added(waiting(pairs.counter), pairs.values)
        w.close_loop(pairs, [
            w.new(f"select i1 {there}, {kind} {x}, {kind} {y}")
            for kind, x, y in zip(self.kinds, sums, pairs.values, strict=True)
        ])  # fmt: skip
        wait, on = w.label(), w.label()
        w.branch(ended, on, wait)
        w.start_block(wait)
        for t, value in enumerate(pairs.values):
            w.line(f"store {self.kinds[t]} {value}, ptr {place(t, partners)}")
        w.jump(on)
        w.start_block(on)
        w.close_loop(batches, [w.new(f"add nsw i64 {count}, 1"), *pairs.values])
        return batches.values[1:]
