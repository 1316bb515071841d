"""The GPT recipe: resuming to the bit, stopping, what does not fit, bad input."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import CheckpointManager, save_checkpoint
from retrograd.runtime.denormals import flushes
from retrograd.train import run_log
from retrograd.train.gpt import load_model, train
from retrograd.train.gpt.trainer import GPTTrainer
from retrograd.train.progress import Silent
from tests.train.gpt.runs import DOCUMENTS, SMALL


class StopAfter(Silent):
    """Sends this process a signal after a step, as Ctrl-C does."""

    def __init__(self, step: int, number: int = signal.SIGINT) -> None:
        self.step = step
        self.number = number

    def update(self, step: int, loss: float, tokens: int) -> None:
        if step >= self.step:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.sample(1)
def test_it_learns(tmp_path: Path, batch: int) -> None:
    outcome = train(DOCUMENTS, tmp_path, steps=120, batch=batch, held_out=0.0, **SMALL)
    assert outcome.validation_loss is None
    assert outcome.signal is None
    losses = [outcome.trainer.advance()[0] for _ in range(10)]
    assert np.mean(losses) < 1.5 < np.log(10)


@pytest.mark.skipif(not flushes(), reason="this processor has no such mode")
@pytest.mark.usefixtures("reference")
def test_subnormal_numbers_count_as_zero_while_it_trains(tmp_path: Path) -> None:
    found = []

    class Looking(Silent):
        def update(self, step: int, loss: float, tokens: int) -> None:
            found.append(float(np.float32(1e-30) * np.float32(1e-10)))

    train(DOCUMENTS, tmp_path, steps=2, reporter=Looking(), **SMALL)
    assert found == [0, 0]
    assert float(np.float32(1e-30) * np.float32(1e-10)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.sample(1)
def test_a_stopped_and_resumed_run_ends_with_the_same_bytes(tmp_path: Path, number: int) -> None:
    options = {**SMALL, "steps": 12, "checkpoint_every": 4}
    whole = train(DOCUMENTS, tmp_path / "whole", **options)
    half = train(DOCUMENTS, tmp_path / "parts", reporter=StopAfter(6, number), **options)
    assert half.signal == number
    assert 6 <= half.trainer.step < 12  # after the call that step was in
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
    with pytest.raises(rg.NonFiniteError, match="lower the learning rate") as caught:
        train(DOCUMENTS, tmp_path, steps=50, lr=1e30, **SMALL)
    said = str(caught.value)
    assert "the loss is nan at step 3: training has diverged\nfirst, mul gives inf" in said
    assert "in GPT.norm (at " in said
    assert CheckpointManager(tmp_path).paths() == []


@pytest.mark.usefixtures("reference")
def test_parameters_that_are_spoilt_are_not_saved(tmp_path: Path) -> None:
    """Steps of which the gradient alone is no number: 0 / 0 in the update of Adam without eps."""
    train(DOCUMENTS, tmp_path, **SMALL | {"steps": 4, "checkpoint_every": 2})
    trainer = GPTTrainer.resumed(CheckpointManager(tmp_path), DOCUMENTS, {"steps": 9})
    trainer.advance()
    trainer._keep()  # a copy that is good
    leaves = [x.numpy().copy() for x in trainer._leaves]
    leaves[0][0, 0] = np.nan
    trainer._leaves = [rg.tensor(x) for x in leaves]
    before = CheckpointManager(tmp_path).paths()
    with pytest.raises(rg.NonFiniteError, match=r"after step 5 are not finite(.|\n)*step-00000004"):
        trainer.save(CheckpointManager(tmp_path))
    assert CheckpointManager(tmp_path).paths() == before
    trainer._next_copy = float("-inf")
    trainer._keep()
    assert trainer._kept is not None
    assert all(np.isfinite(x).all() for x in trainer._kept[1])


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
    assert [p.name for p in CheckpointManager(tmp_path).paths()] == ["step-00000002.safetensors"]
    assert train(DOCUMENTS, tmp_path, resume=True).trainer.step == 6


@pytest.mark.slow
@pytest.mark.usefixtures("reference")
def test_a_log_that_cannot_be_written_loses_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "cannot write the log: no space is left there")

    monkeypatch.setattr(run_log, "append_text", full)
    with pytest.raises(OSError, match="cannot write the log") as caught:
        train(DOCUMENTS, tmp_path, steps=6, **SMALL)
    saved = CheckpointManager(tmp_path).latest
    assert caught.value.__notes__ == [f"all is saved in {saved}"]
    monkeypatch.undo()
    assert train(DOCUMENTS, tmp_path, resume=True).trainer.step == 6


@pytest.mark.usefixtures("reference")
def test_resuming_with_other_options_or_another_text(tmp_path: Path) -> None:
    train(DOCUMENTS, tmp_path, steps=2, **SMALL)
    before = sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())
    with pytest.raises(rg.FormatError, match=r"run with width = 8.* width = 16; leave the option"):
        train(DOCUMENTS, tmp_path, resume=True, width=16)
    with pytest.raises(rg.FormatError, match=r"another text than the one that is given"):
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
    with pytest.raises(
        TypeError, match=r"no option 'withd'; did you mean 'width'.; there are activ"
    ):
        train(DOCUMENTS, tmp_path, withd=4)
    assert list(tmp_path.iterdir()) == []
