"""Few rows times a large matrix: it is read once, as it lies in memory.

Loops that keep the sums of a few columns in registers read a few numbers of each row of the right
matrix, and rows are a memory page apart or more: memory is far slower then than for what lies side
by side. Here a piece of several rows is read along its columns before the next rows, and the sums
of these columns wait in the first-level cache. A sum takes its products in the same order, block by
block (`blocked_sum.py`), so its bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, at_step, emit_loop, look
from retrograd.codegen.emit.masked_rows import domain_of
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.loop_nest import ReductionNest, streams
from retrograd.schedule.ssa import SSAOp
from retrograd.tuning import TUNING

Take = Callable[[Carried], Carried]
Finish = Callable[[str, int], None]


def is_streamed(w: KernelEmitter, nest: ReductionNest) -> bool:
    """Whether the sums of a nest are taken this way: its right matrix is large, and rows of what is
    read lie side by side."""
    if w.light or w.lanes == 1 or w.team > 1 or w.turning >= 0 or w.first or not streams(nest):
        return False
    loads = [v for v in w.uses if v.op is SSAOp.LOAD and w.varies(v)]
    return all(w.strides[v.args[0]] == 1 for v in loads) and domain_of(w) is None


class StreamedSums:
    """Writes the sums of products of a nest for all columns. `take` is what one more product makes
    of totals of the type `kind`, of which `scalar` is an element; `combine` adds two of them."""

    def __init__(
        self, w: KernelEmitter, nest: ReductionNest, take: Take, combine: Callable[[str, str], str],
    ) -> None:  # fmt: skip
        self.w, self.take, self.combine = w, take, combine
        self.vec, self.along = nest.vec, len(nest.loops) - 1
        self.length: int = nest.loops[-1]  # type: ignore[assignment]  # `streams` has looked
        self.several = self.length > PRODUCTS.block

    def write(self, scalar: str, kind: Callable[[], str], neutral: Callable[[], str],
              finish: Finish) -> None:  # fmt: skip
        """All columns, a piece at a time; `finish` is given the totals of each vector of them."""
        w = self.w
        self.kind, self.neutral, self.scalar = kind, neutral, scalar
        columns = max(TUNING.streamed_columns // w.copies, w.lanes)
        self.sums, self.totals = (
            [w.reserve(f"[{columns} x {scalar}]") for _ in range(w.copies)] for _ in range(2)
        )
        start, end = w.bounds(self.vec)
        before = w.ranges.get(self.vec)
        piece = w.open_loop(end, columns, start)
        self.first = piece.counter
        w.declare("i64 @llvm.smin.i64(i64, i64)")
        last = w.new(f"add nsw i64 {piece.counter}, {columns}")
        last = w.new(f"call i64 @llvm.smin.i64(i64 {last}, i64 {end})")
        w.ranges[self.vec] = piece.counter, last
        self._piece(finish)
        del w.ranges[self.vec]
        if before is not None:
            w.ranges[self.vec] = before
        w.close_loop(piece)

    def _piece(self, finish: Finish) -> None:
        w, length = self.w, self.length
        found = self.totals if self.several else self.sums
        self._each(found, lambda totals: [self.neutral() for _ in totals])
        if self.several:
            block = w.open_loop(str(length), PRODUCTS.block)
            if w.polls:
                look(w)
            end = w.new(f"add nsw i64 {block.counter}, {PRODUCTS.block}")
            end = w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 {length})")
            self._each(self.sums, lambda totals: [self.neutral() for _ in totals])
            self._block(block.counter, end)
            self._each(self.totals, self._joined)
            w.close_loop(block)
        else:
            self._block("0", str(length))

        def inside(_: Carried) -> Carried:
            for t, total in enumerate(self._read(found)):
                finish(total, t)
            return []

        emit_loop(w, self.vec, inside)

    def _block(self, first: str, last: str) -> None:
        """Add up the products of a block, those of several rows in each pass along the columns."""
        w = self.w
        at_once = max(TUNING.streamed_rows // w.copies, 2)
        whole = w.new(f"sub nsw i64 {last}, {first}")
        whole = w.new(f"and i64 {whole}, {-at_once}")
        whole = w.new(f"add nsw i64 {first}, {whole}")
        for start, end, rows in ((first, whole, at_once), (whole, last, 1)):
            loop = w.open_loop(end, rows, start)
            row = loop.counter

            def take(totals: Carried, row: str = row, rows: int = rows) -> Carried:
                for k in range(rows):
                    at = w.new(f"add nsw i64 {row}, {k}") if k else row
                    totals = at_step(w, self.along, at, self.take, totals)
                return totals

            self._each(self.sums, take)
            w.close_loop(loop)

    def _each(self, places: list[str], change: Take) -> None:
        """Change what is at the places of each vector of columns."""
        w = self.w

        def inside(_: Carried) -> Carried:
            for x, place in zip(change(self._read(places)), places, strict=True):
                w.line(f"store {self.kind()} {x}, ptr {self._at(place)}, align 4")
            return []

        emit_loop(w, self.vec, inside)

    def _joined(self, totals: Carried) -> Carried:
        return [self.combine(x, y) for x, y in zip(totals, self._read(self.sums), strict=True)]

    def _read(self, places: list[str]) -> Carried:
        kind = self.kind()
        return [self.w.new(f"load {kind}, ptr {self._at(p)}, align 4") for p in places]

    def _at(self, place: str) -> str:
        """Where the totals of the columns at hand are."""
        w = self.w
        column = w.new(f"sub nsw i64 {w.counters[self.vec][0]}, {self.first}")
        return w.new(f"getelementptr {self.scalar}, ptr {place}, i64 {column}")
