"""Sorting and searching on the GPU, against NumPy: stable, NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from tests.wgpu.gpu import needs_gpu, run

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]
SHAPES = [(1,), (7,), (3, 100), (2, 2048), (2, 3000), (1, 20000), (0,), (4, 0)]
DTYPES = [np.float32, np.int32, np.bool_, np.uint8, np.int64, np.float64]


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    """With equal ones, and, of floats, every special value."""
    r = np.random.default_rng(shape)
    if dtype is np.bool_:
        return r.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        x = r.integers(0, 50, shape).astype(dtype)
        x.flat[::9], x.flat[1::9] = info.min, info.max
        return x
    x = r.normal(size=shape).astype(dtype)
    for k, value in enumerate((np.nan, 0.0, -0.0, np.inf, -np.inf, 1e-40)):
        x.flat[k :: 11 + k] = value
    return x


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.sample(4)
def test_order(shape: tuple[int, ...], dtype: Any, descending: bool) -> None:
    """To the bit: of equal numbers the first stays first, in descending order too."""
    x = numbers(shape, dtype)
    axis = len(shape) - 1
    key = x
    if descending:
        key = -x if x.dtype.kind == "f" else ~x
    order = np.argsort(key, -1, kind="stable")
    np.testing.assert_array_equal(run(ArgSort(axis=axis, descending=descending), x), order)
    y, right = run(Sort(axis=axis, descending=descending), x), np.take_along_axis(x, order, -1)
    assert y.dtype == right.dtype
    np.testing.assert_array_equal(y, right)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(y), np.signbit(right))


def test_another_axis() -> None:
    x = numbers((40, 3), np.float32)
    np.testing.assert_array_equal(run(Sort(axis=0), x), np.sort(x, 0, kind="stable"))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_search(dtype: Any, right: bool) -> None:
    row, values = np.sort(numbers((300,), dtype)), numbers((4, 50), dtype)
    found = run(SearchSorted(right=right), row, values)
    side: Any = "right" if right else "left"
    np.testing.assert_array_equal(found, np.searchsorted(row, values, side))
