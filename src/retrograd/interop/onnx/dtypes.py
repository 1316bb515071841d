"""Dtypes of ONNX, by their number in a model."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import BackendError

DTYPES: dict[int, Any] = {
    1: rg.float32, 2: rg.uint8, 3: rg.int8, 4: rg.uint16, 5: rg.int16, 6: rg.int32, 7: rg.int64,
    9: rg.bool, 10: rg.float16, 11: rg.float64, 12: rg.uint32, 13: rg.uint64, 14: rg.complex64,
    15: rg.complex128, 16: rg.bfloat16,
}  # fmt: skip
# What is stored in fewer bits, and in what its values are held, exactly (`narrow.py`).
NARROW: dict[int, Any] = {
    17: rg.float32, 18: rg.float32, 19: rg.float32, 20: rg.float32, 21: rg.uint8, 22: rg.int8,
    23: rg.float32, 24: rg.float32, 25: rg.uint8, 26: rg.int8,
}  # fmt: skip
_OTHERS = {
    8: "string", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
    27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip


def dtype_of(number: int, what: str, narrow: bool = False) -> Any:
    """The dtype; `BackendError` for one that retrograd has not, such as float8 or texts."""
    found = DTYPES.get(number)
    if found is None and narrow:
        found = NARROW.get(number)
    if found is None:
        raise BackendError(f"{what} is of dtype {name_of(number)}, which retrograd does not have")
    return found


def name_of(number: int) -> str:
    return str(DTYPES[number]) if number in DTYPES else _OTHERS.get(number, f"number {number}")


def number_of(dtype: Any) -> int:
    return next(number for number, known in DTYPES.items() if known is dtype)
