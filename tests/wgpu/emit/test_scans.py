"""Scans on the GPU: rows, few long ones in blocks, other axes; accuracy; NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.scan import (
    CumArgMax,
    CumArgMin,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    LinearScan,
)
from tests.wgpu.gpu import device_with, needs_gpu, run

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]
SHAPES = [((5,), 0), ((2, 3000), 1), ((1, 20000), 1), ((30, 4, 7), 1), ((300, 2), 0), ((0, 3), 1)]
DOUBLES = pytest.mark.parametrize("doubles", [True, False], ids=["doubles", "floats"])


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return (np.random.default_rng(1).normal(size=shape) * 9).astype(dtype)


def flipped(f: Any, x: Array, axis: int, reverse: bool) -> Array:
    return np.flip(f(np.flip(x, axis), axis), axis) if reverse else f(x, axis)


@DOUBLES
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.sample(4)
def test_running_sums(shape: tuple[int, ...], axis: int, reverse: bool, doubles: bool) -> None:
    """Of floats as if in twice the precision, on devices without float64 too."""
    x, i = numbers(shape), numbers(shape, np.int32)
    op = CumSum(axis=axis, reverse=reverse)
    with device_with(float64=doubles):
        y = run(op, x)
    right = flipped(lambda a, k: np.cumsum(a.astype(np.float64), k), x, axis, reverse)
    size = np.abs(right) + 1e-3
    assert (np.abs(y - right) <= 2.0**-23 * size).all()
    np.testing.assert_array_equal(run(op, i), flipped(np.cumsum, i, axis, reverse).astype("i4"))


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.sample(3)
def test_running_extrema(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    x = numbers(shape)
    if x.size > 9:
        x.flat[7] = np.nan
    for op, place, f in (
        (CumMax, CumArgMax, np.maximum.accumulate),
        (CumMin, CumArgMin, np.minimum.accumulate),
    ):
        y = run(op(axis=axis, reverse=reverse), x)
        np.testing.assert_array_equal(y, flipped(f, x, axis, reverse))
        at = run(place(axis=axis, reverse=reverse), x)
        np.testing.assert_array_equal(np.take_along_axis(x, at, axis), y)
        np.testing.assert_array_equal(at, place(axis=axis, reverse=reverse).reference(x))


def test_running_products() -> None:
    x = 1 + numbers((2, 2000)) / 1e4
    y = run(CumProd(axis=1), x)
    np.testing.assert_allclose(y, np.cumprod(x.astype(np.float64), 1), rtol=1e-4)
    i = np.array([[3, -2, 5, 7]], np.int32)
    np.testing.assert_array_equal(run(CumProd(axis=1), i), np.cumprod(i, 1))


@DOUBLES
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(reverse: bool, doubles: bool) -> None:
    r = np.random.default_rng(2)
    a = r.uniform(0.5, 1.0, (2, 3000)).astype(np.float32)
    a[0, 100:103] = 0  # which absorbs what is before
    x = r.normal(size=a.shape).astype(np.float32)
    op = LinearScan(axis=1, reverse=reverse)
    with device_with(float64=doubles):
        y = run(op, a, x)
    right, state = np.zeros(a.shape), np.zeros(2)
    for k in reversed(range(3000)) if reverse else range(3000):
        state = state * a[:, k] + x[:, k]
        right[:, k] = state
    np.testing.assert_allclose(y, right, rtol=3e-7, atol=1e-6)


def test_long_sums_keep_small_terms() -> None:
    """Ones behind a number in which one of them alone is lost."""
    x = np.ones((1, 5000), np.float32)
    x[0, 0] = 2.0**24
    for doubles in (True, False):
        with device_with(float64=doubles):
            y = run(CumSum(axis=1), x)
        np.testing.assert_array_equal(y[0], np.cumsum(x[0], dtype=np.float64).astype(np.float32))


def test_infinities() -> None:
    x = np.array([[1, np.inf, 2, -np.inf, 3, 1, 1]], np.float32)
    for doubles in (True, False):
        with device_with(float64=doubles):
            y = run(CumSum(axis=1), x)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(y, np.cumsum(x, 1))
