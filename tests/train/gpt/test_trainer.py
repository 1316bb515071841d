"""Steps of a GPT's training, its validation, and models that are loaded."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import CheckpointManager
from retrograd.train.gpt import GPTTrainer, TextFile
from retrograd.train.gpt import trainer as trainer_module
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
@pytest.mark.parametrize("options", [SMALL, {**SMALL, "batch": 2, "width": 128, "context": 32}])
def test_one_compilation_serves_every_number_of_steps_and_every_length(options: Any) -> None:
    trainer = GPTTrainer.fresh(DOCUMENTS, options)
    for most in (1, 2, 5, 1):
        trainer.steps_at_once(most)
    assert trainer._steps.cache_stats()["compilations"] == 1


def weights(trainer: GPTTrainer) -> bytes:
    return b"".join(p.numpy().tobytes() for p in trainer.model.parameters())


@pytest.mark.sample(1)
@pytest.mark.parametrize("options", [SMALL, {**SMALL, "batch": 3}])
def test_steps_have_the_same_bits_however_they_are_divided_into_calls(options: Any) -> None:
    runs = []
    for sizes in ([1], [40], [7, 1, 12]):
        trainer = GPTTrainer.fresh(DOCUMENTS, {**options, "steps": 40})
        losses: list[float] = []
        for most in itertools.cycle(sizes):
            losses += trainer.steps_at_once(min(most, 40 - trainer.step))[0].tolist()
            if trainer.step == 40:
                break
        runs.append((losses, weights(trainer)))
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("small", [1, 4e7])
def test_where_each_size_is_compiled_batches_are_of_few_shapes(
    monkeypatch: pytest.MonkeyPatch, small: float
) -> None:
    monkeypatch.setattr(trainer_module, "SMALL_STEP_FLOPS", small)
    runs = []
    for each in (False, True):
        monkeypatch.setattr(trainer_module, "compiles_each_size", lambda name, each=each: each)
        trainer = GPTTrainer.fresh(DOCUMENTS, {**SMALL, "dtype": "float64", "steps": 6})
        shapes: set[tuple[int, ...]] = set()
        found: list[float] = []

        def noted(tokens: Any, targets: Any, seen: Any = shapes) -> Any:
            seen.add(tokens.shape)
            return tokens, targets

        monkeypatch.setattr(trainer, "_on_mesh", noted)
        for most in (1, 3, 2):
            losses, count = trainer.steps_at_once(most)
            assert len(losses) <= most
            found += [*losses, count]
        if each:
            assert {k for k, _, _ in shapes} == {6}
            assert {t for _, _, t in shapes} <= ({2, 4, 6, 8} if small == 1 else {8})
            assert trainer.step == len(found) - 3
        runs.append((found, np.frombuffer(weights(trainer))))
    np.testing.assert_allclose(runs[1][0], runs[0][0], rtol=1e-12)
    np.testing.assert_allclose(runs[1][1], runs[0][1], rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("reference")
@pytest.mark.slow
def test_samples_of_the_usual_length_give_the_losses_they_give_padded() -> None:
    documents = ["abc" * n for n in (1, 1, 1, 1, 1, 2, 2, 5)]
    options = {**SMALL, "context": 16, "dtype": "float64", "held_out": 0.0, "steps": 24}
    short, padded = (GPTTrainer.fresh(documents, options) for _ in range(2))
    assert short._usual == 8  # of two words and a mark, padded; the longest has five
    assert short.corpus.batch(0, 1, short._alike)[0].shape == (1, 16)
    padded._usual = None
    for _ in range(24):
        assert short.advance() == pytest.approx(padded.advance(), abs=1e-12)


@pytest.mark.usefixtures("reference")
def test_a_model_that_somebody_has_is_left_as_it_is() -> None:
    trainer = GPTTrainer.fresh(DOCUMENTS, SMALL)
    before, values = trainer.model, weights(trainer)
    trainer.advance()
    assert b"".join(p.numpy().tobytes() for p in before.parameters()) == values != weights(trainer)


@pytest.mark.usefixtures("reference")
def test_the_validation_loss_is_the_mean_over_all_tokens_held_out() -> None:
    trainer = GPTTrainer.fresh(DOCUMENTS, {**SMALL, "held_out": 0.5, "dtype": "float64"})
    losses = []
    for s in trainer.corpus.validation:
        logp = rg.log_softmax(trainer.model(rg.tensor(s[None, :-1]))).numpy()[0]
        losses += [-logp[i, t] for i, t in enumerate(s[1:])]
    assert trainer.validation_loss() == pytest.approx(np.mean(losses))


@pytest.mark.torch
@pytest.mark.sample(1)
@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_a_run_on_a_text_against_torch(tmp_path: Path, schedule: str) -> None:
    """AdamW, clipping and the schedule, on a model that PyTorch is given."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.txt"
    path.write_text("to be or not to be, that is the question\n" * 20)
    options = {
        "depth": 1, "width": 8, "heads": 2, "context": 8, "batch": 3, "steps": 12, "warmup": 3,
        "clip": 0.5, "schedule": schedule, "dtype": "float64", "lr": 0.05, "positions": "none",
        "min_lr": 0.01,
    }  # fmt: skip
    trainer = GPTTrainer.fresh(TextFile.read(path), options)
    model = TorchGPT(torch, trainer)
    for step in range(12):
        expected = model.step(*trainer.corpus.batch(step, 3), step)
        assert trainer.advance()[0] == pytest.approx(expected, abs=1e-9)


