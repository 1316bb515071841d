"""Running sums and extrema along rows, whole and in parts: the bits of a processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.executable import DeviceProgram
from retrograd.runtime.executable import Executable
from tests.nvptx.interpreted_device import InterpretedDevice


def both(f: Callable[..., Any], x: np.ndarray) -> int:
    graph, device = rg.trace(f, x), InterpretedDevice()
    found = DeviceProgram(graph, device)([x])[0]
    np.testing.assert_array_equal(found, Executable(graph, simplify=True)([x])[0])
    return device.launches


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("n", [5, 17, 300])
@pytest.mark.parametrize("f", [lambda x: rg.cumsum(x, 1), lambda x: rg.cumprod(x, 1)])
@pytest.mark.sample(1)
def test_short_rows(n: int, f: Callable[..., Any]) -> None:
    assert both(f, numbers(3, n)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: rg.cumsum(x, 1),
        lambda x: rg.flip(rg.cumsum(rg.flip(x, 1), 1), 1),
        lambda x: rg.cummax(x, 1)[0],
        rg.grad(lambda x: (rg.cumsum(x, 1) ** 2).sum()),
    ],
)
@pytest.mark.sample(2)
def test_long_rows(f: Callable[..., Any], dtype: type) -> None:
    assert both(f, numbers(2, 1003, dtype=dtype)) >= 3


def test_integers() -> None:
    assert both(lambda x: rg.cumsum(x, 1), np.arange(2000).reshape(2, 1000) % 7) == 3


@pytest.mark.slow
def test_a_named_size() -> None:
    graph = rg.trace(lambda x: rg.cumsum(x, 0), rg.spec((rg.Dim("n"),)))
    program = DeviceProgram(graph, InterpretedDevice())
    for n in (0, 3, 2000):
        expected = Executable(graph, simplify=True)([numbers(n)])[0]
        np.testing.assert_array_equal(program([numbers(n)])[0], expected)
