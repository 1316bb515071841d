"""How numbers look in WGSL: constants to the bit, words of memory."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from retrograd.ir import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from retrograd.wgpu.types import (
    literal,
    memory_type,
    register_type,
    stored_bytes,
    stored_dtype,
)

FLOATS = (0.0, -0.0, 0.1, -2.5, 1e-30, 9e29, 1e30, 3.4e38, 1e-45, math.inf, -math.inf, math.nan)


def meant(text: str) -> np.float32 | np.float64:
    """The float that a constant is."""
    if bits := re.fullmatch(r"f32_of\((\d+)u\)", text):
        return np.uint32(int(bits[1])).view(np.float32)
    if halves := re.fullmatch(r"f64_of\((\d+)u, (\d+)u\)", text):
        return np.uint64(int(halves[1]) | int(halves[2]) << 32).view(np.float64)
    return np.float32(text.strip("()").removesuffix("f"))


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("value", FLOATS)
def test_floats_to_the_bit(dtype: DType, value: float) -> None:
    with np.errstate(over="ignore"):
        rounded = np.asarray(value, np.float64).astype(dtype.dtype)
    stored: Any = np.float64 if dtype is float64 else np.float32
    expected = rounded.astype(stored)
    assert meant(literal(rounded, dtype)).tobytes() == expected.tobytes()
    assert meant(literal(rounded, dtype)).dtype == stored


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (int32, -(2**31), "i32(-2147483648)"),  # 2147483648i alone is too large
        (int32, 2**31 - 1, "2147483647i"),
        (int8, -128, "-128i"),
        (uint32, 2**32 - 1, "4294967295u"),
        (uint16, 65535, "65535u"),
        (int64, -(2**63), "(-9223372036854775807li - 1li)"),
        (int64, 2**63 - 1, "9223372036854775807li"),
        (uint64, 2**64 - 1, "18446744073709551615lu"),
        (bool_, True, "true"),
        (bool_, np.False_, "false"),
    ],
)
def test_integers_at_their_ends(dtype: DType, value: Any, text: str) -> None:
    assert literal(value, dtype) == text


def test_no_two_elements_share_a_word() -> None:
    """Memory has words of four bytes or eight; the host converts to these, and loses nothing."""
    for dtype in (bool_, int8, uint8, uint16, float16, bfloat16, int32, uint32, float32):
        assert stored_bytes(dtype) == stored_dtype(dtype).itemsize == 4
        assert np.can_cast(dtype.dtype, stored_dtype(dtype)) or dtype is bfloat16
    for dtype in (int64, uint64, float64):
        assert stored_bytes(dtype) == 8
        assert stored_dtype(dtype) == dtype.dtype
    assert (register_type(bool_), memory_type(bool_)) == ("bool", "u32")  # WGSL stores no bool
    assert {register_type(d) for d in (int8, int32)} == {"i32"}
    assert register_type(float16) == memory_type(float16) == "f32"
