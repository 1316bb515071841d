"""Numbers of 8 bits and less, which retrograd has no dtype of: float8, float4, int4, int2.

They are held, exactly, in a dtype that has all their values (`NARROW`), beside the number of their
own. Operators that convert and quantize know them, those that only move elements leave them as they
are; anything else must be given other numbers, as in ONNX itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.interop.onnx.dtypes import NARROW, name_of

STORED: dict[int, Any] = {
    17: ml_dtypes.float8_e4m3fn, 18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2,
    20: ml_dtypes.float8_e5m2fnuz, 21: ml_dtypes.uint4, 22: ml_dtypes.int4,
    23: ml_dtypes.float4_e2m1fn, 24: ml_dtypes.float8_e8m0fnu, 25: ml_dtypes.uint2,
    26: ml_dtypes.int2,
}  # fmt: skip
_NUMBERS = {np.dtype(stored): number for number, stored in STORED.items()}
E8M0, FLOAT4, WITHOUT_NEGATIVE_ZERO, WITH_INFINITY = 24, 23, (18, 20), 19


@dataclass(frozen=True)
class Narrow:
    """Numbers of dtype `number` of ONNX, in a tensor that has their values."""

    tensor: Any
    number: int

    @property
    def shape(self) -> Any:
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        return int(self.tensor.ndim)


def from_array(array: Any) -> Any:
    """An array as a value."""
    array = np.asarray(array)
    number = _NUMBERS.get(array.dtype)
    return rg.asarray(array) if number is None else Narrow(held(array), number)


def held(array: Any) -> Any:
    """An array of numbers of few bits as a tensor that has their values."""
    return rg.asarray(np.asarray(array).astype(NARROW[_NUMBERS[np.asarray(array).dtype]].dtype))


def wide(value: Any, what: str) -> Any:
    """A tensor for what computes with it; `BackendError` for numbers of few bits."""
    if isinstance(value, Narrow):
        raise BackendError(
            f"{what} is given numbers of dtype {name_of(value.number)}, and only operators that "
            "convert, quantize or move them take these"
        )
    return value


def rounded(x: Any, number: int, saturate: bool = True, round_mode: str = "up") -> Narrow:
    """The nearest numbers of a dtype of few bits, as `Cast` gives them: floats are rounded to even,
    and with `saturate` to the largest; whole numbers lose their higher bits.

    Source: the specification of `Cast` in ONNX, opset 25.
    """
    dtype = NARROW[number]
    if not dtype.is_float:
        low, high = limits(number)
        whole = x if not x.dtype.is_float else rg.trunc(x)
        whole = rg.bitwise_and(whole.astype(rg.int64) - low, high - low) + low
        return Narrow(whole.astype(dtype), number)
    x = rg.stop_gradient(x).astype(rg.float64)
    found = (
        _power_of_two(x, saturate, round_mode) if number == E8M0 else _float(x, number, saturate)
    )
    return Narrow(found.astype(dtype), number)


def limits(number: int) -> tuple[int, int]:
    """The least and the greatest whole number."""
    found = ml_dtypes.iinfo(STORED[number])
    return int(found.min), int(found.max)


def _table(number: int) -> Any:
    """The finite values that are not negative, in order; a value's place is its code."""
    codes = np.arange(256 if number == E8M0 else 8 if number == FLOAT4 else 128, dtype=np.uint8)
    values = codes.view(STORED[number]).astype(np.float64)
    return values[np.isfinite(values)]


def _float(x: Any, number: int, saturate: bool) -> Any:
    """Rounded to the place in a table of all values; ties go to even places. What would be the next
    value after the last is beyond them."""
    values = _table(number)
    after = 2 * values[-1] - values[-2]
    middle = (values + np.append(values[1:], after)) / 2
    odd = np.arange(len(values)) % 2 == 1
    ends = np.where(odd, middle, np.nextafter(middle, np.inf))  # from here on it is the next one
    size = rg.abs(x)
    place = rg.searchsorted(rg.asarray(ends), size, side="right")
    found = rg.take(rg.asarray(values), rg.minimum(place, len(values) - 1))
    if not saturate and number != FLOAT4:
        beyond = np.inf if number == WITH_INFINITY else np.nan
        found = rg.where(place == len(values), beyond, found)
    found = rg.where(rg.isnan(x), 0.0 if number == FLOAT4 else np.nan, found)
    signed = rg.where(rg.signbit(x), -found, found)
    return rg.where(found == 0, 0.0, signed) if number in WITHOUT_NEGATIVE_ZERO else signed


def _power_of_two(x: Any, saturate: bool, round_mode: str) -> Any:
    values = _table(E8M0)
    last = len(values) - 1
    steps = {
        "up": (values, "left", 0),
        "down": (values, "right", -1),
        "nearest": (1.5 * values, "right", 0),
    }
    if round_mode not in steps:
        raise BackendError(f"Cast with round_mode {round_mode!r}, which is none of {list(steps)}")
    ends, side, shift = steps[round_mode]
    place = rg.searchsorted(rg.asarray(ends), x, side=side) + shift
    found = rg.take(rg.asarray(values), rg.clip(place, 0, last))
    if not saturate:
        found = rg.where((x < values[0]) | (place > last) | rg.isinf(x), np.nan, found)
    return rg.where(rg.isnan(x), np.nan, found)
