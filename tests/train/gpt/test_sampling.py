"""Samples of a GPT: what they depend on, and how often."""

from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import CharTokenizer
from retrograd.io import load_checkpoint
from retrograd.train.gpt import GPT, GPTConfig, load_model, sample, stream, train
from retrograd.train.gpt.model import POSITIONS
from retrograd.train.gpt.sampling import likely
from tests.train.gpt.runs import DOCUMENTS, SMALL


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return train(DOCUMENTS, folder, steps=150, batch=2, **SMALL).checkpoint


@pytest.mark.slow
def test_samples_depend_on_the_seed_only(trained: Path) -> None:
    model, tokenizer = load_model(trained)
    texts = sample(model, tokenizer, 10, seed=3)
    assert texts == sample(*load_model(trained.parent), 10, seed=3)
    assert texts != sample(model, tokenizer, 10, seed=4)
    assert len(texts) == 10
    assert all(len(t) <= 8 for t in texts)


@pytest.mark.slow
def test_samples_begin_with_the_prompt_and_end_at_the_length(trained: Path) -> None:
    model, tokenizer = load_model(trained)
    assert all(t.startswith("ka") for t in sample(model, tokenizer, 5, prompt="ka"))
    hot = sample(model, tokenizer, 20, temperature=100.0, length=30)
    assert 8 < max(map(len, hot)) <= 30
    with pytest.raises(rg.FormatError, match="character 'z'"):
        sample(model, tokenizer, 5, prompt="z")
    with pytest.raises(rg.OptionError, match="temperature"):
        sample(model, tokenizer, 5, temperature=-1.0)


def test_temperature_0_takes_the_most_likely_token(trained: Path) -> None:
    model, tokenizer = load_model(trained)
    texts = sample(model, tokenizer, 3, temperature=0.0)
    assert len(set(texts)) == 1
    tokens = tokenizer.encode(texts[0])[:9]
    logits = model(rg.tensor([tokens[:-1]])).numpy()[0]
    assert logits.argmax(-1).tolist() == tokens[1:]


def test_samples_follow_the_probabilities_of_the_model(trained: Path) -> None:
    """The first character of 4,000 samples, against softmax(logits / temperature)."""
    model, tokenizer = load_model(trained)
    texts = sample(model, tokenizer, 4000, temperature=1.5, length=1)
    logits = model(rg.tensor([[tokenizer.bos]])).numpy()[0, 0] / 1.5
    p = np.exp(logits) / np.exp(logits).sum()
    for i, c in enumerate(tokenizer.characters):
        assert abs(texts.count(c) / 4000 - p[i]) < 5 * np.sqrt(p[i] / 4000) + 1e-3


def test_a_loaded_model_is_the_trained_one(trained: Path) -> None:
    model, _ = load_model(trained)
    assert isinstance(model, GPT)
    assert model.config == GPTConfig(vocab_size=10, context=8, width=8, heads=2)
    saved = load_checkpoint(trained)["model"]
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), saved[name].numpy())


@pytest.mark.parametrize("positions", POSITIONS)
def test_one_position_after_the_other_gives_the_logits_of_all(positions: str) -> None:
    config = GPTConfig(
        context=8, depth=2, positions=positions, activation="gelu", final_norm=True,
        dtype="float64", init_std=0.3,
    )  # fmt: skip
    with rg.backend("reference"), rg.no_grad():
        model = GPT(config, rg.random.Generator(0))
        tokens = rg.random.Generator(1).randint(0, 27, (3, 8))
        caches, found = model.empty_caches(3), []
        for i in range(8):
            logits, caches = model.next(tokens[:, i], caches)
            found.append(logits.numpy())
        np.testing.assert_allclose(np.stack(found, 1), model(tokens).numpy(), rtol=0, atol=1e-13)


@pytest.mark.usefixtures("reference")
def test_past_the_context_the_last_half_is_gone_on_from() -> None:
    config = GPTConfig(vocab_size=5, context=6, width=8, heads=2, documents=False, init_std=0.5)
    model, tokenizer = GPT(config, rg.random.Generator(3)), CharTokenizer("abcd")
    made = sample(model, tokenizer, 1, temperature=0.0, prompt="ab", length=20)[0]
    assert made == "".join(stream(model, tokenizer, temperature=0.0, prompt="ab", length=20))
    seen = made[:2]
    expected = list(seen)
    while len(expected) < 20:
        logits = model(rg.tensor([tokenizer.encode(seen, begin=False, end=False)])).numpy()[0, -1]
        expected.append("abcd"[logits[:4].argmax()])
        seen = seen + expected[-1] if len(seen) < 6 else "".join(expected[-3:])
    assert made == "".join(expected)


def test_likely_tokens_against_a_loop() -> None:
    logits = np.random.default_rng(0).normal(size=(20, 9)) * 2
    for top_k, top_p in ((9, None), (1, None), (4, None), (9, 0.7), (9, 1e-9), (5, 0.9), (9, 1.0)):
        p = None if top_p is None else rg.tensor(np.float64(top_p))
        found = likely(rg.tensor(logits), top_k, p).numpy()
        for row, kept in zip(logits, found, strict=True):
            order = np.argsort(-row)[:top_k]
            share = np.exp(row[order]) / np.exp(row[order]).sum()
            n = top_k if top_p is None else int((np.cumsum(share) - share < top_p).sum())
            assert set(np.flatnonzero(np.isfinite(kept))) == set(order[:n])
            assert (kept[order[:n]] == row[order[:n]]).all()


@pytest.mark.torch
def test_likely_tokens_against_transformers() -> None:
    torch = pytest.importorskip("torch")
    generation = pytest.importorskip("transformers.generation")
    logits = np.random.default_rng(1).normal(size=(50, 30)).astype(np.float32) * 3
    first = generation.TopKLogitsWarper(7)(None, torch.tensor(logits))
    both = generation.TopPLogitsWarper(0.8)(None, first)
    found = likely(rg.tensor(logits), 7, rg.tensor(np.float64(0.8))).numpy()
    np.testing.assert_array_equal(found, both.numpy())


def test_bad_numbers() -> None:
    model, tokenizer = GPT(GPTConfig(vocab_size=3), rg.random.Generator(0)), CharTokenizer("ab")
    for options in ({"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.1}, {"length": 0}):
        with pytest.raises(rg.OptionError, match=r"at least 1|above 0"):
            sample(model, tokenizer, 1, **options)
