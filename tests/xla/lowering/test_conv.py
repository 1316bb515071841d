"""Convolutions and their gradients are XLA's, with channels last."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from scipy.signal import correlate

from tests.xla.lowering.programs import operations, traced, value

R = np.random.default_rng(0)
F = rg.nn.functional


def test_against_scipy() -> None:
    x, w = R.normal(size=(2, 3, 9, 8)), R.normal(size=(4, 3, 3, 2))
    want = np.stack([[correlate(a, f, "valid")[0] for f in w] for a in x])
    np.testing.assert_allclose(value(F.conv2d, x, w), want, rtol=1e-12)
    assert operations(F.conv2d, x, w).count("convolution") == 1
    text = traced(F.conv2d, x, w).to_stablehlo()
    assert "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" in text


@pytest.mark.slow
def test_gradients_against_finite_differences() -> None:
    """With strides, padding, dilation and groups: three convolutions and no scatter."""
    x, w = R.normal(size=(1, 4, 6, 5)), R.normal(size=(6, 2, 2, 3))

    def loss(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
        return (F.conv2d(x, w, stride=(2, 1), padding=1, dilation=(1, 2), groups=2) ** 2).sum()

    slopes = rg.grad(loss, argnums=(0, 1))
    found = operations(slopes, x, w)
    assert found.count("convolution") == 3
    assert "scatter" not in found
    at = lambda x, w: float(value(loss, x, w))
    gx = value(lambda x, w: slopes(x, w)[0], x, w)
    gw = value(lambda x, w: slopes(x, w)[1], x, w)
    for g, k in ((gx, 0), (gw, 1)):
        for i in (0, g.size // 3, g.size - 1):
            step = np.zeros(g.size)
            step[i] = 1e-5
            moved = [[y + s * step.reshape(g.shape) if j == k else y for j, y in enumerate((x, w))]
                     for s in (1, -1)]  # fmt: skip
            slope = (at(*moved[0]) - at(*moved[1])) / 2e-5
            np.testing.assert_allclose(g.reshape(-1)[i], slope, rtol=1e-7, atol=1e-7)


def test_no_elements() -> None:
    found = value(F.conv2d, np.ones((0, 3, 5, 5)), np.ones((4, 3, 2, 2)))
    assert found.shape == (0, 4, 4, 4)
