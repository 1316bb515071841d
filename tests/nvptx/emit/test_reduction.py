"""Long reductions of few results, in parts: the bits of a processor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.executable import DeviceProgram
from retrograd.runtime.executable import Executable
from tests.nvptx.interpreted_device import InterpretedDevice


def both(f: Callable[..., object], *arrays: np.ndarray) -> tuple[np.ndarray, int]:
    graph = rg.trace(f, *arrays)
    device = InterpretedDevice()
    found = DeviceProgram(graph, device)(list(arrays))[0]
    expected = Executable(graph, simplify=True)(list(arrays))[0]
    np.testing.assert_array_equal(found, expected)
    return found, device.launches


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


def test_a_short_row_is_one_launch() -> None:
    assert both(lambda x: x.sum(1), numbers(3, 1024))[1] == 1


def test_blocks_of_rows() -> None:
    x = numbers(2, 5000)
    found, launches = both(lambda x: x.sum(1), x)
    assert launches == 2
    np.testing.assert_allclose(found, x.sum(1, dtype=np.float64), rtol=1e-5, atol=1e-4)


def test_blocks_of_columns() -> None:
    assert both(lambda x: x.sum(0), numbers(700, 3))[1] == 2


def test_groups_of_blocks() -> None:
    """5000 terms of a column are 79 blocks, which are two groups."""
    x = numbers(5000, 2, dtype=np.float64)
    found, launches = both(lambda x: x.sum(0), x)
    assert launches == 3
    np.testing.assert_allclose(found, x.sum(0), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("terms", [262144, 262145, 600000, 1400000])
def test_batches_in_pairs(terms: int) -> None:
    """A batch of a column has 262144 terms: one, and one more, three, and six."""
    x = numbers(terms, 1, dtype=np.float64)
    found, _ = both(lambda x: (x * 1.5).sum(0), x)
    np.testing.assert_allclose(found, (x * 1.5).sum(0), rtol=1e-11)


@pytest.mark.parametrize(
    "f", [lambda x: x.max(1), lambda x: x.min(0), lambda x: (x * x).mean(), lambda x: x @ x[0]]
)
@pytest.mark.sample(2)
def test_other_reductions(f: Callable[..., object]) -> None:
    both(f, numbers(3, 2500))


def test_products_of_floats_keep_their_order() -> None:
    assert both(lambda x: x.prod(0), numbers(300, 2))[1] == 1


def test_integers_and_booleans() -> None:
    x = np.arange(4000).reshape(2, 2000) % 7
    assert both(lambda x: x.sum(1), x)[1] == 2
    both(lambda x: (x > 6).any(1), x)


def test_special_numbers() -> None:
    x = np.full((2, 3000), -0.0, np.float32)
    x[1, 1700] = np.nan
    found, _ = both(lambda x: (x.sum(1), x.max(1))[0], x)
    assert np.signbit(found[0])
    assert np.isnan(found[1])


def test_a_named_size() -> None:
    graph = rg.trace(lambda x: x.sum(), rg.spec((rg.Dim("n"),)))
    program = DeviceProgram(graph, InterpretedDevice())
    for n in (0, 1, 1024, 1025, 9000):
        x = numbers(n)
        expected = Executable(graph, simplify=True)([x])[0]
        np.testing.assert_array_equal(program([x])[0], expected)
