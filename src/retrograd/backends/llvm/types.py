"""How dtypes look in LLVM: in registers, in memory, as constants, and between one another.

Half precision lives in registers as `float`, already rounded to the half dtype after every op. In
memory float16 is `half`; bfloat16 is its 16 bits, converted by integer arithmetic, because LLVM's
own conversion flushes denormals on some CPUs and calls a library on others. Booleans are `i1` in
registers and a byte in memory.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from retrograd.backends.llvm.writer import Writer
from retrograd.ir import DType, bfloat16, bool_, float16, float32, float64

_FLOATS = {float16: "float", bfloat16: "float", float32: "float", float64: "double"}
_FLOATS_IN_MEMORY = {float16: "half", bfloat16: "i16", float32: "float", float64: "double"}


def register_type(dtype: DType) -> str:
    if dtype is bool_:
        return "i1"
    return _FLOATS[dtype] if dtype.is_float else f"i{8 * dtype.itemsize}"


def memory_type(dtype: DType) -> str:
    if dtype is bool_:
        return "i8"
    return _FLOATS_IN_MEMORY[dtype] if dtype.is_float else f"i{8 * dtype.itemsize}"


def suffix(kind: str) -> str:
    """A register type as it stands in the names of LLVM's intrinsics."""
    return {"float": "f32", "double": "f64"}.get(kind, kind)


def literal(value: Any, dtype: DType) -> str:
    """A constant, exact to the bit."""
    if dtype is bool_:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    if dtype is not float64:
        with np.errstate(over="ignore"):
            value = np.float32(value)
    # LLVM writes the constants of `float`, too, as the bits of a double.
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"


def load(w: Writer, pointer: str, dtype: DType) -> str:
    """Read one element."""
    kind = memory_type(dtype)
    x = w.new(f"load {kind}, ptr {pointer}, align {dtype.itemsize}")
    if dtype is bool_:
        return w.new(f"icmp ne i8 {x}, 0")
    if dtype is float16:
        return w.new(f"fpext half {x} to float")
    return bfloat16_to_float(w, x) if dtype is bfloat16 else x


def store(w: Writer, x: str, pointer: str, dtype: DType) -> None:
    """Write one element. Half precision was rounded before, so nothing is lost."""
    kind = memory_type(dtype)
    if dtype is bool_:
        x = w.new(f"zext i1 {x} to i8")
    elif dtype is float16:
        x = w.new(f"fptrunc float {x} to half")
    elif dtype is bfloat16:
        bits = w.new(f"bitcast float {x} to i32")
        x = w.new(f"trunc i32 {w.new(f'lshr i32 {bits}, 16')} to i16")
    w.line(f"store {kind} {x}, ptr {pointer}, align {dtype.itemsize}")


def bfloat16_to_float(w: Writer, x: str) -> str:
    wide = w.new(f"shl i32 {w.new(f'zext i16 {x} to i32')}, 16")
    return w.new(f"bitcast i32 {wide} to float")


def rounded(w: Writer, x: str, dtype: DType) -> str:
    """A float rounded to a half dtype, ties to even; other dtypes as they are."""
    if dtype is float16:
        half = w.new(f"fptrunc float {x} to half")
        return w.new(f"fpext half {half} to float")
    if dtype is bfloat16:
        bits = w.new(f"bitcast float {x} to i32")
        odd = w.new(f"and i32 {w.new(f'lshr i32 {bits}, 16')}, 1")
        up = w.new(f"add i32 {bits}, {w.new(f'add i32 {odd}, 32767')}")
        kept = w.new(f"bitcast i32 {w.new(f'and i32 {up}, -65536')} to float")
        # Adding to the bits of a NaN could make an infinity of it.
        nan = w.new(f"fcmp uno float {x}, {x}")
        quiet = literal(float("nan"), float32)
        return w.new(f"select i1 {nan}, float {quiet}, float {kept}")
    return x


def convert(w: Writer, x: str, source: DType, to: DType) -> str:
    """A value as another dtype, as NumPy converts it."""
    if source is to:
        return x
    a, b = register_type(source), register_type(to)
    if to is bool_:
        zero = literal(0, source)
        return w.new(f"fcmp une {a} {x}, {zero}" if source.is_float else f"icmp ne {a} {x}, {zero}")
    if source.is_float and to.is_float:
        return _float_to_float(w, x, source, to)
    if source.is_float:
        return _float_to_integer(w, x, source, to)
    signed = source.kind == "int"
    if to.is_float:
        x = w.new(f"{'sitofp' if signed else 'uitofp'} {a} {x} to {b}")
        return rounded(w, x, to)
    if source is bool_ or source.itemsize < to.itemsize:
        return w.new(f"{'sext' if signed else 'zext'} {a} {x} to {b}")
    return x if a == b else w.new(f"trunc {a} {x} to {b}")


def _float_to_float(w: Writer, x: str, source: DType, to: DType) -> str:
    if to is float64:
        return w.new(f"fpext float {x} to double")
    if source is float64:
        x = w.new(f"fptrunc double {x} to float")
    return rounded(w, x, to)


def _float_to_integer(w: Writer, x: str, source: DType, to: DType) -> str:
    """Truncated; what the dtype cannot hold becomes its nearest end, NaN 0."""
    a, b = register_type(source), register_type(to)
    letter = "s" if to.kind == "int" else "u"
    name = f"llvm.fpto{letter}i.sat.{b}.{suffix(a)}"
    w.declare(f"{b} @{name}({a})")
    return w.new(f"call {b} @{name}({a} {x})")
