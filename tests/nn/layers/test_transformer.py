"""The layers of transformers, as they are put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


def test_copies_of_a_layer_draw_different_numbers() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    a, b = (layer.dropout1.generator.uniform((8,)).numpy() for layer in model.layers)
    assert (a != b).any()


def make(kind: type[nn.Module], **options: Any) -> Any:
    layer: Any = kind(4, 2, 6, dropout=0.0, **options)
    layer.to(rg.float64)
    rng = np.random.default_rng(1)
    for p in layer.parameters():  # norms do something, each something else
        p.replace(p.numpy() + 0.3 * rng.normal(size=p.shape))
    return layer


def attended(layer: Any, x: Any, memory: Any) -> Any:
    return layer(x, memory, memory, need_weights=False)[0]


X, MEMORY = np.random.default_rng(0).normal(size=(2, 3, 2, 4))


def test_an_encoder_layer_is_its_parts() -> None:
    """Each part is added to its input; the norm is behind the sum, or before the part."""
    behind, before = (make(nn.TransformerEncoderLayer, norm_first=f) for f in (False, True))
    x = rg.asarray(X)
    y = behind.norm1(x + attended(behind.self_attn, x, x))
    expected = behind.norm2(y + behind.linear2(rg.relu(behind.linear1(y))))
    np.testing.assert_allclose(behind(X).numpy(), expected.numpy(), rtol=1e-12)
    normed = before.norm1(x)
    y = x + attended(before.self_attn, normed, normed)
    expected = y + before.linear2(rg.relu(before.linear1(before.norm2(y))))
    np.testing.assert_allclose(before(X).numpy(), expected.numpy(), rtol=1e-12)


def test_a_decoder_layer_looks_at_the_memory_between_both() -> None:
    layer = make(nn.TransformerDecoderLayer)
    x = rg.asarray(X)
    y = layer.norm1(x + attended(layer.self_attn, x, x))
    y = layer.norm2(y + attended(layer.multihead_attn, y, MEMORY))
    expected = layer.norm3(y + layer.linear2(rg.relu(layer.linear1(y))))
    np.testing.assert_allclose(layer(X, MEMORY).numpy(), expected.numpy(), rtol=1e-12)


def test_stacks_apply_their_copies_in_turn() -> None:
    layer = make(nn.TransformerEncoderLayer)
    stack: Any = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4, dtype=rg.float64))
    expected = stack.norm(layer(layer(X)))
    np.testing.assert_allclose(stack(X).numpy(), expected.numpy(), rtol=1e-12)
    assert stack.layers[0] is not layer  # a copy
    with pytest.raises(rg.ShapeError, match="at least one"):
        nn.TransformerEncoder(layer, 0)


def test_refusals() -> None:
    with pytest.raises(rg.OptionError, match="'relu', 'gelu' or a function, not 'tanh'"):
        nn.TransformerEncoderLayer(4, 2, 6, activation="tanh")
    with pytest.raises(rg.ShapeError):
        nn.TransformerEncoderLayer(5, 2, 6)


def test_the_causal_mask_hides_what_comes_later() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3).numpy()
    np.testing.assert_array_equal(mask, np.triu(np.full((3, 3), -np.inf), 1))
    layer = make(nn.TransformerEncoderLayer)
    other = X.copy()
    other[-1] += 1.0
    a, b = (layer(x, src_mask=mask).numpy() for x in (X, other))
    np.testing.assert_array_equal(a[:-1], b[:-1])
    assert (a[-1] != b[-1]).any()
