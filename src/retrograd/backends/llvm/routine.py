"""Routines: functions of LLVM that kernels call for one item of a batch.

A routine's text is written by a function of a `Routine`, a writer that knows how to call Fortran
and C, and how to go through arrays. It becomes a helper function of the module, one for each dtype:

    i64 @call.cholesky.d(ptr operands..., ptr result, ptr workspace, i64 sizes...)

It returns 0, or a number below 2**31 that says what is wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from retrograd.backends.llvm import types
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import DType, float32

CBLAS, LAPACK = "rg_cblas_", "rg_lapack_"  # what the names of OpenBLAS's functions begin with


class Routine(Writer):
    """Writes a routine's body. `data` are the operands and then the result, `sizes` the sizes."""

    def __init__(
        self, declare: Callable[[str], None], dtype: DType, data: int, sizes: int, key: str
    ) -> None:
        super().__init__(declare)
        self.dtype = dtype
        self.kind = types.memory_type(dtype)  # of an element
        self.letter = "s" if dtype is float32 else "d"  # in the names of LAPACK's functions
        self.data = [f"%p{i}" for i in range(data)]
        self.sizes = [f"%n{i}" for i in range(sizes)]
        self.work = "%work"
        self.key = key

    # -- arithmetic of sizes ------------------------------------------------------------------
    def add(self, a: str, b: str | int) -> str:
        return self.new(f"add i64 {a}, {b}")

    def sub(self, a: str, b: str | int) -> str:
        return self.new(f"sub i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.new(f"mul i64 {a}, {b}")

    def narrow(self, size: str | int) -> str:
        """A size as a C int."""
        return str(size) if str(size).isdigit() else self.new(f"trunc i64 {size} to i32")

    def least_one(self, size: str) -> str:
        """A size, at least 1: as leading sizes have to be, even of an empty matrix."""
        self.declare("i64 @llvm.smax.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)")

    # -- memory -------------------------------------------------------------------------------
    def at(self, pointer: str, index: str | int, kind: str = "") -> str:
        """The address of an element."""
        return self.new(f"getelementptr {kind or self.kind}, ptr {pointer}, i64 {index}")

    def get(self, pointer: str, index: str | int, kind: str = "") -> str:
        kind = kind or self.kind
        return self.new(f"load {kind}, ptr {self.at(pointer, index, kind)}")

    def put(self, value: str, pointer: str, index: str | int, kind: str = "") -> None:
        kind = kind or self.kind
        self.line(f"store {kind} {value}, ptr {self.at(pointer, index, kind)}")

    def number(self, value: float) -> str:
        return types.literal(value, self.dtype)

    # -- control ------------------------------------------------------------------------------
    @contextmanager
    def loop(self, end: str, start: str = "0") -> Iterator[str]:
        """A loop over a counter."""
        loop = self.open_loop(end, 1, start)
        yield loop.counter
        self.close_loop(loop)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is written inside happens where the condition holds."""
        go, on = self.label(), self.label()
        self.branch(condition, go, on)
        self.start_block(go)
        yield
        self.jump(on)
        self.start_block(on)

    def leave_if(self, condition: str, code: str) -> None:
        """Return with a code where the condition holds."""
        go, on = self.label(), self.label()
        self.branch(condition, go, on)
        self.start_block(go)
        self.line(f"ret i64 {code}")
        self.start_block(on)

    # -- other people's functions -------------------------------------------------------------
    def fortran(self, name: str, *arguments: str | int) -> None:
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

    def cblas(self, name: str, *arguments: str) -> None:
        """Call a function of CBLAS with typed arguments."""
        symbol = f"{CBLAS}{self.letter}{name}"
        self.declare(f"void @{symbol}({', '.join(a.split()[0] for a in arguments)})")
        self.line(f"call void @{symbol}({', '.join(arguments)})")


Emit = Callable[[Routine], None]


def helper(
    w: Writer, name: str, emit: Emit, dtype: DType, data: int, sizes: int, key: str = ""
) -> str:
    """The symbol of a routine's function, which becomes known to the module."""
    short = hashlib.sha256(key.encode()).hexdigest()[:16] if key else name
    symbol = f"call.{short}.{dtype.code}"
    for text in _definition(symbol, emit, dtype, data, sizes, key):
        w.declare(text)
    return symbol


@cache
def _definition(
    symbol: str, emit: Emit, dtype: DType, data: int, sizes: int, key: str
) -> Sequence[str]:
    known: dict[str, None] = {}
    w = Routine(lambda text: known.update({text: None}), dtype, data, sizes, key)
    emit(w)
    parameters = [f"ptr {p}" for p in (*w.data, w.work)] + [f"i64 {n}" for n in w.sizes]
    head = f"define internal i64 @{symbol}({', '.join(parameters)}) noinline nounwind"
    return (*known, f"{head} {{\n{w.text()}\n}}")
