"""Steps of a GPT's training, its validation, and models that are loaded."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.train.gpt import GPTTrainer
from tests.train.gpt.runs import DOCUMENTS, SMALL


@pytest.mark.usefixtures("reference")
def test_batches_are_padded_and_padding_does_not_count() -> None:
    trainer = GPTTrainer.fresh(DOCUMENTS, {**SMALL, "batch": 4, "dtype": "float64"})
    tokens, targets = trainer.corpus.batch(0, 4)
    assert (targets == -100).any()
    logits = trainer.model(rg.tensor(tokens)).numpy()
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    real = targets >= 0
    expected = -np.take_along_axis(logp, np.maximum(targets, 0)[..., None], -1)[..., 0][real].mean()
    loss, count = trainer.advance()
    assert count == real.sum()
    assert loss == pytest.approx(expected)


@pytest.mark.slow
def test_one_compilation_serves_every_length() -> None:
    trainer = GPTTrainer.fresh(DOCUMENTS, SMALL)
    lengths = {trainer.corpus.batch(i, 1)[0].shape[1] for i in range(10)}
    for _ in range(10):
        trainer.advance()
    assert len(lengths) > 1
    assert trainer._update.cache_stats()["compilations"] == 1


@pytest.mark.usefixtures("reference")
def test_the_validation_loss_is_the_mean_over_all_tokens_held_out() -> None:
    trainer = GPTTrainer.fresh(DOCUMENTS, {**SMALL, "held_out": 0.5, "dtype": "float64"})
    losses = []
    for s in trainer.corpus.validation:
        logp = rg.log_softmax(trainer.model(rg.tensor(s[None, :-1]))).numpy()[0]
        losses += [-logp[i, t] for i, t in enumerate(s[1:])]
    assert trainer.validation_loss() == pytest.approx(np.mean(losses))
