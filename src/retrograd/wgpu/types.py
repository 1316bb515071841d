"""How dtypes look in WGSL: in storage buffers, in registers, as constants.

Buffers hold words of four or eight bytes: what is narrower in NumPy (bool, int8, int16, uint8,
uint16) takes a word of four, so that no two invocations ever write into one word. Half precision
is held as float32 that is rounded after every op, as on the CPU. int64, uint64 and float64 are the
device's own, where it has them.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from retrograd.ir import DType, bool_, float64, int64, uint64

REGISTER = {"bool": "bool", "int64": "i64", "uint64": "u64", "float64": "f64"}
_BY_KIND = {"int": "i32", "uint": "u32", "float": "f32"}
STORED = {"bool": np.uint32, "int": np.int32, "uint": np.uint32, "float": np.float32}
WORD = 4


def register_type(dtype: DType) -> str:
    """The type of a value of a dtype in a shader."""
    return REGISTER.get(dtype.name) or _BY_KIND[dtype.kind]


def memory_type(dtype: DType) -> str:
    """The type of an element in a storage buffer."""
    return "u32" if dtype is bool_ else register_type(dtype)


def stored_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of what a storage buffer holds."""
    return dtype.dtype if dtype.itemsize == 8 else np.dtype(STORED[dtype.kind])


def stored_bytes(dtype: DType) -> int:
    """The bytes of an element in a storage buffer."""
    return 8 if dtype.itemsize == 8 else WORD


def literal(value: Any, dtype: DType) -> str:
    """A constant, exact to the bit. Bits that are no ordinary number go through `f32_of`, whose
    argument no compiler takes for a constant: WGSL has no infinity and no NaN."""
    if dtype is bool_:
        return "true" if value else "false"
    if dtype is float64:
        bits = struct.unpack("<Q", struct.pack("<d", float(value)))[0]
        return f"f64_of({bits & 0xFFFFFFFF}u, {bits >> 32}u)"
    if dtype.is_float:
        return _float(np.float32(value))
    n = int(value)
    if dtype is int64:
        return f"{n}li" if n > -(2**63) else "(-9223372036854775807li - 1li)"
    if dtype is uint64:
        return f"{n}lu"
    return f"{n}u" if dtype.kind == "uint" else f"{n}i" if n > -(2**31) else "i32(-2147483648)"


def _float(value: np.float32) -> str:
    size = abs(float(value))
    plain = value == 0 and not np.signbit(value)
    if plain or 1e-30 < size < 1e30:
        return f"{float(value)!r}f" if float(value) >= 0 else f"({float(value)!r}f)"
    return f"f32_of({int(np.float32(value).view(np.uint32))}u)"
