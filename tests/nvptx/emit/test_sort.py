"""Sorting: NumPy's stable order, NaN last, in one block of threads and in several."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.emit.sort import padded, word_count
from retrograd.nvptx.executable import DeviceProgram
from tests.nvptx.interpreted_device import InterpretedDevice


@pytest.mark.parametrize(("rows", "n"), [(3, 7), pytest.param(2, 2100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64])
@pytest.mark.sample(2)
def test_order(rows: int, n: int, dtype: type) -> None:
    x: np.ndarray = np.random.default_rng(n).integers(0, n // 2, (rows, n)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[0, [1, 4]] = np.nan
        x[1, [0, 2]] = -0.0, 0.0
    graph = rg.trace(lambda x: (rg.sort(x), rg.argsort(x, stable=True)), x)
    found, order = DeviceProgram(graph, InterpretedDevice())([x])
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(found, np.sort(x))


def test_rows_are_filled_up_to_powers_of_two() -> None:
    assert [padded(n) for n in (0, 1, 2, 3, 1024, 1025)] == [1, 1, 2, 4, 1024, 2048]
    assert word_count(3, 300) == 2048
    assert word_count(0, 5) == 0
