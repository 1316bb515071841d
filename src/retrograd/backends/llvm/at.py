"""Where an elementwise op is written, and in how many lanes.

Everything that writes mathematics does it through an `At`, which knows the dtype and the number of
lanes, so one text of Python gives the scalar and the vector form of an op. Both round every step
alike: the tail of a loop may be computed in another width than its body.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from retrograd.backends.llvm.types import literal, register_type, suffix, widened
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import DType, int32, int64

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
        if self.w.brief and name in _ON_BITS:
            return _ON_BITS[name](self, *args)
        symbol = f"llvm.{name}.{suffix(self.type)}"
        types = ", ".join([self.type] * len(args)) + (", i1" if extra else "")
        self.w.declare(f"{self.type} @{symbol}({types})")
        return self.call_symbol(symbol, *args, extra=extra)

    def libm(self, name: str, *args: str) -> str:
        """A function of the C library, in the precision of this dtype, one lane at a time."""
        symbol = "rg_" + name + ("f" if self.scalar == "float" else "")
        types = ", ".join([self.scalar] * len(args))
        self.w.declare(f"{self.scalar} @{symbol}({types}) #1")
        return self.each(symbol, *args)

    def each(self, symbol: str, *args: str) -> str:
        """A declared function of scalars, one lane at a time."""
        return one_by_one(symbol, _library(symbol))(self, *args)

    def call_symbol(self, symbol: str, *args: str, extra: str = "") -> str:
        """A declared function on this type."""
        listed = ", ".join(f"{self.type} {a}" for a in args) + (f", {extra}" if extra else "")
        return self.w.new(f"call {self.type} @{symbol}({listed})")

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


def _magnitude(at: At, x: str) -> str:
    """`fabs`, on bits: without optimisation LLVM takes ten times as long for the intrinsic."""
    whole, bits = bits_of(at, x)
    most = (1 << (8 * whole.dtype.itemsize - 1)) - 1
    size = whole.do("and", bits, whole.number(most))
    return at.w.new(f"bitcast {whole.type} {size} to {at.type}")


def _with_sign(at: At, x: str, sign: str) -> str:
    """`copysign`, on bits."""
    whole, size = bits_of(at, x)
    _, other = bits_of(at, sign)
    most = (1 << (8 * whole.dtype.itemsize - 1)) - 1
    size = whole.do("and", size, whole.number(most))
    other = whole.do("and", other, whole.number(-most - 1))
    return at.w.new(f"bitcast {whole.type} {whole.do('or', size, other)} to {at.type}")


def bits_of(at: At, x: str) -> tuple[At, str]:
    """The bits of a float as a signed integer, and where integers of that width are written."""
    whole = At(at.w, int64 if at.scalar == "double" else int32, at.lanes)
    return whole, at.w.new(f"bitcast {at.type} {x} to {whole.type}")


_ON_BITS: dict[str, Emit] = {"fabs": _magnitude, "copysign": _with_sign}


@cache
def _library(symbol: str) -> Emit:
    return lambda at, *args: at.call_symbol(symbol, *args)


@cache
def one_by_one(name: str, scalar: Emit) -> Emit:
    """What is written for scalars, for each lane: a function of the module with a loop through
    memory, which is much less code than one piece for each. `scalar` must be the same object every
    time."""

    def loop_over_lanes(at: At, *args: str) -> str:
        w = at.w
        arrays = [w.reserve(at.type) for _ in args]
        for a, array in zip(args, arrays, strict=True):
            w.line(f"store {at.type} {a}, ptr {array}, align 64")
        loop = w.open_loop(str(at.lanes))
        places = [
            w.new(f"getelementptr {at.scalar}, ptr {array}, i64 {loop.counter}") for array in arrays
        ]
        values = [w.new(f"load {at.scalar}, ptr {place}") for place in places]
        result = scalar(At(w, at.dtype), *values)
        w.line(f"store {at.scalar} {result}, ptr {places[0]}")
        w.close_loop(loop)
        return w.new(f"load {at.type}, ptr {arrays[0]}, align 64")

    each = outlined(f"each.{name}", loop_over_lanes)
    return lambda at, *args: scalar(at, *args) if at.lanes == 1 else each(at, *args)


def outlined(name: str, body: Emit) -> Emit:
    """`body` as a function of the module, one for each dtype and number of lanes, that is called:
    for formulas too long to be written where they are used."""

    def emit(at: At, *args: str) -> str:
        known, text = _definition(name, body, at.dtype, at.lanes, len(args), at.w.brief)
        for declaration in (*known, text):
            at.w.declare(declaration)
        listed = ", ".join(f"{at.type} {a}" for a in args)
        return at.w.new(f"call {at.type} @{_symbol(name, at)}({listed})")

    return emit


def _symbol(name: str, at: At) -> str:
    return f"math.{name}.{suffix(at.type)}"


@cache
def _definition(
    name: str, body: Emit, dtype: DType, lanes: int, count: int, brief: bool
) -> tuple[tuple[str, ...], str]:
    """The text of a function, and what else it needs to be known."""
    known: dict[str, None] = {}
    w = Writer(lambda declaration: known.update({declaration: None}), brief)
    at = At(w, dtype, lanes)
    names = [f"%x{i}" for i in range(count)]
    w.line(f"ret {at.type} {body(at, *names)}")
    listed = ", ".join(f"{at.type} {x}" for x in names)
    head = f"define internal {at.type} @{_symbol(name, at)}({listed})"
    return tuple(known), f"{head} noinline nounwind willreturn memory(none) {{\n{w.text()}\n}}"
