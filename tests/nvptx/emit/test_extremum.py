"""Where rows have their extrema: NumPy's answer, ties and NaN included."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.executable import DeviceProgram
from tests.nvptx.interpreted_device import InterpretedDevice


@pytest.mark.parametrize("n", [1, 2, 31, 33, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
@pytest.mark.sample(2)
def test_first_extremum(n: int, dtype: type) -> None:
    x: np.ndarray = np.random.default_rng(n).integers(0, 4, (5, n)).astype(dtype)
    graph = rg.trace(lambda x: (x.argmax(1), x.argmin(1)), x)
    most, least = DeviceProgram(graph, InterpretedDevice())([x])
    np.testing.assert_array_equal(most, x.argmax(1))
    np.testing.assert_array_equal(least, x.argmin(1))


def test_the_first_nan_counts() -> None:
    x = np.ones((3, 70), np.float32)
    x[0, [40, 12]] = np.nan
    x[1, 69] = np.inf
    x[2, [0, 69]] = np.nan
    graph = rg.trace(lambda x: (x.argmax(1), x.argmin(1)), x)
    most, least = DeviceProgram(graph, InterpretedDevice())([x])
    np.testing.assert_array_equal(most, [12, 69, 0])
    np.testing.assert_array_equal(least, [12, 0, 0])
