"""Scatters by sorted updates: each place takes its own in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.executable import DeviceProgram
from retrograd.runtime.executable import Executable
from tests.nvptx.interpreted_device import InterpretedDevice


def both(f: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    graph = rg.trace(f, *arrays)
    (found,) = DeviceProgram(graph, InterpretedDevice())(list(arrays))
    np.testing.assert_array_equal(found, Executable(graph, simplify=True)(list(arrays))[0])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_in_blocks(dtype: type) -> None:
    """One place takes 40 of 60 updates: two full blocks, and half of one."""
    rng = np.random.default_rng(0)
    index = np.where(rng.random(60) < 0.66, 3, rng.integers(0, 6, 60))
    updates: np.ndarray = rng.normal(size=(60, 3)).astype(dtype)
    x: np.ndarray = np.ones((6, 3), dtype)
    found = both(lambda x, i, u: rg.index_add(x, 0, i, u), x, index, updates)
    expected = x.astype(np.float64)
    np.add.at(expected, index, updates.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_last_update_stays() -> None:
    index = np.array([1, 4, 1, 0, 1])
    updates = np.arange(10, dtype=np.float32).reshape(5, 2)

    def f(x: Any, i: Any, u: Any) -> Any:
        return rg.index_copy(x, 0, i, u)

    found = both(f, np.zeros((5, 2), np.float32), index, updates)
    np.testing.assert_array_equal(found[[0, 1, 4]], updates[[3, 4, 1]])


@pytest.mark.slow
def test_more_updates_than_a_block_of_threads_sorts() -> None:
    rng = np.random.default_rng(0)
    index, updates = rng.integers(0, 50, 3000), rng.normal(size=3000).astype(np.float32)
    both(lambda x, i, u: rg.index_add(x, 0, i, u), np.zeros(50, np.float32), index, updates)


def test_none() -> None:
    x, none = np.ones((3, 2), np.float32), np.zeros(0, np.int64)
    found = both(lambda x, i, u: rg.index_add(x, 0, i, u), x, none, np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(found, x)
