"""Layers of positions against their functions, and what they refuse."""

import copy

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import IndexRangeError, OptionError, ShapeError

F = nn.functional
X = np.random.default_rng(0).normal(size=(2, 3, 5, 8))


def test_rotary_embedding() -> None:
    layer = nn.RotaryEmbedding(4, 100.0, interleaved=True, scaling={"type": "linear", "factor": 2})
    expected = F.rotary_embedding(
        X, [2, 3, 4, 5, 6], 100.0, dim=4, interleaved=True, scaling={"type": "linear", "factor": 2}
    )
    np.testing.assert_array_equal(layer(X, rg.arange(5) + 2).numpy(), expected.numpy())
    assert not list(layer.parameters())
    assert not layer.state_dict()
    np.testing.assert_array_equal(copy.deepcopy(layer)(X).numpy(), layer(X).numpy())
    np.testing.assert_allclose(rg.jit(lambda m, x: m(x))(layer, X).numpy(), layer(X).numpy())
    with pytest.raises(OptionError, match="even"):
        nn.RotaryEmbedding(3)
    with pytest.raises(OptionError, match="is none of"):
        nn.RotaryEmbedding(scaling={"rope_type": "other"})


def test_sinusoidal() -> None:
    layer = nn.SinusoidalPositionalEncoding(6, 8)
    expected = X + F.sinusoidal_positions(5, 8, dtype=rg.float64).numpy()
    np.testing.assert_allclose(layer(X).numpy(), expected, rtol=1e-12)
    later = layer(X[..., :1, :], [4]).numpy()
    np.testing.assert_allclose(later - X[..., :1, :], (expected - X)[..., 4:, :], atol=1e-12)
    assert layer(rg.asarray(X, dtype=rg.float16)).dtype is rg.float16
    with pytest.raises(ShapeError, match="7 positions of 6"):
        layer(rg.zeros((7, 8)))
    with pytest.raises(ShapeError, match="8]"):
        layer(rg.zeros((5, 7)))
    with pytest.raises(OptionError, match="probability"):
        nn.SinusoidalPositionalEncoding(6, 8, dropout=1.5)


def test_learned() -> None:
    layer = nn.LearnedPositionalEncoding(6, 8, generator=rg.random.Generator(0))
    w = layer.weight.numpy()
    assert 0.01 < w.std() < 0.03
    np.testing.assert_allclose(layer(X).numpy(), X + w[:5], rtol=1e-12)
    np.testing.assert_allclose(
        layer(X, [5, 0, 0, 1, 5]).numpy(), X + w[[5, 0, 0, 1, 5]], rtol=1e-12
    )
    layer(X, [5, 0, 0, 1, 5]).sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [12, 6, 0, 0, 0, 12]
    with pytest.raises(IndexRangeError):
        layer(X, [6, 0, 0, 1, 5]).numpy()


def test_alibi_is_a_mask_of_attention() -> None:
    q, k, v = np.random.default_rng(1).normal(size=(3, 2, 4, 5, 8))
    found = F.scaled_dot_product_attention(q, k, v, nn.ALiBi(4)(5), is_causal=True).numpy()
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(8)
    for h in range(4):
        for i in range(5):
            row = scores[:, h, i, : i + 1] - 0.25 ** (h + 1) * np.arange(i, -1, -1)
            shares = np.exp(row) / np.exp(row).sum(-1, keepdims=True)
            expected = np.einsum("nk,nkv->nv", shares, v[:, h, : i + 1])
            np.testing.assert_allclose(found[:, h, i], expected, rtol=1e-6)
