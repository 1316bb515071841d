"""The rows of kernels: how their nests divide into parts that touch nothing but their own share.

Of a buffer of `n` elements that kernels touch row by row, row `r` of `N` has the elements from
`r * n/N` to `(r+1) * n/N`. A nest goes through its rows in its outermost loop, or in several outer
loops counted as one (a `RowSlice`). In the latter case a block of rows must not reach beyond one
iteration of the loops before the last of them. Rows between which that holds are an *element*:
those of one head of attention, say.

A sum over rows cannot be cut into rows of its result, but into terms: blocks of an element, one
after the other, each add theirs to what is there. These begin where blocks of the sum do, see
`ops/numerics/summation.py`, so that is the order in which it would be taken in one go, and its bits
are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import gcd, prod

from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS, SUMS
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import ColumnReduction, GemmNest, LoopNest
from retrograd.schedule.tiling.affine import RowSlice, Touch, loops_of, touches
from retrograd.tuning import TUNING


class Rows:
    """What a kernel touches by the iterations of its outermost loops; `count` is 0 where they do
    not divide what it does."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.reads: list[tuple[LoopNest, Touch]] = []
        self.writes: list[tuple[LoopNest, Touch]] = []
        self.count: int | Dim = 0
        if any(nest.outer == 0 for nest in kernel.nests):
            return
        for nest in kernel.nests:
            reads, writes = touches(nest)
            self.reads += [(nest, t) for t in reads]
            self.writes += [(nest, t) for t in writes]
        if all(_by_outer(nest, t) for nest, t in self.writes):
            self.count = functools.reduce(common, (nest.outer for nest in kernel.nests))

    def follows(self, written: set[Buffer]) -> bool:
        """Whether it reads of these buffers only the row at hand."""
        return all(_by_outer(nest, t) for nest, t in self.reads if t.buffer in written)

    @property
    def row_by_row(self) -> list[Buffer]:
        """The buffers of which its nests read only the row at hand."""
        return [t.buffer for nest, t in self.reads if _by_outer(nest, t)]

    @property
    def finest(self) -> int:
        """The number of iterations of all loops that may run in any order, 0 where that is not
        known."""
        found = 0
        for nest in self.kernel.nests:
            loops = loops_of(nest)
            kept = loops if isinstance(nest, GemmNest) else loops[: nest.kept or 1]
            if nest.outer == 0 or any(isinstance(d, Dim) for d in kept):
                return 0
            found = gcd(found, prod(d for d in kept if isinstance(d, int)))
        return found

    def divides(self, rows: int, written: set[Buffer]) -> bool:
        """Whether so many rows write their own shares only, and read nothing else of these
        buffers."""
        listed = self.writes + [(nest, t) for nest, t in self.reads if t.buffer in written]
        for nest, touch in listed:
            cut = cut_of(nest, rows)
            if cut is None or not touch.within(loops_of(nest), cut, share(touch.buffer, rows)):
                return False
        return True


class Sums:
    """A kernel as sums over rows, if that is `possible`."""

    def __init__(self, kernel: Kernel) -> None:
        self.nest = kernel.nests[0]
        self.possible = len(kernel.nests) == 1 and _adds_terms(self.nest)
        self.reads: list[Touch] = []
        self.writes: list[Touch] = []
        if self.possible:
            self.reads, self.writes = touches(self.nest, summed=True)

    def divides(self, rows: int, written: set[Buffer]) -> bool:
        """Whether the terms divide into so many rows, which read of these buffers nothing but their
        own shares."""
        if not self.possible:
            return False
        cut, loops = sum_cut(self.nest, rows), loops_of(self.nest, summed=True)
        if cut is None or loops[cut.loop] == cut.times:  # all terms are one row
            return False
        if (
            cut.times != 1 and _terms(self.nest) > PRODUCTS.group
        ):  # rows need not begin where groups do
            return False
        elements = prod(_numbers(loops, cut.outer))
        if elements < TUNING.summing_elements:
            return False
        whole = RowSlice(cut.outer[:-1], cut.outer[-1])
        if not all(t.within(loops, whole, share(t.buffer, elements)) for t in self.writes):
            return False
        own = [t for t in self.reads if t.buffer in written]
        return all(t.within(loops, cut, share(t.buffer, rows)) for t in own)

    def counts(self) -> list[int]:
        """Numbers of rows that the terms may be, from the elements that loops make."""
        if not self.possible:
            return []
        loops, kept = loops_of(self.nest, summed=True), _kept(self.nest)
        found = [prod(_numbers(loops, (*range(j), kept))) for j in range(1, kept + 1)]
        return [n for n in found if n]


