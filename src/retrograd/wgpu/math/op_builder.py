"""Where an elementwise op is written in WGSL: `OpBuilder`'s operations as WGSL's expressions.

So every function of mathematics has one text, that of `codegen/math/`, and the accuracy that it has
there; those of WGSL itself may be wrong in hundreds of units in the last place, and need not know
infinities or NaN. WGSL's compilers may assume that there is no NaN, and that sums are associative:
whether a number is NaN is seen by its bits, infinities come from bits at run time, `fma` is what
the device has only where that rounds once, and each sum and product goes through `exact`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from retrograd.codegen.op_builder import Emit, OpBuilder, Point, QuadratureRule
from retrograd.errors import BackendError
from retrograd.ir import DType, bool_, float32, float64, int32, int64, uint32
from retrograd.wgpu.dispatch import DeviceFacts
from retrograd.wgpu.math.bits import require
from retrograd.wgpu.math.builder import WgslBuilder

TYPES = {
    bool_: "bool", int32: "i32", uint32: "u32", float32: "f32", int64: "i64", float64: "f64",
}  # fmt: skip
_SUFFIX = {"i32": "i", "u32": "u", "f32": "f", "i64": "li", "f64": "lf"}
_INFIX = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*",
    "sdiv": "/", "udiv": "/", "srem": "%", "urem": "%", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_UNSIGNED = {"i32": "u32", "i64": "u64", "u32": "u32"}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_BUILT_IN = {
    "fabs": "abs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "roundeven": "round",
    "sqrt": "sqrt", "smax": "max", "smin": "min", "umax": "max", "umin": "min", "abs": "abs",
}  # fmt: skip


class MissingDTypeError(BackendError):
    """A formula needs numbers that the device does not have."""

    def __init__(self, dtype: DType) -> None:
        super().__init__(f"this GPU has no arithmetic of {dtype}")
        self.dtype = dtype


def type_of(dtype: DType, facts: DeviceFacts) -> str:
    """A dtype's name in WGSL."""
    lacks = {float64: not facts.float64, int64: not facts.int64}
    if lacks.get(dtype, dtype not in TYPES):
        raise MissingDTypeError(dtype)
    return TYPES[dtype]


