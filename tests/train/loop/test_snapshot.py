"""Runs that are stopped and go on: to the bits of one that never stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim, pytree
from retrograd.errors import FormatError
from retrograd.io import load_checkpoint
from retrograd.train import EarlyStopping, TrainingRun, fit
from retrograd.train.loop.snapshot import described

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with rg.backend("reference"):
        yield


class Net(rg.nn.Module):
    """Running statistics, dropout, and a buffer that is not saved by name."""

    calls: Any

    def __init__(self) -> None:
        generator = rg.random.Generator(0)
        self.inner = rg.nn.Linear(3, 8, generator=generator)
        self.norm = rg.nn.BatchNorm1d(8)
        self.drop = rg.nn.Dropout(0.25, generator=generator.split())
        self.outer = rg.nn.Linear(8, 1, generator=generator)
        self.register_buffer("calls", np.zeros(()), persistent=False)

    def forward(self, x: Any) -> Any:
        self.calls = self.calls + 1
        return self.outer(self.drop(rg.tanh(self.norm(self.inner(x)))))


def rows(count: int = 17, seed: int = 0) -> tuple[Array, Array]:
    x = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    return x, (x[:, :1] * 2 - x[:, 1:2]).astype(np.float32)


def squares(model: Any, batch: Any) -> Any:
    x, y = batch
    return ((model(x) - y) ** 2).mean()


def run_of(folder: Path | None, data: Any = None, **options: Any) -> TrainingRun:
    given: dict[str, Any] = {
        "optimizer": optim.AdamW(lr=optim.schedules.cosine(0.05, 16)),
        "steps": 16, "batch_size": 5, "validation": rows(9, 1), "validate_every": 5, "ema": 0.9,
        "checkpoint_every": 3, "progress": False, "early_stopping": 50,
        "resume": folder is not None,
    }  # fmt: skip
    given |= options
    model = given.pop("model", None) or Net()
    return fit(model, squares, rows() if data is None else data, folder=folder, **given)


def content(run: TrainingRun) -> dict[str, Any]:
    """All that a run amounts to."""
    return {
        "model": bits(run.model), "ema": bits(run.ema_model), "state": bits(run.state),
        "history": {k: (run.history.steps(k), v) for k, v in run.history.items()},
        "best": (run.best.step, run.best.value, bits(run.best.model)) if run.best else None,
        "where": (run.step, run.epoch, run.stopped, run.metrics),
    }  # fmt: skip


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(rg.asarray(x).detach()).tobytes() for x in pytree.flatten(tree)[0]]


class Halt(Exception):
    """What stops a run that nothing is to be saved of."""


class Stops:
    """Ends a run after some step, so that nothing is saved. Counts steps, and saves that."""

    def __init__(self, step: int | None = None) -> None:
        self.step, self.seen = step, 0

    def on_step(self, run: TrainingRun) -> None:
        self.seen += 1
        if run.step == self.step:
            run._saving = None
            raise Halt

    def state_dict(self) -> dict[str, int]:
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seen = state["seen"]


@pytest.mark.parametrize("data", ["arrays", "function"])
def test_a_run_that_was_killed_at_any_step_goes_on_to_the_same_bits(
    tmp_path: Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = rows()
    cut = [(x[i : i + 5], y[i : i + 5]) for i in range(0, len(x), 5)]
    given, options = {
        "arrays": ((x, y), {}),
        "function": (lambda: iter(cut), {"batch_size": None}),
    }[data]
    wanted = content(run_of(None, given, callbacks=[Stops()], **options))
    # A process that is killed saves nothing.
    monkeypatch.setattr("retrograd.train.loop.loop.TrainingLoop.may_save", False)
    for kill in random.Random(data).sample(range(1, 16), 2):
        folder = tmp_path / str(kill)
        with pytest.raises(Halt):
            run_of(folder, given, callbacks=[Stops(kill)], **options)
        counts = Stops()
        run = run_of(folder, given, callbacks=[counts], **options)
        assert content(run) == wanted
        assert counts.seen == 16
    assert content(run_of(folder, given, callbacks=[Stops()], **options)) == wanted  # once more


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, callbacks=[Stops()], early_stopping=None)
    names = sorted(p.name for p in tmp_path.iterdir())
    steps = [int(n[5:13]) for n in names if n.startswith("step-")]
    assert steps[-3:] == [12, 15, 16]  # and the best
    assert {"log.jsonl", "loss.svg", "loss.html"} < set(names)
    assert run.checkpoint == tmp_path / "step-00000016.safetensors"
    other = Net()
    other.load_state_dict(load_checkpoint(run.checkpoint)["model"])  # by its names
    assert bits(other.outer.weight) == bits(run.model.outer.weight)
    again = run_of(tmp_path, resume=False, steps=2)
    assert again.step == 2
    assert (tmp_path / "previous" / "step-00000016.safetensors").exists()


@pytest.mark.slow
def test_more_steps_and_another_folder(tmp_path: Path) -> None:
    short = run_of(tmp_path / "a", steps=7)
    assert short.step == 7
    longer = run_of(tmp_path / "b", resume=tmp_path / "a")
    assert bits(longer.model) == bits(run_of(None).model)
    with pytest.raises(FileNotFoundError, match="no checkpoint to resume"):
        run_of(tmp_path / "b", resume=tmp_path / "c")


@pytest.mark.slow
def test_early_stopping_is_remembered(tmp_path: Path) -> None:
    rule = EarlyStopping(patience=2, min_delta=10.0)
    options: dict[str, Any] = {"early_stopping": rule, "validate_every": 2}
    whole = run_of(None, **options)
    assert (whole.stopped, whole.step) == ("early stopping", 6)
    assert whole.best is not None
    assert whole.best.step == 2
    first = run_of(tmp_path, steps=4, **options)
    assert first.stopped is None
    assert content(run_of(tmp_path, **options)) == content(whole)
    assert content(run_of(tmp_path, **options)) == content(whole)  # it has ended


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    wanted = content(run_of(None))
    run_of(tmp_path, steps=11)
    last = tmp_path / "step-00000011.safetensors"
    last.write_bytes(last.read_bytes()[:-40])
    with pytest.warns(RuntimeWarning, match="step-00000011.*goes on from the checkpoint before"):
        run = run_of(tmp_path)
    assert content(run) == wanted
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(b"nothing")
    with pytest.warns(RuntimeWarning), pytest.raises(FormatError):
        run_of(tmp_path)


@pytest.mark.slow
def test_other_settings_are_refused(tmp_path: Path) -> None:
    run_of(tmp_path, steps=3)
    for options, match in (
        ({"batch_size": 4}, "batch_size = 5, which cannot go on with batch_size = 4"),
        ({"optimizer": optim.AdamW(lr=0.1)}, "optimizer lr = .*cosine.*cannot go on"),
        ({"ema": 0.5}, "ema = 0.9"),
        (
            {"model": rg.nn.Linear(3, 1)},
            "another model: its inner.weight is float32.*not there here",
        ),
        ({"model": Net().to("float64")}, "inner.weight is float32.*, and float64.* here"),
        ({"data": rows(17, 5)}, "other data: arrays of these shapes"),
        ({"seed": 1}, "seed = 0"),
    ):
        with pytest.raises(FormatError, match=match):
            run_of(tmp_path, **options)
    assert run_of(tmp_path, steps=4).step == 4  # nothing was lost


def test_settings_are_the_same_in_every_process() -> None:
    rate = optim.schedules.linear(0.1, 5)
    assert described({"lr": rate, "f": test_the_folder_of_a_run, "b": (0.9, 1)}) == {
        "lr": repr(rate), "f": "test_the_folder_of_a_run", "b": [0.9, 1],
    }  # fmt: skip


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    wanted = content(run_of(None))
    monkeypatch.setattr("retrograd.io.checkpoint.write_atomically", full)
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        run = run_of(tmp_path)
    assert ["after step 3" in str(w.message) for w in caught] == [True, False]
    assert "after step 16" in str(caught[1].message)
    assert content(run) == wanted


def test_a_signal_ends_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    class Interrupts:
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 8:
                os.kill(os.getpid(), signal.SIGINT)

    run = run_of(tmp_path, callbacks=[Interrupts()])
    assert (run.step, run.stopped, run.signal) == (8, "interrupted", signal.SIGINT)
    assert run.checkpoint == tmp_path / "step-00000008.safetensors"
    assert content(run_of(tmp_path)) == content(run_of(None))


SCRIPT = """
    import sys
    from pathlib import Path
    from tests.train.loop import test_snapshot as t
    run = t.run_of(
        Path(sys.argv[1]), steps=20_000, validate_every=3_000, checkpoint_every=700,
        optimizer=t.optim.AdamW(lr=t.optim.schedules.cosine(0.05, 20_000)),
    )
    Path(sys.argv[1], "result").write_text(repr(t.content(run)))
"""


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(12, marks=pytest.mark.slow),
        pytest.param(300, marks=[pytest.mark.slow, pytest.mark.exhaustive]),
    ],
)
def test_processes_that_are_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    """Killed again and again, wherever they are, until one of them gets to the end; and from the
    beginning, until there were so many kills. Its steps are done many in a call."""
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([f"{root}/src", root])}
    rng = random.Random(kills)

    def start(folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SCRIPT), str(folder)]
        return subprocess.Popen(command, env=environment)

    began = time.monotonic()
    assert start(tmp_path / "whole").wait(120) == 0
    longest = time.monotonic() - began
    wanted = (tmp_path / "whole" / "result").read_text()
    killed = runs = 0
    while killed < kills:
        runs += 1
        folder = tmp_path / str(runs)
        while not (folder / "result").exists():
            process = start(folder)
            try:
                assert process.wait(rng.uniform(0.2, longest)) == 0
            except subprocess.TimeoutExpired:
                process.kill()  # SIGKILL
                process.wait()
                killed += 1
        assert (folder / "result").read_text() == wanted
