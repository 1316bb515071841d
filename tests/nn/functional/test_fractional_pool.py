"""Pooling over regions of drawn sizes, and functions with time first, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pooling(rank: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x, u = normal(2, 3, *(9, 7, 8)[:rank]), np.random.default_rng(1).uniform(size=(2, 3, rank))
    f = getattr(torch.nn.functional, f"fractional_max_pool{rank}d")
    g = getattr(nn.functional, f"fractional_max_pool{rank}d")
    for options in ({"output_size": (4, 3, 5)[:rank]}, {"output_ratio": (0.5,) * rank}):
        samples = torch.tensor(u)
        want = f(torch.tensor(x), 2, return_indices=True, _random_samples=samples, **options)
        found = g(rg.tensor(x), 2, return_indices=True, _random_samples=u, **options)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.torch
def test_functions_with_time_first_and_with_their_layer() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x, w, b = normal(6, 2, 3), normal(3, 3, 4), normal(4)
    want = torch.conv_tbc(*(torch.tensor(a) for a in (x, w, b)), 1)
    np.testing.assert_allclose(nn.functional.conv_tbc(x, w, b, 1).numpy(), want.numpy(), 1e-10)
    x, w, b, t = normal(5, 3), normal(4, 3), normal(4), np.array([0, 3, 1, 2, 2])
    logits = torch.nn.functional.linear(*(torch.tensor(a) for a in (x, w, b)))
    want = torch.nn.functional.cross_entropy(logits, torch.tensor(t), label_smoothing=0.2)
    found = nn.functional.linear_cross_entropy(x, w, t, linear_bias=b, label_smoothing=0.2)
    np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-10)


def test_each_result_is_the_greatest_of_its_window() -> None:
    x = normal(2, 3, 9, 7)
    y, at = nn.functional.fractional_max_pool2d(
        x, (2, 3), (4, 3), return_indices=True, generator=rg.random.Generator(0)
    )
    rows, columns = np.divmod(at.numpy(), 7)
    flat = x.reshape(2, 3, -1)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, at.numpy().reshape(2, 3, -1), -1), y.numpy().reshape(2, 3, -1)
    )
    for n, c, i, j in np.ndindex(y.shape):
        u, v = rows[n, c, i, j], columns[n, c, i, j]
        windows = [
            x[n, c, r : r + 2, s : s + 3]
            for r in range(max(u - 1, 0), min(u, 7) + 1)
            for s in range(max(v - 2, 0), min(v, 4) + 1)
        ]
        assert any(window.max() == y.numpy()[n, c, i, j] for window in windows)
    last = rows[:, :, -1], columns[:, :, :, -1]
    assert (last[0] >= 7).all()  # the last windows end where the image does
    assert (last[1] >= 4).all()


@pytest.mark.parametrize("u", [0.0, 0.4, 0.9])
def test_windows_begin_at_multiples_of_a_fraction(u: float) -> None:
    """Where numbers rise, the greatest is the last of a window (Graham, 2014)."""
    x = np.add.outer(10.0 * np.arange(9), np.arange(7))[None, None]
    found = nn.functional.fractional_max_pool2d(
        x, (2, 3), (4, 3), _random_samples=np.full((1, 1, 2), u)
    ).numpy()[0, 0]
    rows, columns = (
        np.array([*np.floor((np.arange(n - 1) + u) * step) - np.floor(u * step), last])
        for n, step, last in ((4, 7 / 3, 7), (3, 4 / 2, 4))
    )
    expected = np.add.outer(10 * (rows + 1), columns + 2)
    np.testing.assert_array_equal(found, expected)


def test_by_formulas() -> None:
    x, w, b = normal(6, 2, 3), normal(3, 3, 4), normal(4)
    wide = np.pad(x, [(1, 1), (0, 0), (0, 0)])
    expected = sum(wide[k : k + 6] @ w[k] for k in range(3)) + b
    np.testing.assert_allclose(nn.functional.conv_tbc(x, w, b, 1).numpy(), expected, rtol=1e-10)
    x, w, t = normal(5, 3), normal(4, 3), np.array([0, 3, 1, 2, 2])
    logits = x @ w.T + b
    logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    found = nn.functional.linear_cross_entropy(x, w, t, linear_bias=b)
    assert found.item() == pytest.approx(-logp[np.arange(5), t].mean(), rel=1e-10)