class WgslOpBuilder(OpBuilder):
    """Where an op is written in WGSL, one lane at a time."""

    w: WgslBuilder  # type: ignore[assignment]

    def __init__(self, writer: WgslBuilder, dtype: DType) -> None:
        self.w = writer
        self.dtype = dtype
        self.lanes = 1
        self.scalar = self.type = type_of(dtype, writer.facts)
        self.bool = "bool"
        self.doubles = writer.facts.float64
        self.float = dtype.is_float
        self.signed = dtype.kind == "int"

    def with_dtype(self, dtype: DType, lanes: int | None = None) -> WgslOpBuilder:
        return WgslOpBuilder(self.w, dtype)

    def instruction(self, op: str, *args: str) -> str:
        if op == "fneg":
            return self.w.new(f"-{args[0]}")
        a, b = args
        if op[0] == "f":
            # Nor does x * 0.0 or x + 0.0 become something simpler.
            a, b = (self.function_of("exact", x) if x.startswith("0.0") else x for x in args)
            made = self.w.new(f"{a} {_INFIX[op]} {b}")
            return made if op == "fdiv" else self.function_of("exact", made)
        if op in ("shl", "ashr", "lshr"):
            return self._shift(op, a, b)
        if self.dtype is bool_:
            op = {"and": "&", "or": "|", "xor": "!="}[op]
            return self.w.new(f"{a} {op} {b}")
        return self.w.new(f"{a} {_INFIX[op]} {b}")

    def _shift(self, op: str, x: str, count: str) -> str:
        count = self.w.new(f"{count[:-2]}u" if count.endswith("li") else f"u32({count})")
        if op != "lshr" or self.type == "u32":
            return self.w.new(f"{x} {'<<' if op == 'shl' else '>>'} {count}")
        whole = _UNSIGNED[self.type]
        return self.w.new(f"bitcast<{self.type}>(bitcast<{whole}>({x}) >> {count})")

    def call(self, name: str, *args: str, extra: str = "") -> str:
        if name == "fma":
            return self._fma(*args)
        if name in _BUILT_IN:
            args = tuple(self.w.new(x) if _is_literal(x) else x for x in args)
            return self.w.new(f"{_BUILT_IN[name]}({', '.join(args)})")
        return self.function_of(name, *args)

    def function_of(self, name: str, *args: str) -> str:
        """One of the functions written in WGSL, for this dtype."""
        found = require(self.w, f"{name}_{self.type}")
        return self.w.new(f"{found}({', '.join(args)})")

    def _fma(self, a: str, b: str, c: str) -> str:
        if self.w.facts.fused and self.dtype is float32:
            return self.function_of("exact", self.w.new(f"fma({a}, {b}, {c})"))
        wide = self.dtype is float32 and self.w.facts.float64
        return self.function_of("fma_by_f64" if wide else "fma", a, b, c)

    def libm(self, name: str, *args: str) -> str:
        return self.function_of(name, *args)

    def each(self, symbol: str, *args: str) -> str:
        raise BackendError(f"wgpu has no {symbol}")

    def of_doubles(self, name: str, texts: Sequence[str], x: str) -> str:
        return self.function_of(name, x)

    def call_symbol(self, symbol: str, *args: str, extra: str = "") -> str:
        return self.w.new(f"{symbol}({', '.join(args)})")

    def cast(self, how: str, x: str, dtype: DType) -> str:
        to = type_of(dtype, self.w.facts)
        if how == "bitcast":
            return self.w.new(f"bitcast<{to}>({x})")
        return self.w.new(f"{to}({x})")

    def anywhere(self, c: str) -> str:
        return c

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """By Horner's rule; as a polynomial needs no exact products, each step is what the device
        does soonest."""
        y = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            if self.w.facts.fused:
                y = self.w.new(f"fma({x}, {y}, {self.number(c)})")
            else:
                y = self.w.new(f"{x} * {y} + {self.number(c)}")
        return y

    def integrals(
        self, rule: QuadratureRule, half: str, zero: str, point: Point
    ) -> list[str] | None:
        return None

    def lane_by_lane(self, scalar: Emit, each: Emit, args: Sequence[str]) -> str:
        return scalar(self, *args)

    def function(self, name: str, body: Emit, args: Sequence[str]) -> str:
        symbol, texts = defined(name, body, self.dtype, len(args), self.w.facts)
        for text in texts:
            self.w.declare(text)
        return self.call_symbol(symbol, *args)

    def number(self, value: float) -> str:
        return literal(self.w, value, self.dtype)

    def compare(self, floats: str, integers: str, a: str, b: str) -> str:
        if not self.float:
            if self.dtype is bool_ and integers not in ("eq", "ne"):
                a, b = self.w.new(f"u32({a})"), self.w.new(f"u32({b})")
            return self.w.new(f"{a} {_COMPARED[integers]} {b}")
        if floats == "uno":
            return self._either_is_nan(a, b)
        how, op = floats[0], _COMPARED[floats[1:]]
        found = self.w.new(f"{a} {op} {b}")
        if floats in ("olt", "ole", "ogt", "oge", "oeq"):
            return found
        nan = self._either_is_nan(a, b)
        return self.w.new(f"{found} | {nan}" if how == "u" else f"{found} & !{nan}")

    def _either_is_nan(self, a: str, b: str) -> str:
        asked = [x for x in dict.fromkeys((a, b)) if not _is_literal(x)]
        found = [self.function_of("is_nan", x) for x in asked]
        return self.w.new(" | ".join(found) or "false") if len(found) != 1 else found[0]

    def logic(self, op: str, a: str, b: str) -> str:
        return self.with_dtype(bool_).instruction(op, a, b)

    def lesser(self, a: str, b: str) -> str:
        """A choice by comparison may be compiled to a minimum, which does not keep NaN."""
        return self._unless_nan("min", a, b)

    def greater(self, a: str, b: str) -> str:
        return self._unless_nan("max", a, b)

    def _unless_nan(self, name: str, x: str, bound: str) -> str:
        return self.select(self.function_of("is_nan", x), x, self.w.new(f"{name}({x}, {bound})"))

    def select(self, c: str, a: str, b: str) -> str:
        return self.w.new(f"select({b}, {a}, {c})")


def _is_literal(x: str) -> bool:
    """Whether this is an ordinary number that is written out."""
    return x[0].isdigit() or x.startswith("(-")


def literal(w: WgslBuilder, value: Any, dtype: DType) -> str:
    """A constant, exact to the bit."""
    kind = type_of(dtype, w.facts)
    if dtype is bool_:
        return "true" if value else "false"
    if not dtype.is_float:
        n = int(value)
        if n == -(1 << (8 * dtype.itemsize - 1)):
            return f"({n + 1}{_SUFFIX[kind]} - 1{_SUFFIX[kind]})"
        return f"{n}{_SUFFIX[kind]}" if n >= 0 else f"({n}{_SUFFIX[kind]})"
    with np.errstate(over="ignore"):
        x = dtype.dtype.type(value)
    tiny = abs(float(x)) < float(np.finfo(x.dtype).tiny)
    if not math.isfinite(x) or (tiny and (x != 0 or math.copysign(1, x) < 0)):
        bits = x.view(np.int32 if kind == "f32" else np.int64)
        whole = int32 if kind == "f32" else int64
        return f"{require(w, f'of_bits_{kind}')}({literal(w, bits, whole)})"
    text = f"{x!r}".split("(")[-1].removesuffix(")")
    return f"{text}{_SUFFIX[kind]}" if x >= 0 else f"({text}{_SUFFIX[kind]})"


@cache
def defined(
    name: str,
    body: Emit,
    dtype: DType,
    count: int,
    facts: DeviceFacts,
    result: DType | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The name of a function of the module, its text and those of what it needs."""
    known: dict[str, None] = {}
    w = WgslBuilder(lambda text: known.update({text: None}), facts)
    at = WgslOpBuilder(w, dtype)
    names = [f"x{i}" for i in range(count)]
    w.line(f"return {body(at, *names)};")
    kind = at.type if result is None else type_of(result, facts)
    symbol = f"math_{name.replace('.', '_')}_{at.type}"
    listed = ", ".join(f"{x}: {at.type}" for x in names)
    known[f"fn {symbol}({listed}) -> {kind} {{\n{w.text()}\n}}"] = None
    return symbol, tuple(known)
