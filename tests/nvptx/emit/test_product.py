"""Matrix products: the kernel that is shipped, by the interpreter, to the bit as on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.executable import DeviceProgram
from retrograd.runtime.executable import Executable
from tests.nvptx.interpreted_device import InterpretedDevice


def both(f: Callable[..., Any], *arrays: np.ndarray, kind: str = "gemm") -> np.ndarray:
    graph = rg.trace(f, *arrays)
    program = DeviceProgram(graph, InterpretedDevice())
    assert kind in {nest.kind for k in program.plan.every for nest in k.nests}
    (found,) = program(list(arrays))
    (expected,) = Executable(graph, simplify=True)(list(arrays))
    np.testing.assert_array_equal(found, expected)
    return found


def numbers(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize(
    ("a", "b", "f"),
    [
        ((70, 100), (100, 130), lambda a, b: a @ b),
        ((100, 70), (100, 130), lambda a, b: a.T @ b),
        ((70, 40), (66, 40), lambda a, b: a @ b.T),
        ((2, 33, 100), (2, 100, 130), lambda a, b: a @ b),
        ((33, 300), (300, 64), lambda a, b: a @ b),  # several blocks of products
    ],
)
@pytest.mark.sample(1)
def test_products(a: tuple[int, ...], b: tuple[int, ...], f: Callable[..., Any]) -> None:
    x, y = numbers(*a), numbers(*b, seed=1)
    found = both(f, x, y)
    wide = f(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(found, wide, rtol=0, atol=4e-5)


@pytest.mark.slow
@pytest.mark.parametrize("k", [128, 129, 200, 8192 + 130])
def test_lengths_of_sums(k: int) -> None:
    both(lambda a, b: a @ b, numbers(32, k), numbers(k, 64, seed=1))


@pytest.mark.slow
def test_float64() -> None:
    x, y = numbers(40, 100, dtype=np.float64), numbers(100, 90, dtype=np.float64, seed=1)
    np.testing.assert_allclose(both(lambda a, b: a @ b, x, y), x @ y, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
def test_convolutions_read_the_windows_where_they_lie() -> None:
    image, kernel = numbers(2, 4, 12, 12), numbers(8, 4, 3, 3, seed=1)
    both(lambda x, w: rg.nn.functional.conv2d(x, w, padding=1), image, kernel)


@pytest.mark.slow
def test_gradients_of_convolutions() -> None:
    image, kernel = numbers(2, 4, 12, 12), numbers(8, 4, 3, 3, seed=1)

    def loss(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
        return (rg.nn.functional.conv2d(x, w, padding=1) ** 2).sum()

    for which in (0, 1):
        both(rg.grad(loss, which), image, kernel)
