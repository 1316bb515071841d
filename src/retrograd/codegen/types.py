"""How dtypes look in LLVM: in registers, in memory, as constants, and between one another.

Half precision lives in registers as `float`, already rounded to the half dtype after every op. In
memory float16 is `half`; bfloat16 is its 16 bits, converted by integer arithmetic, because LLVM's
own conversion flushes denormals on some CPUs and calls a library on others. Booleans are `i1` in
registers and a byte in memory.

Every function here takes a number of `lanes`: with more than one, a register holds as many
elements, `<16 x float>`, which lie side by side in memory.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from retrograd.codegen.builder import FunctionBuilder
from retrograd.ir import DType, bfloat16, bool_, float16, float32, float64

_FLOATS = {float16: "float", bfloat16: "float", float32: "float", float64: "double"}
_FLOATS_IN_MEMORY = {float16: "half", bfloat16: "i16", float32: "float", float64: "double"}


def widened(kind: str, lanes: int) -> str:
    """A vector of so many of a scalar type; one is the scalar itself."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def vector(kind: str, lanes: int) -> str:
    """A vector of so many of a scalar type, also of one."""
    return f"<{lanes} x {kind}>"


def register_type(dtype: DType, lanes: int = 1) -> str:
    if dtype is bool_:
        return widened("i1", lanes)
    return widened(_FLOATS[dtype] if dtype.is_float else f"i{8 * dtype.itemsize}", lanes)


def memory_type(dtype: DType, lanes: int = 1) -> str:
    if dtype is bool_:
        return widened("i8", lanes)
    kind = _FLOATS_IN_MEMORY[dtype] if dtype.is_float else f"i{8 * dtype.itemsize}"
    return widened(kind, lanes)


