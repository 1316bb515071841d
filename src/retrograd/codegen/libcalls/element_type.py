"""Arithmetic of elements that are real numbers, or complex ones.

What is written with these methods serves both. The parts of a complex number lie side by side in
memory; in a register it is a vector of two lanes. LAPACK's functions for it have other letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.ir import DType, float32


class Elements(FunctionBuilder):
    """A writer that knows what its elements are. Arguments and results are registers."""

    def __init__(self, declare: Callable[[str], None], dtype: DType, paired: bool) -> None:
        super().__init__(declare)
        self.dtype = dtype  # of real numbers, and of the parts of complex ones
        self.real = types.memory_type(dtype)
        self.paired = paired  # whether elements are complex numbers

    @property
    def kind(self) -> str:
        """The type of an element."""
        return types.widened(self.real, 2) if self.paired else self.real

    @property
    def letter(self) -> str:
        """What the names of LAPACK's functions begin with."""
        return (
            ("c" if self.paired else "s") if self.dtype is float32 else "z" if self.paired else "d"
        )

    @contextmanager
    def pairs(self) -> Iterator[None]:
        """What is written inside is about complex numbers."""
        before, self.paired = self.paired, True
        yield
        self.paired = before

    def number(self, value: float) -> str:
        """A constant element."""
        x = types.literal(value, self.dtype)
        return (
            f"<{self.real} {x}, {self.real} {types.literal(0, self.dtype)}>" if self.paired else x
        )

    def real_number(self, value: float) -> str:
        return types.literal(value, self.dtype)

    def plus(self, a: str, b: str) -> str:
        return self.new(f"fadd {self.kind} {a}, {b}")

    def minus(self, a: str, b: str) -> str:
        return self.new(f"fsub {self.kind} {a}, {b}")

    def times(self, a: str, b: str) -> str:
        if not self.paired:
            return self.new(f"fmul {self.kind} {a}, {b}")
        (p, q), (r, s) = self.parts(a), self.parts(b)
        first = self.on_reals("fsub", self.on_reals("fmul", p, r), self.on_reals("fmul", q, s))
        second = self.on_reals("fadd", self.on_reals("fmul", p, s), self.on_reals("fmul", q, r))
        return self.joined(first, second)

    def over(self, a: str, b: str) -> str:
        """The quotient; of complex numbers scaled by the larger part of the divisor (R. L. Smith,
        "Algorithm 116: Complex division", 1962)."""
        if not self.paired:
            return self.new(f"fdiv {self.kind} {a}, {b}")
        (x, y), (c, d) = self.parts(a), self.parts(b)
        less = self.new(f"fcmp olt {self.real} {self._magnitude(c)}, {self._magnitude(d)}")
        large, small = self.select(less, d, c), self.select(less, c, d)
        ratio = self.on_reals("fdiv", small, large)
        below = self.on_reals("fadd", large, self.on_reals("fmul", small, ratio))
        u, v = self.select(less, y, x), self.select(less, x, y)
        first = self.on_reals("fadd", u, self.on_reals("fmul", v, ratio))
        one = self.on_reals("fsub", y, self.on_reals("fmul", x, ratio))
        other = self.on_reals("fsub", self.on_reals("fmul", y, ratio), x)
        second = self.select(less, other, one)
        return self.joined(
            self.on_reals("fdiv", first, below), self.on_reals("fdiv", second, below)
        )

    def scaled(self, x: str, factor: str) -> str:
        """An element times a real number."""
        return self.new(f"fmul {self.kind} {x}, {self._spread(factor)}")

    def shrunk(self, x: str, divisor: str) -> str:
        """An element divided by a real number."""
        return self.new(f"fdiv {self.kind} {x}, {self._spread(divisor)}")

    def _spread(self, x: str) -> str:
        return types.broadcast(self, x, self.dtype, 2) if self.paired else x

    def conj(self, x: str) -> str:
        if not self.paired:
            return x
        a, b = self.parts(x)
        return self.joined(a, self.new(f"fneg {self.real} {b}"))

    def parts(self, x: str) -> tuple[str, str]:
        """The real and the imaginary part of a complex element."""
        a, b = (self.new(f"extractelement {self.kind} {x}, i64 {i}") for i in (0, 1))
        return a, b

    def real_part(self, x: str) -> str:
        return self.new(f"extractelement {self.kind} {x}, i64 0") if self.paired else x

    def joined(self, a: str, b: str) -> str:
        """A complex element of its parts."""
        half = self.new(f"insertelement {self.kind} poison, {self.real} {a}, i64 0")
        return self.new(f"insertelement {self.kind} {half}, {self.real} {b}, i64 1")

    def from_real(self, x: str) -> str:
        """A real number as an element."""
        return self.joined(x, self.real_number(0)) if self.paired else x

    def from_size(self, size: int | str) -> str:
        """A size as an element."""
        return self.from_real(self.new(f"uitofp i64 {size} to {self.real}"))

    def to_row(self, x: str, n: int | str) -> str:
        """The row, of n, that such an element stands for; the first one for what is none of them:
        factors may be made up, and must not lead outside of memory."""
        row, end = self.real_part(x), self.new(f"uitofp i64 {n} to {self.real}")
        low = self.new(f"fcmp oge {self.real} {row}, {self.real_number(0)}")
        high = self.new(f"fcmp olt {self.real} {row}, {end}")
        row = self.select(self.new(f"and i1 {low}, {high}"), row, self.real_number(0))
        return self.new(f"fptoui {self.real} {row} to i64")

    def on_reals(self, operation: str, a: str, b: str) -> str:
        return self.new(f"{operation} {self.real} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        """One of two real numbers."""
        return self.new(f"select i1 {condition}, {self.real} {a}, {self.real} {b}")

    def is_zero(self, x: str) -> str:
        if not self.paired:
            return self.new(f"fcmp oeq {self.real} {x}, {self.real_number(0)}")
        a, b = (self.new(f"fcmp oeq {self.real} {p}, {self.real_number(0)}") for p in self.parts(x))
        return self.new(f"and i1 {a}, {b}")

    def _magnitude(self, x: str) -> str:
        name = f"llvm.fabs.{self.dtype.code}"
        self.declare(f"{self.real} @{name}({self.real})")
        return self.new(f"call {self.real} @{name}({self.real} {x})")

    def size(self, x: str) -> str:
        """The magnitude of an element; of a complex one the sum of those of its parts, by which
        LAPACK chooses pivots."""
        if not self.paired:
            return self._magnitude(x)
        a, b = (self._magnitude(p) for p in self.parts(x))
        return self.on_reals("fadd", a, b)

    def modulus(self, x: str) -> str:
        """The magnitude of an element whose square is neither too large nor too small."""
        if not self.paired:
            return self._magnitude(x)
        a, b = (self.on_reals("fmul", p, p) for p in self.parts(x))
        return self.root(self.on_reals("fadd", a, b))

    def root(self, x: str) -> str:
        """The square root of a real number."""
        name = f"llvm.sqrt.{self.dtype.code}"
        self.declare(f"{self.real} @{name}({self.real})")
        return self.new(f"call {self.real} @{name}({self.real} {x})")
