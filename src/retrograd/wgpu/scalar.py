"""The values of a nest's body in WGSL.

`ELEMENTWISE` has what writes an elementwise op, by its name, which `@emits(el.exp)` enters: a
function from an `OpWriter`, which knows the dtype of the operands, and the operands' names, to the
expression of the result. Half precision is computed in float32; the caller rounds the result.

Positions in memory are `i32`: a storage buffer has fewer elements than that counts. Where a
position becomes a number of the user's, it is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from retrograd.errors import BackendError
from retrograd.ir import DType, Trait, bfloat16, bool_, entering, float16, int64
from retrograd.ops.elementwise import traits_of
from retrograd.schedule.loop_nest import LoopNest, Store, live
from retrograd.schedule.ssa import SSAOp, SSAValue
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import literal, register_type

Emit = Callable[..., str]
ELEMENTWISE: dict[str, Emit] = {}
emits = entering(ELEMENTWISE)

POSITIONS = frozenset(
    (SSAOp.LOOP, SSAOp.SIZE, SSAOp.IADD, SSAOp.ISUB, SSAOp.IMUL, SSAOp.IDIV, SSAOp.IMOD, SSAOp.ISEL)
)
_SIGNS: dict[str, str] = {
    SSAOp.IADD: "+", SSAOp.ISUB: "-", SSAOp.IMUL: "*", SSAOp.IDIV: "/", SSAOp.IMOD: "%",
    SSAOp.ILT: "<", SSAOp.IGE: ">=",
}  # fmt: skip
_ROUNDED_16 = """fn round_f16(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  if (size >= 0x7f800000u) { return x; }
  if (size >= 0x477ff000u) { return bitcast<f32>((bits & 0x80000000u) | 0x7f800000u); }
  if (size < 0x38800000u) {
    let small = round(bitcast<f32>(size) * 16777216.0f) * 5.9604644775390625e-08f;
    return bitcast<f32>((bits & 0x80000000u) | bitcast<u32>(small));
  }
  return bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
}"""
_ROUNDED_BF16 = """fn round_bf16(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
  return bitcast<f32>((bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);
}"""
IS_NAN = """fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}"""
IS_NAN_64 = """fn is_nan_64(x: f64) -> bool {
  return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}"""


_WIDENED = {"i64": "u64", "u64": "i64"}


@dataclass(frozen=True)
class OpWriter:
    """Where an op is written: the shader, and the dtype of its operands."""

    w: ShaderWriter
    dtype: DType

    @property
    def type(self) -> str:
        """The operands' type in registers."""
        return register_type(self.dtype)

    @property
    def float(self) -> bool:
        return self.dtype.is_float

    @property
    def signed(self) -> bool:
        return self.dtype.kind == "int"

    def number(self, value: Any) -> str:
        """A constant of the operands' dtype."""
        return literal(value, self.dtype)

    def is_nan(self, x: str) -> str:
        """Whether a number is NaN, which `x != x` need not find."""
        if self.type == "f64":
            self.w.declare(IS_NAN_64)
            return f"is_nan_64({x})"
        self.w.declare(IS_NAN)
        return f"is_nan({x})"

    def rounded(self, x: str, dtype: DType) -> str:
        return rounded(self.w, x, dtype)


class Body:
    """Writes the values of a nest, each where the loops that it needs are open.

    Say what the counters are with `counter`, then `place` the values of a depth; `self[v]` is a
    value, `position(v)` one that is a position. Values that are `given` have these names already.
    """

    def __init__(
        self, w: ShaderWriter, nest: LoopNest, given: Mapping[SSAValue, str] | None = None
    ) -> None:
        self.w, self.nest = w, nest
        self._given = given or {}
        self._names: dict[SSAValue, str] = {}
        self._counters: dict[int, str] = {}
        self._levels: dict[int, list[SSAValue]] = {}
        for v in live(nest):
            w.need(v.dtype) if v.dtype is not int64 else None
            self._levels.setdefault(v.depth, []).append(v)

    def counter(self, loop: int, name: str) -> None:
        """What the counter of a loop is called, an `i32`."""
        self._counters[loop] = name

    def place(self, depth: int, first: int | None = None) -> None:
        """Write the values of the depths from `first` (this one) up to this one."""
        for level in range(depth if first is None else first, depth + 1):
            for v in self._levels.get(level, ()):
                if v.op is SSAOp.PRODUCT:
                    continue
                text = self._value(v)
                plain = v.op in (SSAOp.LOOP, SSAOp.SIZE, SSAOp.CONST)
                self._names[v] = text if plain else self.w.new(text)

    def __getitem__(self, v: SSAValue) -> str:
        """A value in a register of its dtype."""
        found = self._names[v]
        return widened(self.w, found, "i64") if v.op in POSITIONS else found

    def position(self, v: SSAValue) -> str:
        """A value as `i32`."""
        found = self._names[v]
        return found if v.op in POSITIONS or v.dtype.name == "int32" else f"i32({found})"

    def store(self, store: Store) -> None:
        """Do a store of the nest."""
        value = self[store.value]
        self.w.store(store.buffer, self.position(store.offset), value)

    def _value(self, v: SSAValue) -> str:
        op, args = v.op, v.args
        if op is SSAOp.LOOP:
            return self._counters[v.attr]
        if op is SSAOp.SIZE:
            return self.w.size(v.attr)
        if op is SSAOp.CONST:
            self.w.need(v.dtype)
            return literal(v.attr, v.dtype)
        if v in self._given:
            return self._given[v]
        if op is SSAOp.LOAD:
            return self.w.load(v.attr, self.position(args[0]))
        if op is SSAOp.CAST:
            return self._cast(args[0], v.dtype)
        if op in (SSAOp.ILT, SSAOp.IGE):
            whole = any(a.op not in POSITIONS for a in args)
            a, b = (self[x] if whole else self.position(x) for x in args)
            return f"{a} {_SIGNS[op]} {b}"
        if op is SSAOp.ISEL:
            c, a, b = self._names[args[0]], self.position(args[1]), self.position(args[2])
            return f"select({b}, {a}, {c})"
        if op in _SIGNS:
            a, b = map(self.position, args)
            return f"{a} {_SIGNS[op]} {b}"
        return self._elementwise(v)

    def _cast(self, x: SSAValue, to: DType) -> str:
        if x.op in POSITIONS:
            if to.is_float and not to.is_half and to.itemsize == 4:
                return f"f32({self._names[x]})"
            if to.name in ("int32", "uint32", "int64"):
                kind = register_type(to)
                return self._names[x] if kind == "i32" else widened(self.w, self._names[x], kind)
        self.w.need(to)
        return converted(self.w, self[x], x.dtype, to)

    def _elementwise(self, v: SSAValue) -> str:
        emit = ELEMENTWISE.get(v.op)
        if emit is None:
            raise BackendError(
                f"the wgpu backend has no shader for {v.op!r} of {v.args[-1].dtype}, which "
                f"{self.w.context.asked} needs; run it with rg.backend('llvm')"
            )
        for a in (*v.args, v):
            self.w.need(a.dtype)
        # The operands of select differ in dtype; its last ones are like the result.
        text = emit(OpWriter(self.w, v.args[-1].dtype), *[self[a] for a in v.args])
        if v.dtype.is_half and Trait.UNROUNDED not in traits_of(v.op):
            return rounded(self.w, text, v.dtype)
        return wrapped(text, v.dtype)


