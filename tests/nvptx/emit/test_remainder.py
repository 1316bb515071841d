"""`fmod` of devices: exactly that of the C library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.executable import DeviceProgram
from tests.nvptx.interpreted_device import InterpretedDevice


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_remainder(dtype: type) -> None:
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    special: list[Any] = [0.0, -0.0, 1.0, -1.0, 3.5, np.inf, -np.inf, np.nan, info.max, info.tiny]
    special += [info.smallest_subnormal, -7 * info.smallest_subnormal, 2 * info.tiny, 1e30]
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    random = [rng.normal(size=400) * 2.0 ** rng.integers(-60, 60, 400) for _ in range(2)]
    x: np.ndarray
    y: np.ndarray
    x, y = (np.concatenate(p).astype(dtype) for p in zip((a, b), random, strict=True))
    graph = rg.trace(rg.fmod, x, y)
    (found,) = DeviceProgram(graph, InterpretedDevice())([x, y])
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
