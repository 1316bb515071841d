"""Edges of bins and histograms over several axes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import agree, numbers


def test_edges() -> None:
    x = numbers(0, (30,))
    for bins in (1, 4, [0.0, 1.0, 5.0], "auto", "fd", "sqrt", "sturges"):
        agree("histogram_bin_edges", x, bins)
    agree("histogram_bin_edges", x, 3, (-1.0, 2.0))


def test_grids() -> None:
    x, y, w = numbers(0, (30,)), numbers(1, (30,)), numbers(2, (30,))
    bins: Any
    for bins in (3, [2, 4], [[-2.0, 0.0, 1.0], [0.0, 2.5]], np.array([-7.0, 0.0, 3.0])):
        agree("histogram2d", x, y, bins)
        agree("histogram2d", x, y, bins, density=True)
    agree("histogram2d", x, y, 2, [[-1.0, 1.0], [0.0, 3.0]], weights=w)
    points = np.stack([x, y, w], 1)
    for bins in (2, (2, 3, 1)):
        agree("histogramdd", points, bins)
    agree("histogramdd", points, 2, weights=w)
    agree("histogramdd", points, (2, 3))
    with pytest.raises(rg.ShapeError):
        rg.histogramdd(rg.ones((2, 2, 2)))


def test_gradient_of_weights() -> None:
    w = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    counts = rg.histogram2d([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], 2, weights=w)[0]
    (counts * [[1.0, 10.0], [100.0, 1000.0]]).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [1.0, 10.0, 1000.0]
