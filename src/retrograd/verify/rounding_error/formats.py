"""Floating-point formats: what one rounding may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.ir import DType

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FloatFormat:
    """Numbers of `digits` binary digits, the smallest normal one `2**least`. To round to the
    nearest changes x by at most `u |x|`, the unit roundoff, or half of the smallest subnormal."""

    digits: int
    least: int
    largest: float

    @property
    def u(self) -> float:
        """The unit roundoff, half of what NumPy calls `eps`."""
        return float(2.0**-self.digits)

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return float(2.0**self.least)

    @property
    def subnormal(self) -> float:
        """The smallest number above zero."""
        return float(2.0 ** (self.least - self.digits + 1))

    @property
    def decimals(self) -> float:
        """How many decimal digits a rounded number has."""
        return float(-np.log10(self.u))

    def ulp(self, x: Any) -> Array:
        """The distance from x to the next number of the format, away from zero."""
        wide = np.abs(np.asarray(x, np.float64))
        lowest = self.least + 1
        exponent = np.where(wide == 0, lowest, np.frexp(wide)[1])
        return np.ldexp(1.0, np.maximum(exponent, lowest) - self.digits)


FORMATS = {
    "float16": FloatFormat(11, -14, 65504.0),
    "bfloat16": FloatFormat(8, -126, float.fromhex("0x1.fep127")),
    "float32": FloatFormat(24, -126, float(np.finfo(np.float32).max)),
    "float64": FloatFormat(53, -1022, float(np.finfo(np.float64).max)),
}


def format_of(dtype: DType) -> FloatFormat:
    """The format of a real floating dtype; of a complex one that of its parts."""
    return FORMATS[(dtype.real if dtype.is_complex else dtype).name]


def inside(dtype: DType) -> FloatFormat:
    """The format that an operation computes in: half precision in float32."""
    return FORMATS["float32"] if dtype.is_half else format_of(dtype)
