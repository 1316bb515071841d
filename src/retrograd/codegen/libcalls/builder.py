"""Routines: functions of LLVM that kernels call for one item of a batch.

A routine's text is written by a function of a `LibCallBuilder`, a writer that knows how to call
Fortran and C, and how to go through arrays. It becomes a helper function of the module, one for
each dtype:

    i64 @call.cholesky.d(ptr operands..., ptr result, ptr workspace, i64 sizes...)

It returns 0, or a number below 2**31 that says what is wrong.

Most are written for complex numbers by the same functions (`element_type.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.libcalls.element_type import Elements
from retrograd.files import sha256
from retrograd.ir import DType
from retrograd.tuning import TUNING

CBLAS, LAPACK = "rg_cblas_", "rg_lapack_"  # what the names of OpenBLAS's functions begin with


Size = int | str  # a number, or the register that holds it
Step = Callable[[Size, list[str]], list[str]]


class LibCallBuilder(Elements):
    """Writes a routine's body. `data` are the operands and then the result, `sizes` the sizes:
    numbers where the routine is written for these alone."""

    def __init__(
        self,
        declare: Callable[[str], None],
        dtype: DType,
        data: int,
        sizes: Sequence[int | None],
        key: str,
        paired: bool = False,
        lanes: int = 16,
    ) -> None:
        super().__init__(declare, dtype, paired)
        self.data = [f"%p{i}" for i in range(data)]
        self.sizes: list[Size] = [f"%n{i}" if n is None else n for i, n in enumerate(sizes)]
        self.work = "%work"
        self.key = key
        self.lanes = lanes  # floats in a vector register

    # -- arithmetic of sizes ------------------------------------------------------------------
    def add(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return self.new(f"add i64 {a}, {b}")

    def sub(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.new(f"sub i64 {a}, {b}")

    def mul(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        return self.new(f"mul i64 {a}, {b}")

    def narrow(self, size: Size) -> str:
        """A size as a C int."""
        return str(size) if isinstance(size, int) else self.new(f"trunc i64 {size} to i32")

    def least_one(self, size: Size) -> Size:
        """A size, at least 1: as leading sizes have to be, even of an empty matrix."""
        if isinstance(size, int):
            return max(size, 1)
        self.declare("i64 @llvm.smax.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)")

    # -- memory -------------------------------------------------------------------------------
    def at(self, pointer: str, index: Size, kind: str = "") -> str:
        """The address of an element."""
        return self.new(f"getelementptr {kind or self.kind}, ptr {pointer}, i64 {index}")

    def get(self, pointer: str, index: Size, kind: str = "") -> str:
        kind = kind or self.kind
        return self.new(f"load {kind}, ptr {self.at(pointer, index, kind)}{self._aligned(kind)}")

    def put(self, value: str, pointer: str, index: Size, kind: str = "") -> None:
        kind = kind or self.kind
        place = self.at(pointer, index, kind)
        self.line(f"store {kind} {value}, ptr {place}{self._aligned(kind)}")

    def _aligned(self, kind: str) -> str:
        """Complex numbers begin wherever real ones may."""
        return f", align {self.dtype.itemsize}" if kind.startswith("<") else ""

    def words(self, count: Size) -> Size:
        """The words of workspace that so many elements take."""
        return self.mul(count, 2) if self.paired else count

    def work_in(self, *words: Size) -> list[str]:
        """The addresses of consecutive parts of the workspace, of so many words of 8 bytes each,
        and of what is behind them."""
        found = [self.work]
        for count in words:
            found.append(self.at(found[-1], count, "double"))
        return found

    def copy(self, to: str, source: str, count: Size) -> None:
        """Elements, one after the other."""
        size = self.mul(count, self.dtype.itemsize * (1 + self.paired))
        self.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def copy_turned(self, to: str, source: str, n: Size) -> None:
        """The transpose of a square matrix, by tiles that the cache holds."""
        self.declare("i64 @llvm.smin.i64(i64, i64)")

        def end(start: str) -> str:
            end = self.add(start, TUNING.transpose_tile_rows)
            return self.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 {n})")

        above = self.open_loop(str(n), TUNING.transpose_tile_rows)
        left = self.open_loop(str(n), TUNING.transpose_tile_rows)
        bottom, right = end(above.counter), end(left.counter)
        with self.loop(bottom, above.counter) as i, self.loop(right, left.counter) as j:
            x = self.get(source, self.add(self.mul(j, n), i))
            self.put(x, to, self.add(self.mul(i, n), j))
        self.close_loop(left)
        self.close_loop(above)

    def swap(self, pointer: str, i: Size, j: Size) -> None:
        """Two elements change places."""
        a, b = self.get(pointer, i), self.get(pointer, j)
        self.put(b, pointer, i)
        self.put(a, pointer, j)

    # -- control ------------------------------------------------------------------------------
    @contextmanager
    def loop(self, end: Size, start: Size = 0) -> Iterator[str]:
        """A loop over a counter."""
        loop = self.open_loop(str(end), 1, str(start))
        yield loop.counter
        self.close_loop(loop)

    def each(self, start: Size, end: Size, body: Callable[[Size], None]) -> None:
        """`body` for each number from `start` up to `end`: one after the other where both are
        known, else in a loop."""
        if isinstance(start, int) and isinstance(end, int):
            for i in range(start, end):
                body(i)
            return
        with self.loop(end, start) as counter:
            body(counter)

    def fold(
        self, start: Size, end: Size, values: Sequence[tuple[str, str]], step: Step
    ) -> list[str]:
        """The same with values, given with their types, that each step replaces."""
        if isinstance(start, int) and isinstance(end, int):
            found = [first for _, first in values]
            for i in range(start, end):
                found = step(i, found)
            return found
        loop = self.open_loop(str(end), 1, str(start), values)
        self.close_loop(loop, step(loop.counter, loop.values))
        return loop.values

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is written inside happens where the condition holds."""
        go, on = self.label(), self.label()
        self.branch(condition, go, on)
        self.start_block(go)
        yield
        self.jump(on)
        self.start_block(on)

    def either(
        self, condition: bool | str, yes: Callable[[], None], no: Callable[[], None]
    ) -> None:
        """One of two ends of a routine, each of which returns."""
        if isinstance(condition, bool):
            (yes if condition else no)()
            return
        first, second = self.label(), self.label()
        self.branch(condition, first, second)
        self.start_block(first)
        yes()
        self.start_block(second)
        no()

    @contextmanager
    def leaving(self, condition: str) -> Iterator[None]:
        """What is written inside is the last that happens where the condition holds."""
        go, on = self.label(), self.label()
        self.branch(condition, go, on)
        self.start_block(go)
        yield
        self.line("ret i64 0")
        self.start_block(on)

    def leave_if(self, condition: str, code: str) -> None:
        """Return with a code where the condition holds."""
        go, on = self.label(), self.label()
        self.branch(condition, go, on)
        self.start_block(go)
        self.line(f"ret i64 {code}")
        self.start_block(on)

    # -- other people's functions -------------------------------------------------------------
    def fortran(self, name: str, *arguments: Size) -> None:
        """Call a function of LAPACK. A letter stands for a character, `%x` for a size that is
        passed by address, `ptr %x` for an array."""
        pointers, letters = [], 0
        for a in arguments:
            if isinstance(a, str) and a.startswith("ptr "):
                pointers.append(a)
            elif isinstance(a, str) and a.isalpha():
                place = self.reserve("i8", 1)
                self.line(f"store i8 {ord(a)}, ptr {place}")
                pointers.append(f"ptr {place}")
                letters += 1
            else:
                place = self.reserve("i32", 4)
                self.line(f"store i32 {self.narrow(a)}, ptr {place}")
                pointers.append(f"ptr {place}")
        if self.paired:  # symmetric is hermitian there, orthogonal unitary
            name = {"sy": "he", "or": "un"}.get(name[:2], name[:2]) + name[2:]
        symbol = f"{LAPACK}{self.letter}{name}"
        # The lengths of characters come last, as gfortran wants them.
        kinds = ["ptr"] * len(pointers) + ["i64"] * letters
        self.declare(f"void @{symbol}({', '.join(kinds)})")
        self.line(f"call void @{symbol}({', '.join([*pointers, *['i64 1'] * letters])})")

    def status(self) -> str:
        """A place for the result code of a function of LAPACK."""
        return self.reserve("i32", 4)

    def code(self, status: str) -> str:
        """What is in such a place, without its sign."""
        self.declare("i32 @llvm.abs.i32(i32, i1)")
        found = self.new(f"load i32, ptr {status}")
        size = self.new(f"call i32 @llvm.abs.i32(i32 {found}, i1 false)")
        return self.new(f"zext i32 {size} to i64")

    def factor(self, value: float) -> str:
        """A constant as CBLAS takes factors: of complex numbers, their address."""
        if not self.paired:
            return f"{self.kind} {self.number(value)}"
        place = self.reserve(self.kind)
        self.line(f"store {self.kind} {self.number(value)}, ptr {place}")
        return f"ptr {place}"

    def cblas(self, name: str, *arguments: str) -> None:
        """Call a function of CBLAS with typed arguments."""
        symbol = f"{CBLAS}{self.letter}{name}"
        self.declare(f"void @{symbol}({', '.join(a.split()[0] for a in arguments)})")
        self.line(f"call void @{symbol}({', '.join(arguments)})")


