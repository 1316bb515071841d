"""Convolutions and their gradients are XLA's, with channels last."""

from __future__ import annotations

import re

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


def test_what_is_computed_of_it_has_channels_last_too() -> None:
    """Activations, and the sums that are gradients of biases, are in the order of the convolution:
    no array is written down in both orders."""
    x, w, b = R.normal(size=(4, 3, 9, 9)), R.normal(size=(8, 3, 3, 3)), R.normal(size=8)

    def loss(w: rg.Tensor, b: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
        return (F.max_pool2d(rg.tanh(F.conv2d(x, w, b)), 7) ** 2).sum()

    slopes = rg.grad(loss, argnums=(0, 1))
    text = traced(slopes, w, b, x).to_stablehlo()
    assert "stablehlo.tanh %" in text
    assert re.findall(r"stablehlo\.tanh .*: tensor<(.*)xf64>", text) == ["4x7x7x8"]
    sums = re.findall(
        r"applies stablehlo\.add across dimensions = (.*) : \(tensor<(.*?)xf64>", text
    )
    assert ("[0, 1, 2]", "4x7x7x8") in sums
    with rg.backend("reference"):
        want = [g.numpy() for g in slopes(rg.tensor(w), rg.tensor(b), rg.tensor(x))]
    for k, g in enumerate(want):
        found = value(lambda *a, k=k: slopes(*a)[k], w, b, x)
        np.testing.assert_allclose(found, g, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_in_other_dtypes(dtype: str) -> None:
    """Rounded where the graph says so, in either order."""
    x, w = (R.normal(size=s) for s in ((2, 3, 5, 6), (4, 3, 2, 2)))
    if dtype == "complex64":
        x, w = x + 1j * x[::-1], w - 2j * w

    def f(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
        y = F.conv2d(x, w)
        return ((y * y + y) - y * 3).sum((0, 2, 3))

    a, b = rg.tensor(x, dtype=dtype), rg.tensor(w, dtype=dtype)
    with rg.backend("reference"):
        want = f(a, b).numpy()
    with rg.backend("xla"):
        found = rg.jit(f)(a, b).numpy()
    rough = {"float16": 2**-9, "bfloat16": 2**-6}.get(dtype, 1e-5)
    wide = np.complex128 if dtype == "complex64" else np.float64
    np.testing.assert_allclose(found.astype(wide), want.astype(wide), rtol=rough, atol=rough * 20)


def test_no_elements() -> None:
    found = value(F.conv2d, np.ones((0, 3, 5, 5)), np.ones((4, 3, 2, 2)))
    assert found.shape == (0, 4, 4, 4)
