"""Where an elementwise op is written, and in how many lanes.

Everything that writes mathematics does it through an `OpBuilder`, which knows the dtype and the
number of lanes, so one text of Python gives the scalar and the vector form of an op. Both round
every step alike: the tail of a loop may be computed in another width than its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol
from zlib import crc32

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.types import literal, register_type, suffix, widened
from retrograd.ir import DType, entering, float64, int32, int64
from retrograd.tuning import TUNING

Emit = Callable[..., str]
Point = Callable[[str], Sequence[str]]

# What writes an elementwise op, by its name. `@emits(el.exp)` enters it, where it is defined: in
# `emit/elementwise.py` and `math/`.
ELEMENTWISE: dict[str, Emit] = {}
emits = entering(ELEMENTWISE)


class QuadratureRule(Protocol):
    """Where NumPy evaluates what is to be summed, and how it adds it up."""

    count: int  # of places

    def places(self, half: Any) -> Any:
        """All places, along a new first axis."""

    def total(self, zero: Any, values: Any) -> Any:
        """What `values` at these places add to, one after the other."""


class OpBuilder:
    """Where an op is written: the function, the dtype of its operands, the number of lanes."""

    doubles = True  # whether single precision may be computed in double precision

    def __init__(self, writer: FunctionBuilder, dtype: DType, lanes: int = 1) -> None:
        self.w = writer
        self.dtype = dtype
        self.lanes = lanes
        self.scalar = register_type(dtype)  # of one lane
        self.type = register_type(dtype, lanes)
        self.bool = widened("i1", lanes)  # of conditions
        self.float = dtype.is_float
        self.signed = dtype.kind == "int"

    def with_dtype(self, dtype: DType, lanes: int | None = None) -> OpBuilder:
        """The same place for operands of another dtype."""
        return OpBuilder(self.w, dtype, self.lanes if lanes is None else lanes)

    def instruction(self, op: str, *args: str) -> str:
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

    def of_doubles(self, name: str, texts: Sequence[str], x: str) -> str:
        """A function of doubles, `@math.name`, whose text is among those that are to be known, of
        one lane."""
        for text in texts:
            self.w.declare(text)
        wide = x if self.dtype is float64 else self.cast("fpext", x, float64)
        y = self.w.new(f"call double @math.{name}(double {wide})")
        return y if self.dtype is float64 else self.w.new(f"fptrunc double {y} to float")

    def call_symbol(self, symbol: str, *args: str, extra: str = "") -> str:
        """A declared function on this type."""
        listed = ", ".join(f"{self.type} {a}" for a in args) + (f", {extra}" if extra else "")
        return self.w.new(f"call {self.type} @{symbol}({listed})")

    def cast(self, how: str, x: str, dtype: DType) -> str:
        """An operand as another dtype: `bitcast`, `fpext`, `fptrunc` or `sitofp`."""
        to = register_type(dtype, self.lanes)
        return self.w.new(f"{how} {self.type} {x} to {to}")

    def anywhere(self, c: str) -> str:
        """Whether a condition, of this dtype, holds in some lane: a register of one bit."""
        if self.lanes == 1:
            return c
        symbol = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.w.declare(f"i1 @{symbol}({self.type})")
        return self.w.new(f"call i1 @{symbol}({self.type} {c})")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """The constant coefficient first; by Horner's rule, each step rounded once."""
        if self.w.brief and self.lanes == 1 and len(coefficients) >= TUNING.looped_polynomial_terms:
            return looped(self, x, coefficients)
        y = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            y = self.call("fma", x, y, self.number(c))
        return y

    def integrals(
        self, rule: QuadratureRule, half: str, zero: str, point: Point
    ) -> list[str] | None:
        """Sums by a rule of what `point` gives at a place, computed at all places at once; None
        where they are to be computed one after the other."""
        return None

    def lane_by_lane(self, scalar: Emit, each: Emit, args: Sequence[str]) -> str:
        """What is written for one lane, `scalar`; `each` is what is written for several."""
        return scalar(self, *args) if self.lanes == 1 else each(self, *args)

    def function(self, name: str, body: Emit, args: Sequence[str]) -> str:
        """The result of `body` as a function of the module."""
        known, text = _definition(name, body, self.dtype, self.lanes, len(args), self.w.brief)
        for declaration in (*known, text):
            self.w.declare(declaration)
        return self.call_symbol(_symbol(name, self), *args)

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

    def lesser(self, x: str, bound: str) -> str:
        """In the order for which x86 has one instruction. A NaN stays."""
        return self.select(self.compare("olt", "lt", bound, x), bound, x)

    def greater(self, x: str, bound: str) -> str:
        return self.select(self.compare("ogt", "gt", bound, x), bound, x)

    def select(self, c: str, a: str, b: str) -> str:
        return self.w.new(f"select {self.bool} {c}, {self.type} {a}, {self.type} {b}")


def _magnitude(at: OpBuilder, x: str) -> str:
    """`fabs`, on bits: without optimisation LLVM takes ten times as long for the intrinsic."""
    whole, bits = bits_of(at, x)
    most = (1 << (8 * whole.dtype.itemsize - 1)) - 1
    return whole.cast("bitcast", whole.instruction("and", bits, whole.number(most)), at.dtype)


