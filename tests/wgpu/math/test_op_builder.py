"""What an op builder writes in WGSL: constants to the bit, dtypes that a device lacks."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from retrograd.ir import DType, bool_, float32, float64, int32, int64
from retrograd.wgpu.dispatch import DeviceFacts
from retrograd.wgpu.math.builder import WgslBuilder
from retrograd.wgpu.math.op_builder import MissingDTypeError, WgslOpBuilder, literal

ALL = DeviceFacts(int64=True, float64=True)


def builder(facts: DeviceFacts = ALL) -> tuple[WgslBuilder, dict[str, None]]:
    known: dict[str, None] = {}
    return WgslBuilder(lambda text: known.update({text: None}), facts), known


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize(
    "value", [0.1, -2.5, 1e-45, 5e-324, -0.0, math.inf, -math.inf, math.nan, 3.4e38, 1e300]
)
def test_floats_are_exact(dtype: DType, value: float) -> None:
    """Zeros with a sign, subnormal and infinite numbers and NaN as bits."""
    w, _ = builder()
    text = literal(w, value, dtype)
    with np.errstate(over="ignore"):
        right = dtype.dtype.type(value)
    if bits := re.fullmatch(r"of_bits_f\d\d\((.*)\)", text):
        kind: Any = np.int32 if dtype is float32 else np.int64
        parts = re.findall(r"-?\d+", bits[1].replace("- ", "-"))
        found = kind(sum(map(int, parts))).view(dtype.dtype)
    else:
        found = dtype.dtype.type(text.strip("()").rstrip("lf"))
    assert found.tobytes() == right.tobytes()


def test_integers() -> None:
    w, _ = builder()
    assert literal(w, -5, int32) == "(-5i)"
    assert literal(w, 7, int64) == "7li"
    assert literal(w, -(2**31), int32) == "(-2147483647i - 1i)"
    assert literal(w, True, bool_) == "true"


def test_a_dtype_that_the_device_lacks() -> None:
    w, _ = builder(DeviceFacts(float64=False))
    with pytest.raises(MissingDTypeError, match="float64"):
        WgslOpBuilder(w, float64)


def test_sums_and_products_are_kept_as_they_are() -> None:
    w, known = builder()
    at = WgslOpBuilder(w, float32)
    at.instruction("fsub", at.instruction("fadd", "x", "y"), "y")
    assert w.text().count("exact_f32(") == 2
    assert "var<private> opaque_zero: i32;" in known


def test_nan_is_seen_by_its_bits() -> None:
    w, known = builder()
    WgslOpBuilder(w, float32).compare("uno", "", "x", "x")
    assert "x != x" not in w.text()
    assert any("fn is_nan_f32" in text for text in known)