def _adds_terms(nest: LoopNest) -> bool:
    """Whether a nest can take up its sums where it left them, to the bit."""
    loops = loops_of(nest, summed=True)
    if any(isinstance(d, Dim) for d in loops):
        return False
    if isinstance(nest, GemmNest):
        return nest.spread is None and nest.windows is None and not nest.packed
    return (
        isinstance(nest, ColumnReduction)
        and nest.is_sum
        and nest.kept == len(loops) - 1
        and nest.accumulator is nest.stores[0].buffer.type.dtype
        and _terms(nest) <= SUMS.group  # the blocks of which are added to what is there
    )


def _terms(nest: LoopNest) -> int:
    size = loops_of(nest, summed=True)[_kept(nest)]
    assert isinstance(size, int)
    return size


def _kept(nest: LoopNest) -> int:
    return len(nest.loops) if isinstance(nest, GemmNest) else nest.kept


def _numbers(loops: Sequence[int | Dim], which: Sequence[int]) -> list[int]:
    return [d for d in (loops[k] for k in which) if isinstance(d, int)]


def cut_of(nest: LoopNest, rows: int | Dim) -> RowSlice | None:
    """How a nest goes through so many rows, with as few loops as possible."""
    loops, length = loops_of(nest), nest.outer
    if isinstance(rows, Dim) or isinstance(length, Dim) or length % rows == 0:
        return RowSlice((), 0, length // rows) if length != 0 else None
    total: int = length
    for k in range(1, _kept(nest) + isinstance(nest, GemmNest)):
        size = loops[k]
        if isinstance(size, Dim):
            return None
        total *= size
        if total % rows == 0:
            return RowSlice(tuple(range(k)), k, total // rows)
    return None


def sum_cut(nest: LoopNest, rows: int) -> RowSlice | None:
    """How the terms of a nest's sums are so many rows."""
    loops, kept = loops_of(nest, summed=True), _kept(nest)
    for j in range(1, kept + 1):
        total = prod(_numbers(loops, (*range(j), kept)))
        if total and total % rows == 0:
            return RowSlice(tuple(range(j)), kept, total // rows)
    return None


def element(kernels: Sequence[Kernel], summing: Sequence[Kernel], rows: int) -> int:
    """Of so many rows, how many follow one another in one element of all these kernels; 0 where
    they do not agree."""
    found, chain = rows, 0
    adding = {id(k) for k in summing}
    for kernel in kernels:
        summed = id(kernel) in adding
        for nest in kernel.nests:
            cut = sum_cut(nest, rows) if summed else cut_of(nest, rows)
            if cut is None:
                return 0
            length = loops_of(nest, summed)[cut.loop]
            if not cut.outer or isinstance(length, Dim) or isinstance(cut.times, Dim):
                continue
            if length % cut.times != 0:
                return 0
            found = gcd(found, length // cut.times)
            if summed:
                if chain not in (0, length // cut.times):
                    return 0
                chain = length // cut.times
    return found if chain in (0, found) else 0


def _by_outer(nest: LoopNest, touch: Touch) -> bool:
    length = nest.outer
    return touch.within(loops_of(nest), RowSlice((), 0), share(touch.buffer, length))


def share(buffer: Buffer, rows: int | Dim) -> int | Dim:
    """The elements of a buffer in each row, -1 where that is not a number."""
    size = buffer.type.size
    return size // rows if size % rows == 0 else -1


def common(a: int | Dim, b: int | Dim) -> int | Dim:
    """The largest number known to divide both; 0 if none is known."""
    if 0 in (a, b):
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return gcd(a, b)
    for x, y in ((a, b), (b, a)):
        if y == x or (y != 0 and isinstance(y, Dim) and x % y == 0):
            return y
    return 0
