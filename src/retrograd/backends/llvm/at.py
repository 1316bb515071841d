"""Where an elementwise op is written, and in how many lanes.

Everything that writes mathematics does it through an `At`, which knows the dtype and the number of
lanes, so one text of Python gives the scalar and the vector form of an op. Both round every step
alike: the tail of a loop may be computed in another width than its body.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from retrograd.backends.llvm.types import (
    in_each_lane,
    lane,
    literal,
    register_type,
    suffix,
    widened,
)
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import DType

Emit = Callable[..., str]


class At:
    """Where an op is written: the function, the dtype of its operands, the number of lanes."""

    def __init__(self, writer: Writer, dtype: DType, lanes: int = 1) -> None:
        self.w = writer
        self.dtype = dtype
        self.lanes = lanes
        self.scalar = register_type(dtype)  # of one lane
        self.type = register_type(dtype, lanes)
        self.bool = widened("i1", lanes)  # of conditions
        self.float = dtype.is_float
        self.signed = dtype.kind == "int"

    def do(self, op: str, *args: str) -> str:
        """An LLVM instruction on operands of this dtype."""
        return self.w.new(f"{op} {self.type} {', '.join(args)}")

    def call(self, name: str, *args: str, extra: str = "") -> str:
        """An LLVM intrinsic on this type."""
        symbol = f"llvm.{name}.{suffix(self.type)}"
        types = ", ".join([self.type] * len(args)) + (", i1" if extra else "")
        self.w.declare(f"{self.type} @{symbol}({types})")
        return self._call(self.type, symbol, args, extra)

    def libm(self, name: str, *args: str) -> str:
        """A function of the C library, in the precision of this dtype, one lane at a time."""
        symbol = "rg_" + name + ("f" if self.scalar == "float" else "")
        self.w.declare(f"{self.scalar} @{symbol}({self._types(args)}) #1")
        return self.one_by_one(symbol, *args)

    def one_by_one(self, symbol: str, *args: str) -> str:
        """A function of scalars, called for each lane."""
        if self.lanes == 1:
            return self._call(self.scalar, symbol, args)

        def one(i: int) -> str:
            parts = [lane(self.w, a, self.dtype, self.lanes, i) for a in args]
            return self._call(self.scalar, symbol, parts)

        return in_each_lane(self.w, self.scalar, self.lanes, one)

    def _types(self, args: tuple[str, ...]) -> str:
        return ", ".join([self.scalar] * len(args))

    def _call(
        self, kind: str, symbol: str, args: tuple[str, ...] | list[str], extra: str = ""
    ) -> str:
        listed = ", ".join(f"{kind} {a}" for a in args) + (f", {extra}" if extra else "")
        return self.w.new(f"call {kind} @{symbol}({listed})")

    def number(self, value: float) -> str:
        """A constant of this dtype, in every lane."""
        return literal(value, self.dtype, self.lanes)

    def compare(self, floats: str, integers: str, a: str, b: str) -> str:
        """A condition; `integers` without the sign's letter (`lt`), except `eq` and `ne`."""
        if self.float:
            return self.w.new(f"fcmp {floats} {self.type} {a}, {b}")
        if integers not in ("eq", "ne"):
            integers = ("s" if self.signed else "u") + integers
        return self.w.new(f"icmp {integers} {self.type} {a}, {b}")

    def logic(self, op: str, a: str, b: str) -> str:
        """`and`, `or`, `xor` of conditions."""
        return self.w.new(f"{op} {self.bool} {a}, {b}")

    def choose(self, c: str, a: str, b: str) -> str:
        return self.w.new(f"select {self.bool} {c}, {self.type} {a}, {self.type} {b}")


def outlined(name: str, body: Emit) -> Emit:
    """`body` as a function of the module, one for each dtype and number of lanes, that is called:
    for formulas too long to be written where they are used."""

    def emit(at: At, *args: str) -> str:
        known, text = _definition(name, body, at.dtype, at.lanes, len(args))
        for declaration in (*known, text):
            at.w.declare(declaration)
        listed = ", ".join(f"{at.type} {a}" for a in args)
        return at.w.new(f"call {at.type} @{_symbol(name, at)}({listed})")

    return emit


def _symbol(name: str, at: At) -> str:
    return f"math.{name}.{suffix(at.type)}"


@cache
def _definition(
    name: str, body: Emit, dtype: DType, lanes: int, count: int
) -> tuple[tuple[str, ...], str]:
    """The text of a function, and what else it needs to be known."""
    known: dict[str, None] = {}
    w = Writer(lambda declaration: known.update({declaration: None}))
    at = At(w, dtype, lanes)
    names = [f"%x{i}" for i in range(count)]
    w.line(f"ret {at.type} {body(at, *names)}")
    listed = ", ".join(f"{at.type} {x}" for x in names)
    head = f"define internal {at.type} @{_symbol(name, at)}({listed})"
    return tuple(known), f"{head} noinline nounwind willreturn memory(none) {{\n{w.text()}\n}}"
