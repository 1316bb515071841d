"""Layers that rearrange and compare."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import ShapeError


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.sample(2)
def test_cross_map_normalisation(size: int) -> None:
    """By its definition; PyTorch's own has other windows for all but the first channels."""
    x = np.random.default_rng(0).normal(size=(2, 7, 3, 2))
    layer, half = nn.CrossMapLRN2d(size, 0.3, 0.7, 1.3), (size - 1) // 2
    total = np.stack(
        [(x[:, max(c - half, 0) : c + half + 1] ** 2).sum(axis=1) for c in range(7)], axis=1
    )
    np.testing.assert_allclose(layer(x).numpy(), x / (1.3 + 0.3 / size * total) ** 0.7, 1e-12)
    slope = rg.grad(lambda x: (layer(x) ** 3).sum())
    expected = rg.numerical_gradient(lambda x: (layer(x) ** 3).sum(), x)
    np.testing.assert_allclose(slope(x).numpy(), expected.numpy(), 1e-7, 1e-9)
    with pytest.raises(ShapeError, match="N, C, H, W"):
        layer(x[0])


def test_unflatten_is_a_reshape_of_one_axis() -> None:
    x = np.arange(24.0).reshape(2, 12)
    np.testing.assert_array_equal(nn.Unflatten(1, (3, 4))(x).numpy(), x.reshape(2, 3, 4))
    np.testing.assert_array_equal(nn.Unflatten(-1, (-1, 3, 2))(x).numpy(), x.reshape(2, 2, 3, 2))
    np.testing.assert_array_equal(nn.Unflatten(0, (1, 2))(x).numpy(), x.reshape(1, 2, 12))
    with pytest.raises(ShapeError, match="Unflatten of axis 2"):
        nn.Unflatten(2, (3, 4))(x)


def test_shuffles_undo_each_other() -> None:
    x = np.random.default_rng(0).normal(size=(2, 8, 3, 5))
    y = nn.PixelShuffle(2)(x)
    assert y.shape == (2, 2, 6, 10)
    # Of a channel's four, the second stands beside the first.
    np.testing.assert_array_equal(y.numpy()[:, 0, 0, :4:2], x[:, 0, 0, :2])
    np.testing.assert_array_equal(y.numpy()[:, 0, 0, 1:4:2], x[:, 1, 0, :2])
    np.testing.assert_array_equal(nn.PixelUnshuffle(2)(y).numpy(), x)
    shuffled = nn.ChannelShuffle(4)(x).numpy()
    np.testing.assert_array_equal(shuffled, x[:, [0, 2, 4, 6, 1, 3, 5, 7]])


def test_windows_put_back_are_counted_as_often_as_they_overlap() -> None:
    x = np.random.default_rng(1).normal(size=(1, 2, 4, 4))
    back = nn.Fold((4, 4), 2)(nn.Unfold(2)(x)).numpy()
    often = np.outer([1, 2, 2, 1], [1, 2, 2, 1])
    np.testing.assert_allclose(back, x * often, rtol=1e-12)


def test_upsampling() -> None:
    x = np.arange(4.0).reshape(1, 1, 2, 2)
    near = nn.UpsamplingNearest2d(scale_factor=2)(x).numpy()
    np.testing.assert_array_equal(near, x.repeat(2, axis=2).repeat(2, axis=3))
    smooth = nn.UpsamplingBilinear2d(size=3)(x).numpy()  # corners aligned
    np.testing.assert_allclose(smooth[0, 0], [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]])
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2, mode='nearest')"


def test_comparisons_by_hand() -> None:
    a, b = np.random.default_rng(2).normal(size=(2, 3, 4))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(nn.CosineSimilarity()(a, b).numpy(), cosine, rtol=1e-12)
    distance = np.linalg.norm(a - b + 1e-6, axis=1)
    np.testing.assert_allclose(nn.PairwiseDistance()(a, b).numpy(), distance, rtol=1e-12)
