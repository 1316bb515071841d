"""The GPT recipe: what is learned from, resuming to the bit, stopping, samples, bad input."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import CheckpointManager, load_checkpoint, save_checkpoint
from retrograd.train.gpt import GPT, Corpus, GPTConfig, Trainer, load_model, sample, train
from retrograd.train.progress import Silent

DOCUMENTS = [a + b + c for a in "bdk" for b in "aei" for c in ("n", "ra", "lla")]
SMALL: dict[str, Any] = {"width": 8, "heads": 2, "context": 8, "val_every": 5}


class StopAfter(Silent):
    """Sends this process a signal after a step, as Ctrl-C does."""

    def __init__(self, step: int, number: int = signal.SIGINT) -> None:
        self.step = step
        self.number = number

    def update(self, step: int, loss: float, tokens: int) -> None:
        if step == self.step:
            os.kill(os.getpid(), self.number)


@pytest.fixture
def reference() -> Iterator[None]:
    """Runs of a few steps need no compilation."""
    with rg.backend("reference"):
        yield


# -- the text --------------------------------------------------------------------------------------
def test_a_sample_is_a_document_between_two_marks() -> None:
    corpus = Corpus(["ab"], context=16, seed=0)
    tokens, targets = corpus.batch(0, 1)
    assert tokens.tolist() == [[2, 0, 1]]
    assert targets.tolist() == [[0, 1, 2]]
    assert corpus.validation == []


def test_a_long_document_is_learned_from_in_pieces() -> None:
    corpus = Corpus(["abcdefg"], context=3, seed=0)
    assert [s.tolist() for s in corpus.training] == [[7, 0, 1, 2], [2, 3, 4, 5], [5, 6, 7]]


def test_every_epoch_has_every_document_once_in_a_new_order() -> None:
    corpus = Corpus(DOCUMENTS, context=8, seed=0)
    n = len(corpus.training)
    epochs = [
        [tuple(corpus.batch(e * n + i, 1)[0][0].tolist()) for i in range(n)] for e in range(3)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.usefixtures("reference")
def test_batches_are_padded_and_padding_does_not_count() -> None:
    trainer = Trainer.fresh(DOCUMENTS, {**SMALL, "batch": 4, "dtype": "float64"})
    tokens, targets = trainer.corpus.batch(0, 4)
    assert (targets == -100).any()
    logits = trainer.model(rg.tensor(tokens)).numpy()
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    real = targets >= 0
    expected = -np.take_along_axis(logp, np.maximum(targets, 0)[..., None], -1)[..., 0][real].mean()
    loss, count = trainer.advance()
    assert count == real.sum()
    assert loss == pytest.approx(expected)


def test_one_compilation_serves_every_length() -> None:
    trainer = Trainer.fresh(DOCUMENTS, SMALL)
    lengths = {trainer.corpus.batch(i, 1)[0].shape[1] for i in range(10)}
    for _ in range(10):
        trainer.advance()
    assert len(lengths) > 1
    assert trainer._update.cache_stats()["compilations"] == 1


@pytest.mark.usefixtures("reference")
def test_the_validation_loss_is_the_mean_over_all_tokens_held_out() -> None:
    trainer = Trainer.fresh(DOCUMENTS, {**SMALL, "held_out": 0.5, "dtype": "float64"})
    losses = []
    for s in trainer.corpus.validation:
        logp = rg.log_softmax(trainer.model(rg.tensor(s[None, :-1]))).numpy()[0]
        losses += [-logp[i, t] for i, t in enumerate(s[1:])]
    assert trainer.validation_loss() == pytest.approx(np.mean(losses))


# -- training --------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.sample(1)
def test_it_learns(tmp_path: Path, batch: int) -> None:
    outcome = train(DOCUMENTS, tmp_path, steps=120, batch=batch, held_out=0.0, **SMALL)
    assert outcome.validation_loss is None
    assert outcome.signal is None
    losses = [outcome.trainer.advance()[0] for _ in range(10)]
    assert np.mean(losses) < 1.5 < np.log(10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.sample(1)
def test_a_stopped_and_resumed_run_ends_with_the_same_bytes(tmp_path: Path, number: int) -> None:
    options = {**SMALL, "steps": 12, "checkpoint_every": 4}
    whole = train(DOCUMENTS, tmp_path / "whole", **options)
    half = train(DOCUMENTS, tmp_path / "parts", reporter=StopAfter(6, number), **options)
    assert half.signal == number
    assert half.checkpoint.name == "step-00000006.safetensors"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    rest = train(DOCUMENTS, tmp_path / "parts", resume=True)
    assert rest.trainer.step == 12
    assert rest.validation_loss == whole.validation_loss
    assert rest.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


@pytest.mark.usefixtures("reference")
def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path: Path) -> None:
    first, second, other = (
        train(DOCUMENTS, tmp_path / str(i), steps=3, seed=seed, **SMALL).checkpoint.read_bytes()
        for i, seed in enumerate((1, 1, 2))
    )
    assert first == second != other


@pytest.mark.usefixtures("reference")
def test_a_resumed_run_may_be_longer(tmp_path: Path) -> None:
    train(DOCUMENTS, tmp_path, steps=2, **SMALL)
    assert train(DOCUMENTS, tmp_path, resume=True).trainer.step == 2
    assert train(DOCUMENTS, tmp_path, resume=True, steps=4).trainer.step == 4


@pytest.mark.usefixtures("reference")
def test_a_second_run_starts_afresh_and_keeps_the_first(tmp_path: Path) -> None:
    first = train(DOCUMENTS, tmp_path, steps=6, **SMALL)
    content = first.checkpoint.read_bytes()
    second = train(DOCUMENTS, tmp_path, steps=3, **SMALL)
    assert CheckpointManager(tmp_path).paths() == [second.checkpoint]
    assert (tmp_path / "previous" / first.checkpoint.name).read_bytes() == content


@pytest.mark.usefixtures("reference")
def test_one_document_trains_without_validation(tmp_path: Path) -> None:
    said: list[str] = []

    class Listener(Silent):
        def message(self, text: str) -> None:
            said.append(text)

    outcome = train(["only"], tmp_path, steps=2, reporter=Listener(), **SMALL)
    assert outcome.validation_loss is None
    assert any("only one document" in text for text in said)


@pytest.mark.usefixtures("reference")
def test_a_diverging_run_stops_before_it_spoils_anything(tmp_path: Path) -> None:
    with pytest.raises(rg.NonFiniteError, match="lower the learning rate"):
        train(DOCUMENTS, tmp_path, steps=50, lr=1e38, **SMALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("reference")
def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: Any) -> None:
    options = {**SMALL, "steps": 6, "checkpoint_every": 2}

    class Full(Silent):
        def update(self, step: int, loss: float, tokens: int) -> None:
            if step == 4:
                monkeypatch.setattr(os, "replace", no_space)

    def no_space(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="no space is left there; free some"):
        train(DOCUMENTS, tmp_path, reporter=Full(), **options)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000002.safetensors"]
    assert train(DOCUMENTS, tmp_path, resume=True).trainer.step == 6


# -- what does not fit -------------------------------------------------------------------------
@pytest.mark.usefixtures("reference")
def test_resuming_with_other_options_or_another_text(tmp_path: Path) -> None:
    train(DOCUMENTS, tmp_path, steps=2, **SMALL)
    before = sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())
    with pytest.raises(rg.FormatError, match=r"run with width = 8.* width = 16; leave the option"):
        train(DOCUMENTS, tmp_path, resume=True, width=16)
    with pytest.raises(rg.FormatError, match=r"another text, of 27 documents; this one has 26"):
        train(DOCUMENTS[1:], tmp_path, resume=True)
    assert sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir()) == before


def test_resuming_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no checkpoint in this directory"):
        train(DOCUMENTS, tmp_path / "none", resume=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("reference")
def test_resuming_from_a_damaged_or_foreign_checkpoint(tmp_path: Path) -> None:
    path = train(DOCUMENTS, tmp_path, steps=2, **SMALL).checkpoint
    whole = path.read_bytes()
    for n in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        with pytest.raises(rg.FormatError, match=r"step-00000002"):
            train(DOCUMENTS, tmp_path, resume=True)
        with pytest.raises(rg.FormatError, match=r"step-00000002"):
            load_model(tmp_path)
    save_checkpoint(path, model={"w": rg.ones(1)})
    with pytest.raises(rg.FormatError, match="no checkpoint of a GPT run"):
        train(DOCUMENTS, tmp_path, resume=True)
    with pytest.raises(rg.FormatError, match="no checkpoint of a GPT run"):
        load_model(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 6}, "width 6 of a GPT cannot be shared by 4 heads"),
        ({"depth": 0}, "depth of a GPT is at least 1"),
        ({"dtype": "int8"}, "float32 or float64"),
        ({"steps": 0}, "steps is at least 1"),
        ({"lr": -1.0}, "learning rate is a positive number"),
        ({"lr": float("nan")}, "learning rate is a positive number"),
        ({"held_out": 1.0}, "from 0 to below 1"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(rg.OptionError, match=message):
        train(DOCUMENTS, tmp_path, **options)
    with pytest.raises(TypeError, match="no option 'withd'; there are batch"):
        train(DOCUMENTS, tmp_path, withd=4)
    assert list(tmp_path.iterdir()) == []


# -- samples -----------------------------------------------------------------------------------
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