Emit = Callable[[LibCallBuilder], None]
# What writes the body of a routine's helper function, by the name that
# `passes/lowering/libcall.py` gives it.
ROUTINES: dict[str, Emit] = {}
# Those written for their sizes alone, where these are small, and those that always are.
STRAIGHT: set[str] = set()
FIXED: set[str] = set()


def routine(name: str, *, straight: bool = False, fixed: bool = False) -> Callable[[Emit], Emit]:
    """A decorator that enters what writes the routine of a name."""

    def enter(emit: Emit) -> Emit:
        ROUTINES[name] = emit
        if straight:
            STRAIGHT.add(name)
        if fixed:
            FIXED.add(name)
        return emit

    return enter


def helper(
    w: FunctionBuilder, name: str, emit: Emit, dtype: DType, data: int, sizes: Sequence[int | None],
    key: str = "", paired: bool = False, lanes: int = 16,
) -> str:  # fmt: skip
    """The symbol of a routine's function, which becomes known to the module. Sizes that are given
    here are the only ones that it is for; if `paired`, it is for complex numbers."""
    short = sha256(key.encode()).hexdigest()[:16] if key else name
    known = (
        "".join([f".{'n' if n is None else n}" for n in sizes])
        if any(n is not None for n in sizes)
        else ""
    )
    symbol = f"call.{short}.{'c' if paired else ''}{dtype.code}{known}"
    for text in _definition(symbol, emit, dtype, data, tuple(sizes), key, paired, lanes):
        w.declare(text)
    return symbol


@cache
def _definition(
    symbol: str, emit: Emit, dtype: DType, data: int, sizes: tuple[int | None, ...], key: str,
    paired: bool, lanes: int,
) -> Sequence[str]:  # fmt: skip
    known: dict[str, None] = {}
    w = LibCallBuilder(lambda text: known.update({text: None}), dtype, data, sizes, key, paired,
                       lanes)  # fmt: skip
    emit(w)
    parameters = [f"ptr {p}" for p in (*w.data, w.work)]
    parameters += [f"i64 %n{i}" for i in range(len(sizes))]
    head = f"define internal i64 @{symbol}({', '.join(parameters)}) noinline nounwind"
    return (*known, f"{head} {{\n{w.text()}\n}}")