def rounded(w: ShaderWriter, x: str, dtype: DType) -> str:
    """A float32 rounded to a half dtype, ties to even; other dtypes as they are."""
    if dtype is float16:
        w.declare(_ROUNDED_16)
        return f"round_f16({x})"
    if dtype is bfloat16:
        w.declare(_ROUNDED_BF16)
        return f"round_bf16({x})"
    return x


def wrapped(x: str, dtype: DType) -> str:
    """An integer of fewer bits than its register, as far as it goes."""
    if not dtype.is_integer or dtype.itemsize >= 4:
        return x
    bits = 8 * dtype.itemsize
    if dtype.kind == "uint":
        return f"(({x}) & {2**bits - 1}u)"
    return f"((({x}) << {32 - bits}u) >> {32 - bits}u)"


def converted(w: ShaderWriter, x: str, source: DType, to: DType) -> str:
    """A value as another dtype, as NumPy converts it."""
    if source is to:
        return x
    kind = register_type(to)
    if to is bool_:
        if source.is_float:  # bits, as a comparison need not find a NaN
            wide = source.itemsize == 8
            bits, mask = ("u64", f"{2**63 - 1}lu") if wide else ("u32", f"{2**31 - 1}u")
            return f"((bitcast<{bits}>({x}) & {mask}) != {'0lu' if wide else '0u'})"
        return f"({x} != {literal(0, source)})"
    if source is bool_:
        return f"select({literal(0, to)}, {literal(1, to)}, {x})"
    if source.is_float and not to.is_float:
        return _truncated(w, x, source, to)
    if source.is_float and register_type(source) == kind:
        return rounded(w, x, to) if to.is_half else x
    if to.is_float:
        return rounded(w, f"f32({x})" if kind == "f32" else f"{kind}({x})", to)
    if kind in _WIDENED and source.itemsize < 8 and source.kind != to.kind:
        # First to more bits, as the sign has a say in that.
        return f"{kind}({widened(w, x, _WIDENED[kind])})"
    if kind in _WIDENED and source.itemsize < 8:
        return widened(w, x, kind)
    return wrapped(x if register_type(source) == kind else f"{kind}({x})", to)


def widened(w: ShaderWriter, x: str, kind: str) -> str:
    """A number of 32 bits as a type; of the types of 64 bits not the plain conversion, where the
    device takes that for what it is not."""
    if kind not in _WIDENED or w.context.facts.widens:
        return f"{kind}({x})"
    return f"(({kind}({x}) << 1u) >> 1u)"


def _truncated(w: ShaderWriter, x: str, source: DType, to: DType) -> str:
    """Truncated; what the dtype cannot hold becomes its nearest end, NaN 0."""
    a, kind = register_type(source), register_type(to)
    bits = 8 * to.itemsize
    least = -(2 ** (bits - 1)) if to.kind == "int" else 0
    most = 2 ** (bits - 1) - 1 if to.kind == "int" else 2**bits - 1
    at = OpWriter(w, source)
    # Bounds are powers of two, exact in every float dtype.
    name = f"{kind}_{bits}_of_{a}"
    low = f"if (x < {at.number(least)}) {{ return {literal(least, to)}; }}"
    w.declare(
        f"fn {name}(x: {a}) -> {kind} {{\n"
        f"  if ({at.is_nan('x')}) {{ return {literal(0, to)}; }}\n"
        f"  if (x >= {at.number(float(most + 1))}) {{ return {literal(most, to)}; }}\n"
        f"  {low}\n  return {kind}(x);\n}}"
    )
    return f"{name}({x})"
