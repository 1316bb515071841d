"""The GPT of `retrograd.train.gpt` against a GPT on scalars in plain Python: the same losses."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import bundled_names
from retrograd.train.gpt import GPT, GPTConfig, GPTTrainer
from tests.fixtures.microgpt_reference import MicroGPT, initial_weights

# The names of the weights in the reference, and in the model.
NAMES = {
    "wte": "tokens.weight",
    "wpe": "positions.weight",
    "q": "blocks.0.attention.query.weight",
    "k": "blocks.0.attention.key.weight",
    "v": "blocks.0.attention.value.weight",
    "o": "blocks.0.attention.out.weight",
    "up": "blocks.0.mlp.up.weight",
    "down": "blocks.0.mlp.down.weight",
    "head": "head.weight",
}


def pair(steps: int, **options: Any) -> tuple[GPTTrainer, MicroGPT]:
    """Both, with the same weights."""
    weights = initial_weights(27)
    trainer = GPTTrainer.fresh(bundled_names(), {"steps": steps, **options})
    trainer.model.load_state_dict({NAMES[k]: np.array(w) for k, w in weights.items()})
    return trainer, MicroGPT(weights)


def sequence(trainer: GPTTrainer, step: int) -> list[int]:
    """The document of a step, as the reference takes it."""
    tokens, targets = trainer.corpus.batch(step, 1)
    return [*tokens[0].tolist(), int(targets[0, -1])]


def test_the_default_is_microgpt() -> None:
    model = GPT(GPTConfig(), rg.random.Generator(0))
    assert sum(p.size for p in model.parameters()) == 4192
    assert set(model.state_dict()) == set(NAMES.values())
    weights = np.concatenate([p.numpy().ravel() for p in model.parameters()])
    assert abs(weights.std() - 0.08) < 0.002
    assert abs(weights.mean()) < 0.004


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["llvm", pytest.param("reference", marks=pytest.mark.slow)])
def test_losses_are_those_of_the_reference_step_by_step(backend: str) -> None:
    with rg.backend(backend):
        trainer, reference = pair(steps=1000, dtype="float64")
        for step in range(6):
            expected = reference.step(sequence(trainer, step), step, 1000)
            assert trainer.advance()[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_weights_after_some_steps_are_those_of_the_reference() -> None:
    trainer, reference = pair(steps=4, dtype="float64")
    for step in range(4):
        reference.step(sequence(trainer, step), step, 4)
        trainer.advance()
    state = trainer.model.state_dict()
    for k, name in NAMES.items():
        expected = [[v.data for v in row] for row in reference.weights[k]]
        np.testing.assert_allclose(state[name].numpy(), expected, rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_whole_training_is_no_worse_than_the_reference() -> None:
    """1,000 steps of both from the same weights, and the loss on 100 names held out."""
    trainer, reference = pair(steps=1000)
    for step in range(1000):
        reference.step(sequence(trainer, step), step, 1000)
        trainer.advance()
    held_out = trainer.corpus.validation[:100]
    trainer.corpus.validation = held_out
    losses = [v.data for s in held_out for v in reference.losses(s.tolist())]
    found = trainer.validation_loss()
    assert found is not None
    assert found <= np.mean(losses) + 0.005
    assert found < 2.4
