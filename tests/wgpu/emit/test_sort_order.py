"""The stable order of rows: by a network in workgroup memory, or by digits where one is longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.sort import ArgSort
from retrograd.wgpu.emit.sort_order import BLOCK, _padded
from tests.wgpu.gpu import device_with, needs_gpu, run

Array = np.ndarray[Any, Any]
SMALL = 1 << 10  # bytes of workgroup memory, in which 128 keys of one word fit


def order(x: Array) -> Array:
    return run(ArgSort(axis=x.ndim - 1, descending=False), x)


@needs_gpu
@pytest.mark.parametrize("n", [1, 2, 3, 31, 127, 128, 129, 255, 257])
@pytest.mark.sample(2)
def test_network_and_digits_agree(n: int) -> None:
    """About the length at which one takes the place of the other."""
    x = np.random.default_rng(n).integers(0, max(n // 3, 1), (3, n)).astype(np.int32)
    expected = np.argsort(x, 1, kind="stable")
    np.testing.assert_array_equal(order(x), expected)
    with device_with(workgroup_memory=SMALL):
        np.testing.assert_array_equal(order(x), expected)
    with device_with(workgroup_memory=0):
        np.testing.assert_array_equal(order(x), expected)


@needs_gpu
@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
@pytest.mark.sample(2)
def test_blocks_of_digits(n: int, dtype: Any) -> None:
    info = np.iinfo(dtype)
    r = np.random.default_rng(n)
    x = r.integers(info.min, info.max, (2, n), dtype=dtype, endpoint=True)
    x[1] = np.sort(x[1])[::-1]  # and one that is in order, the other way
    with device_with(workgroup_memory=SMALL):
        np.testing.assert_array_equal(order(x), np.argsort(x, 1, kind="stable"))


@needs_gpu
def test_equal_keys_stay_in_order() -> None:
    x = np.zeros((2, 5000), np.float32)
    x[:, ::2] = -0.0
    np.testing.assert_array_equal(order(x), [np.arange(5000)] * 2)


def test_rows_are_filled_up_to_powers_of_two() -> None:
    found = {n: _padded(n) for n in (1, 2, 3, 4, 5, 1023, 1024, 1025)}
    assert found == {1: 2, 2: 2, 3: 4, 4: 4, 5: 8, 1023: 1024, 1024: 1024, 1025: 2048}
