"""Numbers as unsigned integers of the same order."""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.sort.radix import align, element
from retrograd.ir import DType, bfloat16, float16, float32, float64

# Bits of a float without its sign above which it is a NaN.
_INFINITY = {float16: 0x7C00, bfloat16: 0x7F80, float32: 0x7F800000, float64: 0x7FF0000000000000}


class Keys:
    """How the numbers of a dtype become unsigned keys, in one lane or several."""

    def __init__(
        self, w: FunctionBuilder, dtype: DType, descending: bool = False, lanes: int = 1
    ) -> None:
        self.w = w
        self.dtype = dtype
        self.lanes = lanes
        self.descending = descending
        self.bits = 8 * dtype.itemsize
        self.kind = types.widened(f"i{self.bits}", lanes)
        self.sign = 1 << (self.bits - 1)

    def number(self, value: int) -> str:
        """A constant in every lane."""
        wrapped = (value + self.sign) % (2 * self.sign) - self.sign
        return types.splat(f"i{self.bits}", str(wrapped), self.lanes)

    def do(self, op: str, a: str, b: str | int) -> str:
        return self.w.new(f"{op} {self.kind} {a}, {b if isinstance(b, str) else self.number(b)}")

    def select(self, condition: str, a: str, b: str) -> str:
        flags = types.widened("i1", self.lanes)
        return self.w.new(f"select {flags} {condition}, {self.kind} {a}, {self.kind} {b}")

    def is_nan(self, x: str) -> str:
        size = self.do("and", x, self.sign - 1)
        return self.do("icmp ugt", size, _INFINITY[self.dtype])

    def is_zero(self, x: str) -> str:
        return self.do("icmp eq", self.do("and", x, self.sign - 1), 0)

    def of(self, x: str) -> str:
        """The key of the bits of a number, in the order that the dtype's values have."""
        if self.dtype.is_float:
            signs = self.do("ashr", x, self.bits - 1)
            x = self.do("xor", x, self.do("or", signs, self.sign))
        elif self.dtype.kind == "int":
            x = self.do("xor", x, self.sign)
        return self.do("xor", x, -1) if self.descending else x

    def back(self, key: str) -> str:
        """The bits of the number of a key."""
        x = self.do("xor", key, -1) if self.descending else key
        if self.dtype.is_float:
            signs = self.do("ashr", self.do("xor", x, -1), self.bits - 1)
            return self.do("xor", x, self.do("or", signs, self.sign))
        return self.do("xor", x, self.sign) if self.dtype.kind == "int" else x

    def total(self, x: str) -> str:
        """A key that equal numbers share: one for both zeros, one for every NaN."""
        if not self.dtype.is_float:
            return self.of(x)
        nan = self.is_nan(x)
        x = self.select(self.is_zero(x), self.number(0), x)
        return self.select(nan, self.number(-1), self.of(x))

    def reversed(self, x: str) -> str:
        """The lanes in the opposite order."""
        if self.lanes == 1:
            return x
        picks = ", ".join(f"i32 {i}" for i in reversed(range(self.lanes)))
        order = f"<{self.lanes} x i32> <{picks}>"
        return self.w.new(f"shufflevector {self.kind} {x}, {self.kind} poison, {order}")

    def load(self, base: str, at: str) -> str:
        return self.w.new(f"load {self.kind}, ptr {self.place(base, at)}, align {align(self.bits)}")

    def store(self, x: str, base: str, at: str) -> None:
        self.w.line(f"store {self.kind} {x}, ptr {self.place(base, at)}, align {align(self.bits)}")

    def place(self, base: str, at: str) -> str:
        return element(self.w, f"i{self.bits}", base, at)