def suffix(kind: str) -> str:
    """A type as it stands in the names of LLVM's intrinsics: `v16f32` of `<16 x float>`."""
    if kind.startswith("<"):
        lanes, _, kind = kind[1:-1].split(" ")
        return f"v{lanes}{suffix(kind)}"
    return {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(kind, kind)


def splat(kind: str, value: str, lanes: int) -> str:
    """A constant of a scalar type in every lane."""
    return value if lanes == 1 else f"splat ({kind} {value})"


def literal(value: Any, dtype: DType, lanes: int = 1) -> str:
    """A constant, exact to the bit, in every lane."""
    return splat(register_type(dtype), _scalar_literal(value, dtype), lanes)


def _scalar_literal(value: Any, dtype: DType) -> str:
    if dtype is bool_:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    if dtype is not float64:
        with np.errstate(over="ignore"):
            value = np.float32(value)
    # LLVM writes the constants of `float`, too, as the bits of a double.
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"


def broadcast(w: FunctionBuilder, x: str, dtype: DType, lanes: int) -> str:
    """One element, a register or a constant, in every lane."""
    if lanes == 1:
        return x
    scalar, kind = register_type(dtype), register_type(dtype, lanes)
    if not x.startswith("%"):
        return splat(scalar, x, lanes)
    first = w.new(f"insertelement {kind} poison, {scalar} {x}, i64 0")
    return w.new(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")


def load(
    w: FunctionBuilder, pointer: str, dtype: DType, lanes: int = 1, mask: str | None = None
) -> str:
    """Read `lanes` elements from a pointer on; those whose bit in `mask` is off are zero, and
    their memory is not touched. Alignments of masked accesses are arguments, as LLVM 20 wants them;
    newer versions accept that."""
    kind = memory_type(dtype, lanes)
    if mask is None:
        x = w.new(f"load {kind}, ptr {pointer}, align {dtype.itemsize}")
    elif lanes == 1:
        raise ValueError("a mask needs more than one lane")
    else:
        bits = widened("i1", lanes)
        name = f"llvm.masked.load.{suffix(kind)}.p0"
        w.declare(f"{kind} @{name}(ptr, i32, {bits}, {kind})")
        place = f"ptr {pointer}, i32 {dtype.itemsize}"
        x = w.new(f"call {kind} @{name}({place}, {bits} {mask}, {kind} zeroinitializer)")
    return _from_memory(w, x, dtype, lanes)


def gather(
    w: FunctionBuilder, base: str, offsets: str, dtype: DType, lanes: int, mask: str | None = None
) -> str:
    """Read the elements at `offsets`, an `<lanes x i64>` counted in elements from `base`; those
    whose bit in `mask` is off are zero, and their memory is not touched."""
    scalar, kind = memory_type(dtype), memory_type(dtype, lanes)
    if lanes == 1:
        return load(w, w.new(f"getelementptr {scalar}, ptr {base}, i64 {offsets}"), dtype)
    pointers, bits = widened("ptr", lanes), widened("i1", lanes)
    at = w.new(f"getelementptr {scalar}, ptr {base}, {widened('i64', lanes)} {offsets}")
    name = f"llvm.masked.gather.{suffix(kind)}.{suffix(pointers)}"
    w.declare(f"{kind} @{name}({pointers}, i32, {bits}, {kind})")
    place = f"{pointers} {at}, i32 {dtype.itemsize}"
    on = mask or "splat (i1 true)"
    x = w.new(f"call {kind} @{name}({place}, {bits} {on}, {kind} zeroinitializer)")
    return _from_memory(w, x, dtype, lanes)


def _from_memory(w: FunctionBuilder, x: str, dtype: DType, lanes: int) -> str:
    kind = memory_type(dtype, lanes)
    if dtype is bool_:
        return w.new(f"icmp ne {kind} {x}, {splat('i8', '0', lanes)}")
    if dtype is float16:
        return w.new(f"fpext {kind} {x} to {register_type(dtype, lanes)}")
    return bfloat16_to_float(w, x, lanes) if dtype is bfloat16 else x


def store(
    w: FunctionBuilder, x: str, pointer: str, dtype: DType, lanes: int = 1, mask: str | None = None
) -> None:
    """Write `lanes` elements from a pointer on, only those whose bit in `mask` is on. Half
    precision was rounded before, so nothing is lost."""
    kind, register = memory_type(dtype, lanes), register_type(dtype, lanes)
    if dtype is bool_:
        x = w.new(f"zext {register} {x} to {kind}")
    elif dtype is float16:
        x = w.new(f"fptrunc {register} {x} to {kind}")
    elif dtype is bfloat16:
        wide = widened("i32", lanes)
        bits = w.new(f"bitcast {register} {x} to {wide}")
        high = w.new(f"lshr {wide} {bits}, {splat('i32', '16', lanes)}")
        x = w.new(f"trunc {wide} {high} to {kind}")
    if mask is None:
        w.line(f"store {kind} {x}, ptr {pointer}, align {dtype.itemsize}")
        return
    if lanes == 1:
        raise ValueError("a mask needs more than one lane")
    on, name = widened("i1", lanes), f"llvm.masked.store.{suffix(kind)}.p0"
    w.declare(f"void @{name}({kind}, ptr, i32, {on})")
    place = f"ptr {pointer}, i32 {dtype.itemsize}"
    w.line(f"call void @{name}({kind} {x}, {place}, {on} {mask})")


def bfloat16_to_float(w: FunctionBuilder, x: str, lanes: int = 1) -> str:
    short, wide = widened("i16", lanes), widened("i32", lanes)
    bits = w.new(f"zext {short} {x} to {wide}")
    bits = w.new(f"shl {wide} {bits}, {splat('i32', '16', lanes)}")
    return w.new(f"bitcast {wide} {bits} to {widened('float', lanes)}")


def rounded(w: FunctionBuilder, x: str, dtype: DType, lanes: int = 1) -> str:
    """A float rounded to a half dtype, ties to even; other dtypes as they are."""
    if not dtype.is_half:
        return x
    kind, wide = register_type(dtype, lanes), widened("i32", lanes)
    if dtype is float16:
        short = memory_type(dtype, lanes)
        half = w.new(f"fptrunc {kind} {x} to {short}")
        return w.new(f"fpext {short} {half} to {kind}")
    bits = w.new(f"bitcast {kind} {x} to {wide}")
    high = w.new(f"lshr {wide} {bits}, {splat('i32', '16', lanes)}")
    odd = w.new(f"and {wide} {high}, {splat('i32', '1', lanes)}")
    up = w.new(f"add {wide} {odd}, {splat('i32', '32767', lanes)}")
    up = w.new(f"add {wide} {bits}, {up}")
    up = w.new(f"and {wide} {up}, {splat('i32', '-65536', lanes)}")
    kept = w.new(f"bitcast {wide} {up} to {kind}")
    # Adding to the bits of a NaN could make an infinity of it.
    nan = w.new(f"fcmp uno {kind} {x}, {x}")
    quiet = literal(float("nan"), float32, lanes)
    return w.new(f"select {widened('i1', lanes)} {nan}, {kind} {quiet}, {kind} {kept}")


def convert(w: FunctionBuilder, x: str, source: DType, to: DType, lanes: int = 1) -> str:
    """A value as another dtype, as NumPy converts it."""
    if source is to:
        return x
    a, b = register_type(source, lanes), register_type(to, lanes)
    if to is bool_:
        zero = literal(0, source, lanes)
        return w.new(f"fcmp une {a} {x}, {zero}" if source.is_float else f"icmp ne {a} {x}, {zero}")
    if source.is_float and to.is_float:
        return _float_to_float(w, x, source, to, lanes)
    if source.is_float:
        return _float_to_integer(w, x, source, to, lanes)
    signed = source.kind == "int"
    if to.is_float:
        x = w.new(f"{'sitofp' if signed else 'uitofp'} {a} {x} to {b}")
        return rounded(w, x, to, lanes)
    if source is bool_ or source.itemsize < to.itemsize:
        return w.new(f"{'sext' if signed else 'zext'} {a} {x} to {b}")
    return x if a == b else w.new(f"trunc {a} {x} to {b}")


def _float_to_float(w: FunctionBuilder, x: str, source: DType, to: DType, lanes: int) -> str:
    single, double = widened("float", lanes), widened("double", lanes)
    if to is float64:
        return w.new(f"fpext {single} {x} to {double}")
    if source is float64:
        x = w.new(f"fptrunc {double} {x} to {single}")
    return rounded(w, x, to, lanes)


def _float_to_integer(w: FunctionBuilder, x: str, source: DType, to: DType, lanes: int) -> str:
    """Truncated; what the dtype cannot hold becomes its nearest end, NaN 0."""
    a, b = register_type(source, lanes), register_type(to, lanes)
    letter = "s" if to.kind == "int" else "u"
    name = f"llvm.fpto{letter}i.sat.{suffix(b)}.{suffix(a)}"
    w.declare(f"{b} @{name}({a})")
    return w.new(f"call {b} @{name}({a} {x})")
