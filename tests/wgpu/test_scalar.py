"""Conversions and roundings in shaders, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from retrograd.ops.elementwise import Cast
from retrograd.wgpu.scalar import ELEMENTWISE, wrapped
from tests.wgpu.gpu import needs_gpu, run

pytestmark = needs_gpu
INTEGERS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
FLOATS = (float16, bfloat16, float32, float64)


def ends(dtype: DType) -> Any:
    """Integers about which something changes: ends, and powers of two by their sides."""
    info = np.iinfo(dtype.dtype)
    near = [int(s * 2**k + d) for k in range(64) for s in (-1, 1) for d in (-1, 0, 1)]
    return np.array(sorted({x for x in near if info.min <= x <= info.max} | {0}), dtype.dtype)


def clipped(x: Any, to: DType) -> Any:
    """What a float is as an integer: truncated, the nearest end, 0 for NaN."""
    info = np.iinfo(to.dtype)
    inside = [0.0 if np.isnan(v) else float(np.clip(v, -1e30, 1e30)) for v in np.asarray(x, float)]
    return np.array([min(max(int(v), info.min), info.max) for v in inside], to.dtype)


@pytest.mark.parametrize("source", INTEGERS, ids=str)
@pytest.mark.parametrize("to", [*INTEGERS, bool_, float32, float64], ids=str)
@pytest.mark.sample(3)
def test_integers(source: DType, to: DType) -> None:
    x = ends(source)
    found = run(Cast(to), x)
    assert found.dtype == to.dtype
    np.testing.assert_array_equal(found, x.astype(to.dtype))


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("to", [*INTEGERS, bool_], ids=str)
@pytest.mark.sample(3)
def test_floats_to_integers(source: DType, to: DType) -> None:
    with np.errstate(over="ignore"):
        near = np.array([*ends(int64).astype(np.float64), 0.5, -0.5, 2.75, -0.99, 1e30, -1e30,
                         np.inf, -np.inf, np.nan, -0.0, 1e-40], source.dtype)  # fmt: skip
    expected = near.astype(np.float64) != 0 if to is bool_ else clipped(near, to)
    np.testing.assert_array_equal(run(Cast(to), near), expected)


@pytest.mark.parametrize("to", [float16, bfloat16], ids=str)
def test_halves_are_rounded_to_the_nearest_even(to: DType) -> None:
    """Every half, what lies in the middle of two, and the floats beside that."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(to.dtype).astype(np.float32)
    halves = halves[np.isfinite(halves)]
    wide = np.sort(halves).astype(np.float64)
    with np.errstate(over="ignore"):
        middle = ((wide[1:] + wide[:-1]) / 2).astype(np.float32)
        x = np.concatenate([halves, middle, np.nextafter(middle, np.float32(np.inf)),
                            np.nextafter(middle, np.float32(-np.inf)),
                            np.array([65519.9, 65520, 3.4e38, -3.4e38, np.inf, -np.inf],
                                     np.float32)])  # fmt: skip
        expected = x.astype(to.dtype)
    found = run(Cast(to), x)
    normal = np.abs(x) >= np.finfo(np.float32).tiny  # GPUs may take others for 0
    np.testing.assert_array_equal(found[normal].view("u2"), expected[normal].view("u2"))
    assert np.isnan(run(Cast(to), np.array([np.nan], np.float32)).astype(np.float32))[0]


def test_narrow_integers_go_as_far_as_they_go() -> None:
    assert wrapped("x", int32) == "x"
    assert wrapped("x", uint8) == "((x) & 255u)"
    x, y = np.array([127, -128, 100], np.int8), np.array([1, -1, 100], np.int8)
    from retrograd.ops import elementwise as el

    np.testing.assert_array_equal(run(el.add, x, y), x + y)
    np.testing.assert_array_equal(run(el.mul, x, y), x * y)
    u = np.array([255, 0, 200], np.uint8)
    np.testing.assert_array_equal(run(el.sub, u, u[::-1].copy()), u - u[::-1])


def test_every_elementwise_op_has_a_shader() -> None:
    """But for what is made of others before a graph gets here, and what `supports` says."""
    from retrograd import wgpu
    from retrograd.ops.elementwise import ELEMENTWISE as OPS

    for name in [name for name in OPS if name not in ELEMENTWISE]:
        dtype = float32 if "float" in OPS[name].kinds else int32
        given = [np.full(3, 0.25 if dtype is float32 else 1, dtype.dtype)] * (OPS[name].arity or 1)
        if wgpu.supports(name, dtype) == "native":
            run(OPS[name], *given)
            continue
        with pytest.raises(rg.BackendError, match=name):
            run(OPS[name], *given)