class TorchGPT:
    """A layer of the recipe's GPT in PyTorch."""

    def __init__(self, torch: Any, trainer: GPTTrainer) -> None:
        self.torch, self.config = torch, trainer.config
        state = trainer.model.state_dict().items()
        self.p = {k: torch.tensor(v.numpy().copy(), requires_grad=True) for k, v in state}
        c = trainer.config
        self.optimizer = torch.optim.AdamW(
            self.p.values(), lr=c.lr, betas=(c.beta1, c.beta2), weight_decay=c.weight_decay
        )

    def rate(self, step: int) -> float:
        c = self.config
        if step < c.warmup:
            return c.lr * (step + 1) / c.warmup
        done = (step - c.warmup) / (c.steps - c.warmup)
        left = {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done, "constant": 1}
        end = c.lr if c.schedule == "constant" else c.min_lr
        return end + (c.lr - end) * left[c.schedule]

    def step(self, tokens: Any, targets: Any, step: int) -> float:
        torch, p, F = self.torch, self.p, self.torch.nn.functional
        at = "blocks.0.attention."

        def norm(x: Any) -> Any:
            return F.rms_norm(x, (8,), eps=1e-5)

        def heads(x: Any, name: str) -> Any:
            return (norm(x) @ p[f"{at}{name}.weight"].T).reshape(3, 8, 2, 4).transpose(1, 2)

        x = norm(p["tokens.weight"][torch.tensor(tokens).long()])
        parts = (heads(x, n) for n in ("query", "key", "value"))
        y = F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2)
        x = x + y.reshape(3, 8, 8) @ p[f"{at}out.weight"].T
        up = F.gelu(norm(x) @ p["blocks.0.mlp.up.weight"].T, approximate="tanh")
        x = norm(x + up @ p["blocks.0.mlp.down.weight"].T)
        logits = (x @ p["head.weight"].T).reshape(24, -1)
        loss = F.cross_entropy(logits, torch.tensor(targets).long().reshape(-1))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), self.config.clip)
        self.optimizer.step()
        return float(loss.detach())


@pytest.mark.usefixtures("reference")
@pytest.mark.slow
def test_a_run_with_dropout_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("to be or not to be, that is the question\n" * 20)
    text = TextFile.read(path)
    options = {"depth": 1, "width": 8, "heads": 2, "context": 8, "batch": 2, "dropout": 0.3}
    whole = GPTTrainer.fresh(text, {**options, "steps": 8})
    parts = GPTTrainer.fresh(text, {**options, "steps": 8})
    losses = [whole.advance()[0] for _ in range(8)]
    assert parts.steps_at_once(3)[0].tolist() == losses[:3]
    manager = CheckpointManager(tmp_path / "run")
    parts.save(manager)
    rest = GPTTrainer.resumed(manager, text, {})
    assert [rest.advance()[0] for _ in range(5)] == losses[3:]
    assert weights(rest) == weights(whole)
    assert rest.validation_loss() == whole.validation_loss() == whole.validation_loss()
    other = GPTTrainer.fresh(text, {**options, "steps": 8, "dropout": 0.0})
    assert other.advance()[0] != losses[0]


@pytest.mark.usefixtures("reference")
def test_bits_per_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("äöü be or not\n" * 40, encoding="utf-8")
    options = {"depth": 1, "width": 8, "heads": 2, "context": 7, "held_out": 0.25}
    trainer = GPTTrainer.fresh(TextFile.read(path), options)
    loss = trainer.validation_loss()
    assert loss is not None
    assert trainer.bits_per_byte(loss) == pytest.approx(loss / np.log(2) * 14 / 17)
    assert GPTTrainer.fresh(DOCUMENTS, SMALL).bits_per_byte(1.0) is None
