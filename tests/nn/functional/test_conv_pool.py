"""Convolution and pooling as functions, against PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from tests.nn.functional.torch_cases import (
    IMAGE,
    Case,
    agree,
    compare,
    floats,
    normal,
    some,
)

F = nn.functional

CASES: dict[str, Case] = {
    "adaptive_avg_pool2d": (lambda m, x: m.adaptive_avg_pool2d(x, (3, 4)), (IMAGE,)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    f, arrays = CASES[name]
    compare(f, arrays, name)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_avg_pool(rank):
    more = {"divisor_override": [None, 3, -2]} if rank > 1 else {}
    taken = 0
    for options in some(
        15, kernel_size=[2, 3, (3, 2, 2)[:rank], [2]], stride=[None, 1, (2, 1, 3)[:rank], (2,)],
        padding=[0, 1, (1, 0, 1)[:rank]], ceil_mode=[False, True],
        count_include_pad=[False, True], **more,
    ):  # fmt: skip
        for shape in ((2, 3, *(7, 6, 5)[:rank]), (3, *(7, 6, 5)[:rank])):
            taken += agree(f"avg_pool{rank}d", floats(*shape), grad=rank < 3, **options)
    assert taken > 15


def test_convolution_by_hand() -> None:
    """Windows of the padded input, two groups of channels."""
    x, w, b = normal(2, 4, 5, 6), normal(6, 2, 3, 2, seed=1), normal(6, seed=2)
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3])
        for g in range(2)
    ]
    expected = np.concatenate(parts, axis=1) + b[:, None, None]
    found = F.conv2d(x, w, b, stride=2, padding=1, groups=2).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    # Transposed, it is the gradient of itself.
    y = normal(*found.shape, seed=3)
    back = F.conv_transpose2d(y, w, stride=2, padding=1, output_padding=(0, 0), groups=2).numpy()
    along = np.pad(back, [(0, 0), (0, 0), (0, 0), (0, 6 - back.shape[-1])])
    assert (along * x).sum() == pytest.approx((y * (found - b[:, None, None])).sum(), rel=1e-10)


def test_pools_by_hand() -> None:
    x = normal(2, 3, 7)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)[:, :, ::2]
    top, at = F.max_pool1d(x, 3, 2, return_indices=True)
    np.testing.assert_array_equal(top.numpy(), windows.max(-1))
    np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), -1), top.numpy())
    np.testing.assert_allclose(F.avg_pool1d(x, 3, 2).numpy(), windows.mean(-1), rtol=1e-12)
    thirds = [x[..., 0:3].mean(-1), x[..., 2:5].mean(-1), x[..., 4:7].mean(-1)]
    found = F.adaptive_avg_pool1d(x, 3).numpy()
    np.testing.assert_allclose(found, np.stack(thirds, axis=-1), rtol=1e-12)
    with pytest.raises(rg.ShapeError, match="4 axes, samples, channels and 2 to slide along"):
        F.max_pool2d(x[0], 2)
