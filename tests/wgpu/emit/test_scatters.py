"""Scatters on the GPU: the same as updates one after the other, however many meet in a place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.index import ScatterAdd
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from tests.wgpu.gpu import device_with, needs_gpu, run

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]
# Places, updates, elements of each.
CASES = [(5, 10, 3), (5, 300, 3), (1, 3000, 1), (4000, 3000, 2), (50, 9000, 1), (1, 17, 1)]
OPS = {
    ScatterAdd: np.add, ScatterMul: np.multiply, ScatterMax: np.maximum, ScatterMin: np.minimum,
}  # fmt: skip


def case(
    places: int, count: int, width: int, dtype: Any = np.float32
) -> tuple[Array, Array, Array]:
    r = np.random.default_rng((places, count, width))
    x, u = r.normal(size=(places, width)) * 9, r.normal(size=(count, width)) * 9
    return x.astype(dtype), r.integers(0, places, count).astype(np.int32), u.astype(dtype)


def one_by_one(op: Any, x: Array, index: Array, u: Array) -> Array:
    y = x.astype(np.float64) if x.dtype.kind == "f" else x.copy()
    if op is ScatterSet:
        for i, row in zip(index, u, strict=True):
            y[i] = row
        return y
    OPS[op].at(y, index, u)
    return y


@pytest.mark.parametrize("sizes", CASES)
@pytest.mark.parametrize("op", [ScatterSet, *OPS])
@pytest.mark.sample(5)
def test_updates_that_meet(sizes: tuple[int, int, int], op: Any) -> None:
    x, index, u = case(*sizes, np.int32)
    np.testing.assert_array_equal(run(op(axis=0), x, index, u), one_by_one(op, x, index, u))
    x, index, u = case(*sizes)
    if op is ScatterMul:
        u = 1 + u / 1e4
    y, right = run(op(axis=0), x, index, u), one_by_one(op, x, index, u)
    bound = 1e-4 if op is ScatterMul else 1e-6
    np.testing.assert_allclose(y, right, rtol=bound, atol=1e-5 if op is ScatterAdd else 0)


@pytest.mark.parametrize("doubles", [True, False])
@pytest.mark.parametrize("width", [1, 3])
def test_sums_are_kept_in_twice_the_precision(doubles: bool, width: int) -> None:
    """Rows of updates and single numbers, on devices without float64 too."""
    shape = (5000, width)
    x, index, u = np.zeros((2, width), "f4"), np.zeros(5000, np.int32), np.ones(shape, "f4")
    x[0], u[7] = 2.0**24, 0.25
    with device_with(float64=doubles):
        y = run(ScatterAdd(axis=0), x, index, u)
    np.testing.assert_array_equal(y[0], np.float32(2.0**24 + 4999.25))
    np.testing.assert_array_equal(y[1], 0)


def test_the_order_of_products_of_floats_is_kept() -> None:
    """Another one would overflow."""
    x, u = np.full((2, 1), 1e-30, np.float32), np.full((300, 1), 1e10, np.float32)
    u[1::2] = 1e-10
    y = run(ScatterMul(axis=0), x, np.ones(300, np.int32), u)
    np.testing.assert_allclose(y[1], 1e-30, rtol=1e-4)


def test_single_numbers() -> None:
    r = np.random.default_rng(0)
    index, u = r.integers(0, 7, 3000).astype(np.int32), r.normal(size=3000).astype("f4")
    with device_with(float64=False):
        y = run(ScatterAdd(axis=0), np.zeros(7, np.float32), index, u)
    right = np.zeros(7)
    np.add.at(right, index, u.astype(np.float64))
    np.testing.assert_allclose(y, right, rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("shared", [0, 1])
def test_axes_before_the_scattered_one(shared: int) -> None:
    r = np.random.default_rng(0)
    x, u = r.normal(size=(3, 20, 4)).astype("f4"), r.normal(size=(3, 500, 4)).astype("f4")
    index = r.integers(0, 20, (3, 500) if shared else (500,)).astype(np.int32)
    y, right = run(ScatterAdd(axis=1, shared=shared), x, index, u), x.astype(np.float64)
    for k in range(3):
        np.add.at(right[k], index[k] if shared else index, u[k])
    np.testing.assert_allclose(y, right, rtol=1e-6, atol=1e-5)


def test_nan_and_infinity() -> None:
    x, index, u = case(5, 300, 3)
    u[3, 1], u[250, 2] = np.nan, np.inf
    y, right = run(ScatterAdd(axis=0), x, index, u), one_by_one(ScatterAdd, x, index, u)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(right))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(right))
    y = run(ScatterMax(axis=0), x, index, u)
    np.testing.assert_array_equal(y, one_by_one(ScatterMax, x, index, u).astype("f4"))


def test_the_same_bits_every_time() -> None:
    x, index, u = case(50, 9000, 1)
    first = run(ScatterAdd(axis=0), x, index, u)
    assert first.tobytes() == run(ScatterAdd(axis=0), x, index, u).tobytes()
