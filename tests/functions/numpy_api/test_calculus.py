"""Slopes, integrals, interpolation, convolution: against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import agree, numbers

T = np.array([-1.5, 0.25, 1.0, 2.5, 2.75])


def test_gradient() -> None:
    x = numbers(0, (5, 4))
    for order in (1, 2):
        agree("gradient", x, edge_order=order)
        agree("gradient", x, 0.5, edge_order=order)
        agree("gradient", x, T, 2.0, edge_order=order)
        agree("gradient", x, T, axis=0, edge_order=order)
        agree("gradient", x, T, T[:4], edge_order=order)
        agree("gradient", x, axis=(1, 0), edge_order=order)
    agree("gradient", numbers(0, (4,), "int64"))
    agree("gradient", numbers(0, (4,), "complex128"))
    agree("gradient", numbers(0, (2,)))
    agree("gradient", numbers(0, (1,)))
    agree("gradient", numbers(0, (2,)), edge_order=2)
    agree("gradient", x, T)
    agree("gradient", x, 1.0, 2.0, 3.0)
    agree("gradient", x, T[:3], axis=0)
    with pytest.raises(rg.OptionError):
        rg.gradient(rg.asarray(x), edge_order=3)


def test_gradient_of_a_function_is_another_word() -> None:
    with pytest.raises(rg.ArgumentError, match=r"rg.grad\(f\)"):
        rg.gradient(lambda x: x * x)


def test_trapezoid() -> None:
    y = numbers(1, (5, 4))
    for axis in (0, 1, -1):
        agree("trapezoid", y, axis=axis)
        agree("trapezoid", y, dx=0.5, axis=axis)
        agree("trapezoid", y, numbers(2, (5, 4)), axis=axis)
    agree("trapezoid", y, T, axis=0)
    agree("trapezoid", y, T)


def test_differences() -> None:
    agree("ediff1d", numbers(0, (2, 3)), [1.0, 2.0], 3.0)
    agree("ediff1d", numbers(0, (3,), "int64"), to_end=7)
    agree("ediff1d", numbers(0, (1,)))


def test_unwrap() -> None:
    x = 3 * numbers(1, (4, 6))
    for axis in (0, 1):
        agree("unwrap", x, axis=axis, tolerance=1e-12)
        agree("unwrap", x, discont=4.0, axis=axis, tolerance=1e-12)
        agree("unwrap", x, axis=axis, period=2.0)
    agree("unwrap", numbers(1, (9,), "int64") * 2, period=5)
    agree("unwrap", numbers(1, (9,), "int64") * 2, period=4)


def test_interp() -> None:
    x = np.concatenate([np.linspace(-3, 4, 15), T])
    agree("interp", x, T, numbers(3, (5,)))
    agree("interp", x, T, numbers(3, (5,)), left=-9.0, right=7.0)
    agree("interp", x, T, numbers(3, (5,)), period=3.5)
    agree("interp", x, T[::-1].copy(), numbers(3, (5,)), period=9.0)
    agree("interp", x, T, numbers(3, (5,), "complex128"))
    agree("interp", x, T[:1], numbers(3, (1,)))
    agree("interp", 0.5, T, numbers(3, (5,)))
    agree("interp", x, T[:0], T[:0])
    agree("interp", x, T, T[:3])
    agree("interp", np.array([0.5, np.nan]), T, T)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name: str) -> None:
    for dtype in ("float64", "int64", "complex128"):
        for n, m in ((1, 1), (5, 1), (5, 2), (5, 3), (2, 5), (4, 4), (1, 3)):
            for mode in ("full", "same", "valid"):
                agree(name, numbers(n, (n,), dtype), numbers(m + 9, (m,), dtype), mode)
    agree(name, numbers(1, (0,)), numbers(1, (2,)))
    agree(name, numbers(1, (2,)), numbers(1, (2,)), "circular")


def test_slopes_of_an_interpolation() -> None:
    """Beyond the ends it is flat, at a point that of the piece to its right."""
    f: Any = rg.grad(lambda x: rg.interp(x, [0.0, 1.0, 2.0], [0.0, 3.0, 1.0]).sum())
    assert f(rg.tensor([-1.0, 0.0, 0.5, 1.0, 1.5, 5.0])).tolist() == [0, 3, 3, -2, -2, 0]
