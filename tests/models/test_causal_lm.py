"""What decoders share: heads, masks, and that a sequence read in pieces is the sequence."""

from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import GPT2, Llama
from retrograd.models.causal_lm import (
    Visible,
    cached_attention,
    merge_heads,
    need_mask,
    shared_dropout,
    split_heads,
)
from tests.models.conftest import GPT2_SIZES, LLAMA_SIZES, MASK, TOKENS, randomized

rng = np.random.default_rng(0)


def test_heads():
    x = rg.tensor(rng.normal(size=(2, 3, 8)))
    assert (split_heads(x, 4)[1, 2, 0].numpy() == x[1, 0, 4:6].numpy()).all()
    assert (merge_heads(split_heads(x, 4)).numpy() == x.numpy()).all()


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("added", [False, True])
def test_one_query_with_a_cache_is_the_last_row(heads, window, added):
    q = rg.tensor(rng.normal(size=(2, 4, 5, 6)))
    k, v = (rg.tensor(rng.normal(size=(2, heads, 5, 6))) for _ in range(2))
    seen = np.ones((2, 1, 1, 5), bool)
    seen[1, :, :, :2] = False
    mask = rg.tensor(np.where(seen, 0.0, -np.inf) if added else seen)
    none = shared_dropout(0.0)
    whole, _ = cached_attention(q, k, v, None, Visible(mask, window), none)
    empty = rg.full((2, heads, 7, 6), 9.0, dtype=rg.float64)
    past = rg.nn.KVCache(
        rg.concat([k[:, :, :4], empty[:, :, :3]], axis=2),
        rg.concat([v[:, :, :4], empty[:, :, :3]], axis=2),
        rg.asarray(4),
    )
    wide = np.concatenate([np.asarray(mask.numpy()), mask.numpy()[..., :2]], -1)
    q1, k1, v1 = (x[:, :, 4:] for x in (q, k, v))
    y, kept = cached_attention(q1, k1, v1, past, Visible(rg.tensor(wide), window), none)
    np.testing.assert_allclose(y.numpy(), whole.numpy()[:, :, 4:], atol=1e-14)
    np.testing.assert_array_equal(kept.keys.numpy()[:, :, :5], k.numpy())


def test_masks():
    assert need_mask(None, 3, "GPT2") is None
    assert need_mask([[1, 0, 1]], 3, "GPT2").tolist() == [[[[True, False, True]]]]
    for wrong in ([1, 0, 1], [[1, 0]], np.ones((1, 1, 1, 3), int)):
        with pytest.raises(rg.ShapeError, match=r"the attention_mask of GPT2 is \[batch, 3\]"):
            need_mask(wrong, 3, "GPT2")


MODELS = {
    "gpt2": (GPT2, GPT2_SIZES),
    "llama": (Llama, LLAMA_SIZES),
    "mistral": (Llama, replace(LLAMA_SIZES, kind="mistral", sliding_window=2)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cuts", [(3, 4), (1, 2, 3, 6), ()])
def test_in_pieces(name, cuts):
    cls, config = MODELS[name]
    model = randomized(cls(config, dtype=rg.float64))
    cache = model.new_cache(3, 10)
    pieces = []
    for start, end in zip((0, *cuts), (*cuts, 7), strict=True):
        logits, cache = model(TOKENS[:, start:end], cache=cache)
        pieces.append(logits.numpy())
    np.testing.assert_allclose(np.concatenate(pieces, 1), model(TOKENS).numpy(), atol=1e-13)
    assert cache[0].length.item() == 7


def test_padding():
    model = randomized(GPT2(GPT2_SIZES, dtype=rg.float64))
    mask = np.concatenate([MASK, np.ones((3, 2), int)], 1)
    got, _ = model(TOKENS, mask, cache=model.new_cache(3, 9))
    there = MASK.astype(bool)
    np.testing.assert_allclose(got.numpy()[there], model(TOKENS, MASK).numpy()[there], atol=1e-13)
    with pytest.raises(rg.ShapeError, match=r"\[batch, 9\]"):
        model(TOKENS, MASK, cache=model.new_cache(3, 9))


def test_sizes():
    model = randomized(GPT2(GPT2_SIZES))
    assert model.new_cache(2, 5)[0].keys.shape == (2, 3, 5, 4)
    assert len(model.new_cache(2, 5)) == 2
    with pytest.raises(rg.ShapeError, match="sizes are at least 1"):
        model.new_cache(0, 5)
