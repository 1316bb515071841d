"""Generated tokens against a loop that reads everything again for each."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import GPT2, Llama
from retrograd.models.generation import _within_share
from tests.models.conftest import GPT2_SIZES, LLAMA_SIZES, MASK, TOKENS, randomized

SEQUENCES = [TOKENS[0][2:], TOKENS[1][:5], TOKENS[2]]  # what MASK leaves


def models():
    yield randomized(GPT2(replace(GPT2_SIZES, eos_token_id=None), dtype=rg.float64), 5)
    yield randomized(Llama(LLAMA_SIZES, dtype=rg.float64), 5)
    config = replace(LLAMA_SIZES, kind="mistral", sliding_window=3)
    yield randomized(Llama(config, dtype=rg.float64), 5)


@pytest.fixture(params=["gpt2", "llama", "mistral"])
def model(request):
    return dict(zip(["gpt2", "llama", "mistral"], models(), strict=True))[request.param]


def greedy(model, tokens, count):
    found = list(tokens)
    for _ in range(count):
        found.append(int(model([found]).numpy()[0, -1].argmax()))
    return found[len(tokens) :]


def test_greedy_with_padding_on_either_side(model):
    got = model.generate(TOKENS, 6, attention_mask=MASK).numpy()
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got[:, :7], TOKENS)
    assert got[:, 7:].tolist() == [greedy(model, t, 6) for t in SEQUENCES]


def test_rows_end(model):
    free = model.generate(TOKENS, 6).numpy()[:, 7:]
    eos = int(free[0, 2])
    got = model.generate(TOKENS, 6, eos=eos, pad=36).numpy()[:, 7:]
    lengths = [next((i + 1 for i, t in enumerate(row) if t == eos), 6) for row in free.tolist()]
    assert lengths[0] <= 3
    assert got.shape[1] == max(lengths)
    for row, wanted, n in zip(got, free, lengths, strict=True):
        assert row[:n].tolist() == wanted[:n].tolist()
        assert (row[n:] == 36).all()
    alone = model.generate(TOKENS[:1], 6, eos=[eos, 0]).numpy()
    assert alone.shape == (1, 7 + lengths[0])


@pytest.mark.slow
def test_drawn_tokens():
    model = randomized(GPT2(GPT2_SIZES), 5)
    options: dict[str, Any] = {"max_new_tokens": 5, "temperature": 2.0, "top_k": 9, "eos": ()}
    a, b, c = (model.generate(TOKENS, seed=s, **options).numpy() for s in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()
    for row in a:  # every token is one of the nine most likely
        for n in range(7, 12):
            logits = model(row[None, :n]).numpy()[0, -1]
            assert row[n] in np.argsort(-logits)[:9]
    plain = model.generate(TOKENS, 5, eos=()).numpy()
    for options in ({"top_k": 1}, {"temperature": 0.0, "seed": 3}, {"top_p": 1e-6}):
        assert (model.generate(TOKENS, 5, eos=(), **options).numpy() == plain).all()


@pytest.mark.slow
def test_frequencies_of_drawn_tokens():
    model = randomized(GPT2(replace(GPT2_SIZES, n_layer=1), dtype=rg.float64), 5)
    prompt = np.repeat([[3, 1, 4]], 1000, 0)
    logits = model(prompt[:1]).numpy()[0, -1] / 1.5
    p = np.exp(logits - logits.max())
    p /= p.sum()
    drawn = model.generate(prompt, 1, temperature=1.5, seed=0).numpy()[:, -1]
    counts = np.bincount(drawn, minlength=37) / 1000
    assert np.abs(counts - p).max() < 4.5 * np.sqrt(0.25 / 1000)
    order = np.argsort(-p)
    kept = order[: np.searchsorted(np.cumsum(p[order]), 0.6) + 1]
    drawn = model.generate(prompt, 1, temperature=1.5, top_p=0.6, seed=0).numpy()[:, -1]
    assert set(drawn) <= set(kept)
    assert len(set(drawn)) > len(kept) // 2


def test_the_smallest_set_of_a_share():
    x = rg.tensor(np.log([[0.1, 0.4, 0.3, 0.2]]))
    kept = np.isfinite(_within_share(x, 0.65).numpy())
    assert kept.tolist() == [[False, True, True, False]]
    assert np.isfinite(_within_share(x, 0.75).numpy()).tolist() == [[False, True, True, True]]
    assert np.isfinite(_within_share(x, 1e-9).numpy()).sum() == 1
    assert np.isfinite(_within_share(x, 1.0).numpy()).all()


@pytest.mark.slow
def test_one_program_for_many_calls():
    with rg.backend("llvm"):
        model = randomized(GPT2(replace(GPT2_SIZES, n_layer=1)))
        wanted = [greedy(model, TOKENS[0][:n], 3) for n in (3, 4)]
        got = [model.generate(TOKENS[:1, :n], 3, eos=()).numpy()[0, n:].tolist() for n in (3, 4)]
        assert got == wanted


def test_the_model_stays_as_it_was():
    model = randomized(GPT2(GPT2_SIZES)).train()
    model.generate(TOKENS, 2, eos=())
    assert model.training
    assert model.transformer.h[0].training
    assert model.generate(TOKENS, 0).numpy().tolist() == TOKENS.tolist()
    assert model.generate(TOKENS[:0], 3).shape == (0, 7)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_new_tokens": 10}, "17, are more than the 16 positions"),
        ({"max_new_tokens": -1}, "max_new_tokens is an integer of at least 0"),
        ({"max_new_tokens": 2.0}, "max_new_tokens is an integer"),
        ({"temperature": -1}, "a temperature is 0 or a positive number"),
        ({"temperature": float("nan")}, "a temperature is 0 or a positive number"),
        ({"top_k": 0}, "top_k is an integer of at least 1"),
        ({"top_p": 0.0}, "top_p is a probability above 0"),
        ({"top_p": 1.5}, "top_p is a probability above 0"),
        ({"seed": -1, "top_k": 2}, "seed is an integer of at least 0"),
        ({"cache_size": 8}, "do not fit into 8 slots"),
        ({"attention_mask": MASK[:, 1:]}, "has the shape of the tokens"),
        ({"attention_mask": 0 * MASK}, "a row of attention_mask has no token"),
    ],
)
def test_wrong_calls(options, said):
    model = randomized(GPT2(GPT2_SIZES))
    with pytest.raises(rg.RetrogradError, match=said):
        model.generate(TOKENS, **{"max_new_tokens": 4, **options})


@pytest.mark.parametrize("tokens", [[1, 2], [[]], [[1.0]], np.zeros((1, 2, 3), int)])
def test_wrong_tokens(tokens):
    with pytest.raises(rg.ShapeError, match="generate takes tokens"):
        randomized(GPT2(GPT2_SIZES)).generate(tokens)


@pytest.mark.parametrize("token", [-1, 37])
def test_a_token_that_there_is_not(token):
    with pytest.raises(rg.IndexRangeError, match="those of this model are 0 to 36"):
        randomized(GPT2(GPT2_SIZES)).generate([[1, token]], 2)


def test_ends_of_a_folder(tmp_path):
    model = randomized(GPT2(replace(GPT2_SIZES, eos_token_id=None), dtype=rg.float64), 5)
    free = model.generate(TOKENS[:1], 6).numpy()[0, 7:].tolist()
    model.save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(
        f'{{"eos_token_id": [{free[1]}], "pad_token_id": null, "temperature": 0.6}}'
    )
    loaded = GPT2.from_pretrained(tmp_path)
    end = free.index(free[1]) + 1
    assert loaded.generate(TOKENS[:1], 6).numpy()[0, 7:].tolist() == free[:end]
    loaded.save_pretrained(tmp_path / "again")
    assert GPT2.from_pretrained(tmp_path / "again").generation == {"eos_token_id": [free[1]]}
    (tmp_path / "generation_config.json").write_text("[")
    with pytest.raises(rg.FormatError, match="is no JSON"):
        GPT2.from_pretrained(tmp_path)