def _with_sign(at: OpBuilder, x: str, sign: str) -> str:
    """`copysign`, on bits."""
    whole, size = bits_of(at, x)
    _, other = bits_of(at, sign)
    most = (1 << (8 * whole.dtype.itemsize - 1)) - 1
    size = whole.instruction("and", size, whole.number(most))
    other = whole.instruction("and", other, whole.number(-most - 1))
    return whole.cast("bitcast", whole.instruction("or", size, other), at.dtype)


def bits_of(at: OpBuilder, x: str) -> tuple[OpBuilder, str]:
    """The bits of a float as a signed integer, and where integers of that width are written."""
    whole = at.with_dtype(int64 if at.dtype is float64 else int32)
    return whole, at.cast("bitcast", x, whole.dtype)


_ON_BITS: dict[str, Emit] = {"fabs": _magnitude, "copysign": _with_sign}


@cache
def _library(symbol: str) -> Emit:
    return lambda at, *args: at.call_symbol(symbol, *args)


@cache
def one_by_one(name: str, scalar: Emit) -> Emit:
    """What is written for scalars, for each lane: a function of the module with a loop through
    memory, which is much less code than one piece for each. `scalar` must be the same object every
    time."""

    def loop_over_lanes(at: OpBuilder, *args: str) -> str:
        w = at.w
        arrays = [w.reserve(at.type) for _ in args]
        for a, array in zip(args, arrays, strict=True):
            w.line(f"store {at.type} {a}, ptr {array}, align 64")
        loop = w.open_loop(str(at.lanes))
        places = [
            w.new(f"getelementptr {at.scalar}, ptr {array}, i64 {loop.counter}") for array in arrays
        ]
        values = [w.new(f"load {at.scalar}, ptr {place}") for place in places]
        result = scalar(OpBuilder(w, at.dtype), *values)
        w.line(f"store {at.scalar} {result}, ptr {places[0]}")
        w.close_loop(loop)
        return w.new(f"load {at.type}, ptr {arrays[0]}, align 64")

    each = outlined(f"each.{name}", loop_over_lanes)
    return lambda at, *args: at.lane_by_lane(scalar, each, args)


def outlined(name: str, body: Emit) -> Emit:
    """`body` as a function of the module, one for each dtype and number of lanes, that is called:
    for formulas too long to be written where they are used."""

    return lambda at, *args: at.function(name, body, args)


def _symbol(name: str, at: OpBuilder) -> str:
    return f"math.{name}.{suffix(at.type)}"


@cache
def _definition(
    name: str, body: Emit, dtype: DType, lanes: int, count: int, brief: bool
) -> tuple[tuple[str, ...], str]:
    """The text of a function, and what else it needs to be known."""
    known: dict[str, None] = {}
    w = FunctionBuilder(lambda declaration: known.update({declaration: None}), brief)
    at = OpBuilder(w, dtype, lanes)
    names = [f"%x{i}" for i in range(count)]
    w.line(f"ret {at.type} {body(at, *names)}")
    listed = ", ".join(f"{at.type} {x}" for x in names)
    head = f"define internal {at.type} @{_symbol(name, at)}({listed})"
    return tuple(known), f"{head} noinline nounwind willreturn memory(none) {{\n{w.text()}\n}}"


def looped(at: OpBuilder, x: str, coefficients: Sequence[float]) -> str:
    """A polynomial by a loop over a table, which all have in common."""
    kind = at.type
    listed = ", ".join([f"{kind} {at.number(c)}" for c in coefficients])
    table = f"[{len(coefficients)} x {kind}] [{listed}]"
    name = f"@math.table.{len(coefficients)}.{crc32(table.encode()):08x}"
    at.w.declare(f"{name} = internal constant {table}")
    at.w.declare(f"{kind} @llvm.fma.{suffix(kind)}({kind}, {kind}, {kind})")
    at.w.declare(_horner(kind))
    last = f"i64 {len(coefficients) - 1}"
    return at.w.new(f"call {kind} @math.horner.{suffix(kind)}({kind} {x}, ptr {name}, {last})")


@cache
def _horner(kind: str) -> str:
    """The function of a polynomial with a table of coefficients, the last of which is the first."""
    w, name = FunctionBuilder(lambda _: None), suffix(kind)

    def coefficient(k: str) -> str:
        return w.new(f"load {kind}, ptr {w.new(f'getelementptr {kind}, ptr %table, i64 {k}')}")

    loop = w.open_loop("%last", carried=[(kind, coefficient("%last"))])
    k = w.new(f"sub i64 {w.new(f'sub i64 %last, {loop.counter}')}, 1")
    factors = f"{kind} %x, {kind} {loop.values[0]}, {kind} {coefficient(k)}"
    w.close_loop(loop, [w.new(f"call {kind} @llvm.fma.{name}({factors})")])
    w.line(f"ret {kind} {loop.values[0]}")
    parameters = f"{kind} %x, ptr %table, i64 %last"
    head = f"define internal {kind} @math.horner.{name}({parameters}) noinline nounwind"
    return f"{head} {{\n{w.text()}\n}}"
