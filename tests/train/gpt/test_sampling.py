"""Samples of a GPT: what they depend on, and how often."""

from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import load_checkpoint
from retrograd.train.gpt import GPT, GPTConfig, load_model, sample, train
from tests.train.gpt.runs import DOCUMENTS, SMALL


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return train(DOCUMENTS, folder, steps=150, batch=2, **SMALL).checkpoint


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
