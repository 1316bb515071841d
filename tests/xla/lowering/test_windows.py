"""Pooling, windows and overlap-add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from numpy.lib.stride_tricks import sliding_window_view

from tests.xla.lowering.programs import operations, value

F = rg.nn.functional
X = np.random.default_rng(0).normal(size=(2, 3, 8, 6))


@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 1), (2, 3), ((2, 3), (2, 1))])
def test_max_pooling(size: Any, stride: Any) -> None:
    k, s = ((x, x) if isinstance(x, int) else x for x in (size, stride))
    want = sliding_window_view(X, k, (2, 3))[:, :, :: s[0], :: s[1]].max((-2, -1))
    found = value(lambda x: F.max_pool2d(x, size, stride), X)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2)])
def test_the_gradient_of_a_maximum_goes_to_the_first(size: int, stride: int) -> None:
    x = np.round(X)  # with ties
    want = np.zeros_like(x)
    for n, c, i, j in np.ndindex(2, 3, (8 - size) // stride + 1, (6 - size) // stride + 1):
        part = x[n, c, i * stride : i * stride + size, j * stride : j * stride + size]
        a, b = np.unravel_index(part.argmax(), part.shape)
        want[n, c, i * stride + a, j * stride + b] += 1
    f = rg.grad(lambda x: F.max_pool2d(x, size, stride).sum())
    np.testing.assert_array_equal(value(f, x), want)


def test_windows_side_by_side_are_a_reshape() -> None:
    found = operations(lambda x: F.avg_pool2d(x, 2), X)
    assert not {"gather", "scatter", "reduce_window"} & set(found)
    want = X.reshape(2, 3, 4, 2, 3, 2).mean((3, 5))
    np.testing.assert_allclose(value(lambda x: F.avg_pool2d(x, 2), X), want, rtol=1e-13)


def test_overlap_add_is_the_adjoint_of_windows() -> None:
    y = np.random.default_rng(1).normal(size=(2, 12, 5 * 4))
    taken = value(lambda x: F.unfold(x, (4, 1), stride=(1, 1)), X)
    assert taken.shape == (2, 12, 5 * 6)
    back = value(lambda y: F.fold(y, (8, 4), (4, 1)), y)
    part = X[..., :4]
    windows = value(lambda x: F.unfold(x, (4, 1)), part)
    np.testing.assert_allclose((windows * y).sum(), (part * back).sum(), rtol=1e-12)
