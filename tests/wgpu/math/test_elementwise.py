"""Elementwise ops at the ends of their dtypes, against what they mean (the op's reference)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from retrograd.ops.elementwise import ELEMENTWISE
from tests.wgpu.gpu import needs_gpu, run

pytestmark = needs_gpu
INTEGERS = [np.int8, np.uint8, np.int32, np.uint32, np.int64]
BINARY = ["add", "sub", "mul", "floor_div", "mod", "max", "min", "pow", "shift_left", "shift_right"]
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -3e38, np.inf, -np.inf, np.nan)


def pairs(values: Any, dtype: Any) -> tuple[Any, Any]:
    """Each with each."""
    a, b = zip(*itertools.product(values, values), strict=True)
    return np.array(a, dtype), np.array(b, dtype)


def meaning(name: str, *xs: Any) -> Any:
    with np.errstate(all="ignore"):
        return ELEMENTWISE[name].reference(*xs)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.sample(4)
def test_integers_wrap_and_divisions_by_zero_are_zero(name: str, dtype: Any) -> None:
    info = np.iinfo(dtype)
    few = sorted({info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max}
                 | ({-1, -2, -7} if info.min else set()))  # fmt: skip
    a, b = pairs(few, dtype)
    if name.startswith("shift"):
        b = (np.abs(b.astype(np.int64)) % (8 * np.dtype(dtype).itemsize)).astype(dtype)
    expected = meaning(name, a, b)
    found = run(ELEMENTWISE[name], a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["max", "min", "mod", "floor_div", "copysign", "zmul", "zdiv",
                                  "zzmul", "hypot", "atan2", "eq", "lt", "nextafter"])  # fmt: skip
@pytest.mark.sample(4)
def test_special_floats(name: str) -> None:
    a, b = pairs(SPECIAL, np.float32)
    expected, found = meaning(name, a, b), run(ELEMENTWISE[name], a, b)
    if name == "nextafter":  # to subnormal numbers, which GPUs may take for 0
        plain = (np.abs(expected) == 0) | (np.abs(expected) >= np.finfo(np.float32).tiny)
        expected, found = expected[plain], found[plain]
    np.testing.assert_array_max_ulp(
        np.nan_to_num(found.astype(np.float64), nan=7e77),
        np.nan_to_num(expected.astype(np.float64), nan=7e77),
        maxulp=1 << 31,  # of float64: a few of float32
    )
    zero = (expected == 0) & ~np.isnan(np.asarray(expected, np.float32))
    if name in ("copysign", "zmul"):
        np.testing.assert_array_equal(np.signbit(found)[zero], np.signbit(expected)[zero])


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "trunc", "round", "signbit", "isnan",
                                  "isinf", "isfinite", "relu", "abs", "neg"])  # fmt: skip
@pytest.mark.sample(3)
def test_one_float(name: str) -> None:
    x = np.array([*SPECIAL, 1.5, 2.5, -1.5, -0.5, 8388609.0, -0.1, 2**31, 4e9], np.float32)
    expected, found = meaning(name, x), run(ELEMENTWISE[name], x)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne"])
def test_truth(name: str) -> None:
    a, b = pairs([False, True], np.bool_)
    np.testing.assert_array_equal(run(ELEMENTWISE[name], a, b), meaning(name, a, b))
