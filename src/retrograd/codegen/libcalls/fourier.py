"""The fast Fourier transform as straight code for its stages (`passes/lowering/fft_stages.py`).

Numbers lie as pairs in the operand and in the result, and in between as real and imaginary parts
apart, so that every vector holds one or the other. Of rows, the lanes of a vector are neighbouring
places of one transform; of columns that lie side by side, they are columns, which go through all
stages together, some at a time, in memory that the cache holds.

Every number of a result is computed by the same operations in either way.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from retrograd.codegen import types
from retrograd.codegen.libcalls.builder import LibCallBuilder, routine
from retrograd.codegen.register_transpose import in_turn
from retrograd.passes.lowering.fft_stages import FftStage, stages

Number = tuple[str, str]  # registers of real and imaginary parts


@routine("fft", fixed=True)
def fft(w: LibCallBuilder) -> None:
    """The transform of n numbers, or of columns of n: operands are these and the table of roots;
    sizes: n, columns, whether the exponent is positive, whether the numbers are real, how many of
    the transform are kept."""
    n, columns, positive, of_real, kept = w.sizes
    assert isinstance(n, int)
    assert isinstance(columns, int)
    assert isinstance(kept, int)
    sign = 1 if positive else -1
    lanes = w.lanes * 4 // w.dtype.itemsize
    if columns == 1:
        TransformOfRows(w, n, lanes, sign, bool(of_real), kept).write()
    else:
        TransformOfColumns(w, n, min(lanes, columns), sign, bool(of_real), kept, columns).write()
    w.line("ret i64 0")


class Transform(ABC):
    """What rows and columns have in common."""

    def __init__(
        self, w: LibCallBuilder, n: int, lanes: int, sign: int, of_real: bool, kept: int,
        columns: int = 1,
    ) -> None:  # fmt: skip
        self.w, self.n, self.lanes, self.sign, self.columns = w, n, lanes, sign, columns
        self.of_real, self.kept = of_real, kept
        self.x, self.roots, self.y = w.data
        self.held = n * (lanes if columns > 1 else 1)  # real parts in a half of the workspace
        half = w.at(w.work, 2 * self.held)
        self.halves = [w.work, half]

    def kind(self, lanes: int) -> str:
        return types.vector(self.w.real, lanes)

    # -- arithmetic ---------------------------------------------------------------------------
    def arithmetic(self, op: str, a: str, b: str, lanes: int) -> str:
        return self.w.new(f"{op} {self.kind(lanes)} {a}, {b}")

    def add(self, a: Number, b: Number, lanes: int) -> Number:
        return (
            self.arithmetic("fadd", a[0], b[0], lanes),
            self.arithmetic("fadd", a[1], b[1], lanes),
        )

    def sub(self, a: Number, b: Number, lanes: int) -> Number:
        return (
            self.arithmetic("fsub", a[0], b[0], lanes),
            self.arithmetic("fsub", a[1], b[1], lanes),
        )

    def turned(self, a: Number, b: Number, lanes: int) -> tuple[Number, Number]:
        """`a + i sign b` and `a - i sign b`."""
        ops = ("fsub", "fadd") if self.sign > 0 else ("fadd", "fsub")
        first = (
            self.arithmetic(ops[0], a[0], b[1], lanes),
            self.arithmetic(ops[1], a[1], b[0], lanes),
        )
        second = (
            self.arithmetic(ops[1], a[0], b[1], lanes),
            self.arithmetic(ops[0], a[1], b[0], lanes),
        )
        return first, second

    def times(self, a: Number, root: Number, lanes: int) -> Number:
        """A product of complex numbers."""
        mul = [[self.arithmetic("fmul", p, q, lanes) for q in root] for p in a]
        return (
            self.arithmetic("fsub", mul[0][0], mul[1][1], lanes),
            self.arithmetic("fadd", mul[0][1], mul[1][0], lanes),
        )

    def scaled(self, a: Number, factor: float, lanes: int) -> Number:
        by = self.constant(factor, lanes)
        return (
            self.arithmetic("fmul", a[0], by, lanes),
            self.arithmetic("fmul", a[1], by, lanes),
        )

    def constant(self, value: float, lanes: int) -> str:
        x = self.w.real_number(value)
        return f"<{', '.join([f'{self.w.real} {x}'] * lanes)}>"

    # -- small transforms ---------------------------------------------------------------------
    def butterfly(self, x: Sequence[Number], lanes: int) -> list[Number]:
        """The transform of as many numbers as the radix says."""
        if len(x) == 2:
            return [self.add(x[0], x[1], lanes), self.sub(x[0], x[1], lanes)]
        if len(x) == 4:
            return self._of_four(x, lanes)
        if len(x) == 8:
            return self._of_eight(x, lanes)
        return self._of_odd(x, lanes)

    def _of_four(self, x: Sequence[Number], lanes: int) -> list[Number]:
        a, b = self.add(x[0], x[2], lanes), self.sub(x[0], x[2], lanes)
        c, d = self.add(x[1], x[3], lanes), self.sub(x[1], x[3], lanes)
        second, fourth = self.turned(b, d, lanes)
        return [self.add(a, c, lanes), second, self.sub(a, c, lanes), fourth]

    def _of_eight(self, x: Sequence[Number], lanes: int) -> list[Number]:
        even, odd = self._of_four(x[::2], lanes), self._of_four(x[1::2], lanes)
        half = math.sqrt(0.5)
        # (1 + i sign) / sqrt(2), and i sign times that.
        forth, _ = self.turned(odd[1], odd[1], lanes)
        first = self.scaled(forth, half, lanes)
        _, back = self.turned(odd[3], odd[3], lanes)
        third = self.scaled(back, half, lanes)  # the number with its sign turned
        found = [self.add(even[0], odd[0], lanes), self.add(even[1], first, lanes)]
        second, sixth = self.turned(even[2], odd[2], lanes)
        found += [second, self.sub(even[3], third, lanes)]
        found += [self.sub(even[0], odd[0], lanes), self.sub(even[1], first, lanes)]
        return [*found, sixth, self.add(even[3], third, lanes)]

    def _of_odd(self, x: Sequence[Number], lanes: int) -> list[Number]:
        """`y_k` and `y_(r-k)` are the sum and the difference of a sum of cosines and one of sines:
        of sums and differences of `x_j` and `x_(r-j)`."""
        r = len(x)
        pairs = [(x[j], x[r - j]) for j in range(1, r // 2 + 1)]
        sums = [self.add(a, b, lanes) for a, b in pairs]
        differences = [self.sub(a, b, lanes) for a, b in pairs]
        total = x[0]
        for a in sums:
            total = self.add(total, a, lanes)
        ends = []
        for k in range(1, r // 2 + 1):
            even, odd = x[0], None
            for j, (a, b) in enumerate(zip(sums, differences, strict=True), 1):
                angle = 2 * math.pi * (j * k % r) / r
                even = self.add(even, self.scaled(a, math.cos(angle), lanes), lanes)
                sine = self.scaled(b, math.sin(angle), lanes)
                odd = self.add(odd, sine, lanes) if odd else sine
            assert odd is not None
            ends.append(self.turned(even, odd, lanes))
        return [total, *[a for a, _ in ends], *[b for _, b in reversed(ends)]]

    # -- memory -------------------------------------------------------------------------------
    def read(self, half: str, place: str, lanes: int) -> Number:
        """Numbers from the workspace."""
        return self._piece(half, place, lanes), self._piece(
            half, self.w.new(f"add i64 {place}, {self.held}"), lanes
        )

    def keep(self, number: Number, half: str, place: str, lanes: int) -> None:
        self._put(number[0], half, place, lanes)
        self._put(number[1], half, self.w.new(f"add i64 {place}, {self.held}"), lanes)

    def read_operand(self, place: str, lanes: int) -> Number:
        """Numbers of the operand, from this one on."""
        if self.of_real:
            return self._piece(self.x, place, lanes), self.constant(0, lanes)
        both = self._piece(self.x, self.w.new(f"shl i64 {place}, 1"), 2 * lanes)
        kind = self.kind(2 * lanes)
        return (
            self._shuffled(kind, both, both, range(0, 2 * lanes, 2)),
            self._shuffled(kind, both, both, range(1, 2 * lanes, 2)),
        )

    def keep_pairs(self, number: Number, place: str, lanes: int, whole: bool = True) -> None:
        """Numbers of the result, from this one on; of those that are not `whole`, as many as there
        are."""
        order = [i + part * lanes for i in range(lanes) for part in (0, 1)]
        both = self._shuffled(self.kind(lanes), number[0], number[1], order)
        at = self.w.new(f"shl i64 {place}, 1")
        if whole:
            self._put(both, self.y, at, 2 * lanes)
        else:
            self._put_some(both, at, 2 * lanes)

    def _put_some(self, value: str, at: str, lanes: int) -> None:
        """Those parts of numbers that lie before the end of the result."""
        w, kind = self.w, self.kind(lanes)
        left = w.new(f"sub i64 {2 * self.kept}, {at}")
        one = w.new(f"insertelement <{lanes} x i64> poison, i64 {left}, i32 0")
        every = self._shuffled(f"<{lanes} x i64>", one, one, [0] * lanes)
        counted = ", ".join(f"i64 {i}" for i in range(lanes))
        mask = w.new(f"icmp slt <{lanes} x i64> <{counted}>, {every}")
        name = f"@llvm.masked.store.v{lanes}f{8 * w.dtype.itemsize}.p0"
        w.declare(f"void {name}({kind}, ptr, i32, <{lanes} x i1>)")
        place, align = w.at(self.y, at, w.real), w.dtype.itemsize
        w.line(f"call void {name}({kind} {value}, ptr {place}, i32 {align}, <{lanes} x i1> {mask})")

    def _piece(self, pointer: str, place: str, lanes: int) -> str:
        at = self.w.at(pointer, place, self.w.real)
        return self.w.new(f"load {self.kind(lanes)}, ptr {at}, align {self.w.dtype.itemsize}")

    def _put(self, value: str, pointer: str, place: str, lanes: int) -> None:
        at = self.w.at(pointer, place, self.w.real)
        self.w.line(f"store {self.kind(lanes)} {value}, ptr {at}, align {self.w.dtype.itemsize}")

    def _shuffled(self, kind: str, a: str, b: str, places: Sequence[int]) -> str:
        listed = ", ".join(f"i32 {i}" for i in places)
        return self.w.new(f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{listed}>")

    # -- roots --------------------------------------------------------------------------------
    def multiplied(
        self, y: list[Number], stage: FftStage, first: str, lanes: int, each: int
    ) -> list[Number]:
        """The numbers of a stage times their roots, those of `first` and the ones behind it, each
        for so many lanes."""
        if stage.behind == 1:
            return y
        found = [y[0]]
        for k in range(1, stage.radix):
            start = stage.start + (k - 1) * stage.behind
            root = (
                self._root(first, start, lanes, each),
                self._root(first, start + stage.roots, lanes, each),
            )
            found.append(self.times(y[k], root, lanes))
        return found

    def _root(self, first: str, start: int, lanes: int, each: int) -> str:
        count = lanes // each
        place = self.w.new(f"add i64 {first}, {start}")
        x = self._piece(self.roots, place, count)
        if each == 1:
            return x
        return self._shuffled(self.kind(count), x, x, [i // each for i in range(lanes)])

    @contextmanager
    def pieces(self, count: int, lanes: int) -> Iterator[str]:
        """The beginnings of pieces of so many lanes; the last one may overlap the one before."""
        w = self.w
        loop = w.open_loop(str(count), lanes)
        start = loop.counter
        if count % lanes:
            w.declare("i64 @llvm.smin.i64(i64, i64)")
            start = w.new(f"call i64 @llvm.smin.i64(i64 {start}, i64 {count - lanes})")
        yield start
        w.close_loop(loop)

    def write(self) -> None:
        """All stages, each from one half of the workspace to the other."""
        every = stages(self.n)
        for i, stage in enumerate(every):
            source = self.halves[(i - 1) % 2] if i else None
            target = self.halves[i % 2] if i < len(every) - 1 else None
            self.stage(stage, source, target)

    @abstractmethod
    def stage(self, stage: FftStage, source: str | None, target: str | None) -> None:
        """One stage, from a half of the workspace or the operand to a half or the result."""


class TransformOfRows(Transform):
    """One transform, whose numbers lie side by side."""

    def stage(self, stage: FftStage, source: str | None, target: str | None) -> None:
        w, before, places = self.w, stage.before, stage.places
        if stage.behind == 1 or (before < self.lanes and self.lanes % before == 0):
            lanes = min(self.lanes, places)
            with self.pieces(places, lanes) as at:
                if stage.behind == 1:
                    self._piece_of(stage, source, target, at, "0", at, lanes, lanes)
                else:
                    first = w.new(f"udiv i64 {at}, {before}")
                    self._side_by_side(stage, source, target, at, first, lanes)
            return
        lanes = min(self.lanes, before)
        with w.loop(stage.behind) as p:
            start = w.new(f"mul i64 {p}, {before}")
            end = w.new(f"mul i64 {p}, {before * stage.radix}")
            with self.pieces(before, lanes) as q:
                at, to = (w.new(f"add i64 {x}, {q}") for x in (start, end))
                self._piece_of(stage, source, target, at, p, to, lanes, lanes)

    def _numbers(self, stage: FftStage, source: str | None, at: str, lanes: int) -> list[Number]:
        found = []
        for k in range(stage.radix):
            place = self.w.new(f"add i64 {at}, {k * stage.places}")
            found.append(
                self.read(source, place, lanes) if source else self.read_operand(place, lanes)
            )
        return self.butterfly(found, lanes)

    def _piece_of(
        self, stage: FftStage, source: str | None, target: str | None, at: str, first: str, to: str,
        lanes: int, each: int,
    ) -> None:  # fmt: skip
        """A piece with the same roots in all lanes; its numbers lie `before` apart in the end."""
        y = self.multiplied(self._numbers(stage, source, at, lanes), stage, first, lanes, each)
        for k, number in enumerate(y):
            place = self.w.new(f"add i64 {to}, {k * stage.before}")
            if target:
                self.keep(number, target, place, lanes)
            elif k * stage.before < self.kept:
                self.keep_pairs(number, place, lanes, (k + 1) * stage.before <= self.kept)

    def _side_by_side(
        self,
        stage: FftStage,
        source: str | None,
        target: str | None,
        at: str,
        first: str,
        lanes: int,
    ) -> None:
        """A piece that holds several roots: what comes out of it lies in one piece, in another
        order."""
        w, y = self.w, self._numbers(stage, source, at, lanes)
        y = self.multiplied(y, stage, first, lanes, stage.before)
        parts = [
            in_turn(w, [number[i] for number in y], w.real, lanes, stage.before) for i in (0, 1)
        ]
        to = w.new(f"mul i64 {at}, {stage.radix}")
        assert target is not None
        for k, number in enumerate(zip(*parts, strict=True)):
            self.keep(number, target, self.w.new(f"add i64 {to}, {k * lanes}"), lanes)


class TransformOfColumns(Transform):
    """Transforms of columns; a row of them lies side by side."""

    def write(self) -> None:
        with self.pieces(self.columns, self.lanes) as self.column:
            super().write()

    def stage(self, stage: FftStage, source: str | None, target: str | None) -> None:
        w, lanes = self.w, self.lanes
        with w.loop(stage.behind) as p, w.loop(stage.before) as q:
            at = w.new(f"add i64 {w.new(f'mul i64 {p}, {stage.before}')}, {q}")
            to = w.new(f"add i64 {w.new(f'mul i64 {p}, {stage.before * stage.radix}')}, {q}")
            x = []
            for k in range(stage.radix):
                row = w.new(f"add i64 {at}, {k * stage.places}")
                x.append(
                    self.read(source, w.new(f"mul i64 {row}, {lanes}"), lanes)
                    if source
                    else self.read_operand(self._there(row), lanes)
                )
            y = self.multiplied(self.butterfly(x, lanes), stage, p, lanes, lanes)
            for k, number in enumerate(y):
                row = w.new(f"add i64 {to}, {k * stage.before}")
                if target:
                    self.keep(number, target, w.new(f"mul i64 {row}, {lanes}"), lanes)
                elif (k + 1) * stage.before <= self.kept:
                    self.keep_pairs(number, self._there(row), lanes)
                elif k * stage.before < self.kept:
                    with w.when(w.new(f"icmp slt i64 {row}, {self.kept}")):
                        self.keep_pairs(number, self._there(row), lanes)

    def _there(self, row: str) -> str:
        """Where the columns at hand begin in a row of the operand or the result."""
        return self.w.new(f"add i64 {self.w.new(f'mul i64 {row}, {self.columns}')}, {self.column}")
