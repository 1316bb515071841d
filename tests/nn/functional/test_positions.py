"""Positions against complex numbers in NumPy, written out values, and `transformers`."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError, ShapeError

F = rg.nn.functional
rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 5, 8))
LLAMA3: dict[str, Any] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def turned(x, positions, frequencies, interleaved):
    """Pairs as complex numbers, turned."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    z = (a + 1j * b) * np.exp(1j * np.asarray(positions)[..., None] * frequencies)
    if interleaved:
        return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
    return np.concatenate([z.real, z.imag], axis=-1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("positions", [None, [7, 3, 0, 1, 100000], rng.integers(0, 9, (2, 1, 5))])
def test_rotary(interleaved: bool, positions: Any) -> None:
    frequencies = 500.0 ** (-np.arange(0, 8, 2) / 8)
    at = np.arange(5) if positions is None else positions
    f = lambda x: F.rotary_embedding(x, positions, 500.0, interleaved=interleaved)
    x = rg.tensor(X, requires_grad=True)
    np.testing.assert_allclose(f(x).numpy(), turned(X, at, frequencies, interleaved), atol=1e-10)
    weights = rng.normal(size=X.shape)
    (f(x) * weights).sum().backward()
    # The transpose of a rotation is its inverse.
    back = turned(weights, -np.asarray(at), frequencies, interleaved)
    np.testing.assert_allclose(x.grad.numpy(), back, atol=1e-10)
    traced = rg.jit(lambda x, p: F.rotary_embedding(x, p, 500.0, interleaved=interleaved))
    np.testing.assert_allclose(traced(x, rg.asarray(at)).numpy(), f(x).numpy(), atol=1e-12)


def test_rotary_of_a_part_and_of_half_precision() -> None:
    y = F.rotary_embedding(X, dim=4).numpy()
    np.testing.assert_array_equal(y[..., 4:], X[..., 4:])
    np.testing.assert_array_equal(y[..., :4], F.rotary_embedding(X[..., :4]).numpy())
    half = F.rotary_embedding(rg.asarray(X, dtype=rg.bfloat16))
    assert half.dtype is rg.bfloat16
    np.testing.assert_allclose(half.numpy().astype(float), F.rotary_embedding(X).numpy(), atol=0.05)


def test_products_depend_on_the_distance() -> None:
    q, k = rng.normal(size=(2, 1, 8))
    at = lambda x, p: F.rotary_embedding(x, [p]).numpy()[0]
    assert at(q, 3) @ at(k, 1) == pytest.approx(at(q, 1003) @ at(k, 1001), abs=1e-12)


def test_scalings_written_out() -> None:
    """From `transformers` 5 for the same options, in float32."""
    found = F.rotary_frequencies(8, 500000.0, LLAMA3).frequencies
    plain = 500000.0 ** (-np.arange(4) / 4)
    # Waves of 6 and of 167 positions of 64: kept, and slowed down; the others also.
    np.testing.assert_allclose(found, [1.0, plain[1] / 8, plain[2] / 8, plain[3] / 8], rtol=1e-12)
    found = F.rotary_frequencies(16, 100.0, LLAMA3).frequencies
    wave = 2 * math.pi / 100.0 ** (-np.arange(8) / 8)
    share = np.clip((64 / wave - 1) / 3, 0, 1)
    assert ((share > 0) & (share < 1)).any()
    np.testing.assert_allclose(found, ((1 - share) / 8 + share) * 2 * math.pi / wave, rtol=1e-12)
    linear = F.rotary_frequencies(4, 100.0, {"type": "linear", "factor": 4.0})
    np.testing.assert_allclose(linear.frequencies, [0.25, 0.025])


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["linear", "dynamic", "llama3", "yarn"])
def test_scalings_against_transformers(kind: str) -> None:
    rope = pytest.importorskip("transformers.modeling_rope_utils", reason="needs transformers")
    from transformers import LlamaConfig

    options: dict[str, Any] = {**LLAMA3, "rope_type": kind}
    config = LlamaConfig(hidden_size=256, num_attention_heads=4, max_position_embeddings=64)
    config.rope_parameters = {**options, "rope_theta": 5000.0}
    expected, factor = rope.ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=300)
    found = F.rotary_frequencies(64, 5000.0, options, 300)
    np.testing.assert_allclose(found.frequencies, expected.numpy(), rtol=1e-6)
    assert found.factor == pytest.approx(factor)


@pytest.mark.torch
def test_rotary_against_transformers() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    angles = torch.arange(5)[:, None] * torch.tensor(10000.0 ** (-np.arange(0, 8, 2) / 8))
    both = torch.cat([angles, angles], -1)[None].double()
    expected, _ = llama.apply_rotary_pos_emb(
        torch.tensor(X), torch.tensor(X), both.cos(), both.sin()
    )
    np.testing.assert_allclose(F.rotary_embedding(X).numpy(), expected.numpy(), atol=1e-12)


def test_sinusoidal_positions() -> None:
    for dim in (1, 6, 7):
        expected = [
            [
                math.sin(p / 100 ** (c / dim))
                if c % 2 == 0
                else math.cos(p / 100 ** ((c - 1) / dim))
                for c in range(dim)
            ]
            for p in range(9)
        ]
        found = F.sinusoidal_positions(9, dim, 100.0, dtype=rg.float64)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-14)
        some = F.sinusoidal_positions([[3], [8]], dim, 100.0, dtype=rg.float64)
        np.testing.assert_allclose(some.numpy()[:, 0], found.numpy()[[3, 8]], atol=1e-14)


def test_alibi() -> None:
    """The slopes of 12 heads are those of the authors' code for 12."""
    power = [2.0**-i for i in range(1, 9)]
    assert F.alibi_slopes(8).tolist() == power
    found = F.alibi_slopes(12).numpy()
    np.testing.assert_allclose(
        found, [*power, *[2.0 ** -(i - 0.5) for i in (1, 2, 3, 4)]], rtol=1e-6
    )
    bias = F.alibi_bias(2, 2, 4).numpy()
    assert bias.shape == (2, 2, 4)
    assert bias[0].tolist() == [[-2 / 16, -1 / 16, 0, -1 / 16], [-3 / 16, -2 / 16, -1 / 16, 0]]
    np.testing.assert_array_equal(F.alibi_bias(2, 4).numpy()[:, 2:], bias)


def test_refusals() -> None:
    with pytest.raises(OptionError, match="even, not 3"):
        F.rotary_embedding(X, dim=3)
    with pytest.raises(OptionError, match="did you mean 'llama3'"):
        F.rotary_embedding(X, scaling={"rope_type": "lama3"})
    with pytest.raises(OptionError, match="low_freq_factor"):
        F.rotary_embedding(X, scaling={"rope_type": "llama3", "factor": 8.0})
    with pytest.raises(ShapeError, match=r"positions \(4,\) do not broadcast"):
        F.rotary_embedding(X, [0, 1, 2, 3])
    with pytest.raises(ShapeError, match="at least dim, 10"):
        F.rotary_embedding(X, dim=10)
    with pytest.raises(OptionError, match="at least 1"):
        F.sinusoidal_positions(3, 0)
    with pytest.raises(OptionError, match="at least one head"):
        F.alibi_slopes(0)
    scaling = {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 4}
    traced = rg.jit(lambda x, p: F.rotary_embedding(x, p, scaling=scaling))
    with pytest.raises(OptionError, match="length of the sequence"):
        traced(X, rg.arange(5))
