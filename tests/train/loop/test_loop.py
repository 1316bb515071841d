"""The course of a run: what is called when, how it ends, what it shows."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.errors import NonFiniteError
from retrograd.io import load_checkpoint
from retrograd.train import EarlyStopping, TrainingRun, fit
from retrograd.train.interrupt import stop_requests


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def run_of(count: int = 3, **options: Any) -> TrainingRun:
    """A parameter that walks by 1 in each step."""
    data = [np.ones(1, np.float32)] * count
    given: dict[str, Any] = {"epochs": 2, "progress": False} | options
    if "steps" in given:
        del given["epochs"]
    return fit(
        np.zeros(1, np.float32), lambda p, b: -(p * b).sum(), data, optimizer=optim.SGD(lr=1.0),
        **given,
    )  # fmt: skip


class Diary:
    """Takes down what is called, and how far the run is then."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, what: str, run: TrainingRun) -> None:
        self.lines.append(f"{what} {run.step} {run.epoch} {run.model.item():.0f}")

    def on_start(self, run: TrainingRun) -> None:
        self.write("start", run)

    def on_step(self, run: TrainingRun) -> None:
        self.write("step", run)

    def on_epoch(self, run: TrainingRun) -> None:
        self.write("epoch", run)

    def on_validation(self, run: TrainingRun) -> None:
        self.write("validation", run)

    def on_end(self, run: TrainingRun) -> None:
        self.write("end", run)


def test_the_order_of_the_hooks() -> None:
    diary = Diary()
    run_of(2, validation=[np.ones(1, np.float32)], callbacks=diary)
    assert diary.lines == [
        "start 0 0 0", "step 1 0 1", "step 2 0 2", "epoch 2 1 2", "validation 2 1 2",
        "step 3 1 3", "step 4 1 4", "epoch 4 2 4", "validation 4 2 4", "end 4 2 4",
    ]  # fmt: skip


def test_models_that_were_looked_at_stay_as_they_are() -> None:
    seen: list[Any] = []

    class Look:
        def on_step(self, run: TrainingRun) -> None:
            assert run.model is run.model
            seen.append(run.model)

    run_of(callbacks=[Look()])
    assert [m.item() for m in seen] == [1, 2, 3, 4, 5, 6]


def test_gradients_of_the_last_batch() -> None:
    found: list[Any] = []

    class Look:
        def on_start(self, run: TrainingRun) -> None:
            assert run.gradients() is None

        def on_epoch(self, run: TrainingRun) -> None:
            found.append(run.gradients().item())

    run_of(callbacks=[Look()])
    assert found == [-1.0, -1.0]


def test_epochs_are_measured() -> None:
    run = run_of()
    assert run.history["loss"] == [0, -1, -2, -3, -4, -5]
    assert run.history["epoch_loss"] == [-1, -4]
    assert run.history.steps("epoch_loss") == [3, 6]
    assert repr(run) == "TrainingRun(step 6 of 6, loss -5)"


def test_a_request_to_end_the_process_is_handed_on() -> None:
    class Ends:
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 4:
                os.kill(os.getpid(), signal.SIGTERM)

    with stop_requests() as outer:
        run = run_of(callbacks=[Ends()])
    assert (run.step, run.stopped, outer.signal) == (4, "interrupted", signal.SIGTERM)


def test_in_a_thread() -> None:
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(run_of().model.item()))
    thread.start()
    thread.join()
    assert found == [6.0]


def test_the_buttons_of_a_dashboard(tmp_path: Path) -> None:
    class Presses:
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 2:
                board._control("checkpoint")
            if run.step == 5:
                board._control("stop")

    with rg.dashboard(open=False, controls=("stop", "checkpoint")) as board:
        run = run_of(
            dashboard=board, folder=tmp_path, callbacks=[Presses()],
            validation=[np.ones(1, np.float32)],
        )  # fmt: skip
    assert (run.step, run.stopped) == (5, "dashboard")
    assert [p.name[5:13] for p in sorted(tmp_path.glob("*.safetensors"))] == [
        "00000002",
        "00000005",
    ]
    scalars = [e["scalars"]["loss"] for e in board.events if "loss" in e.get("scalars", {})]
    assert scalars == run.history["loss"]
    (first, *_) = [e["parameters"] for e in board.events if "parameters" in e]
    assert first["value"]["gradient"] == 1.0


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_who_looks_on_changes_no_bit(tmp_path: Path, backend: str) -> None:
    """Norms of every third step, in steps of their own, against NumPy; and the parameters after
    all steps against those of a run that nobody looks at."""
    x = np.arange(8, dtype=np.float32)[:, None] / 8

    class Keeps:
        def __init__(self) -> None:
            self.models = [np.array([0.0, 0.5, -1.0], np.float32)]

        def on_step(self, run: TrainingRun) -> None:
            self.models.append(run.model.numpy())

    def go(**more: Any) -> TrainingRun:
        return fit(
            np.array([0.0, 0.5, -1.0], np.float32), lambda p, b: ((b * p - b) ** 2).mean(), x,
            optimizer=optim.Adam(lr=optim.schedules.linear(0.1, 12)), steps=12, batch_size=2,
            clip_grad_norm=0.1, progress=False, **more,
        )  # fmt: skip

    with rg.backend(backend):
        plain = go()
        keeps = Keeps()
        with rg.dashboard(open=False) as board:
            seen = go(dashboard=board, log_norms=3, folder=tmp_path / "a", callbacks=[keeps])
        looped = go(log_norms=5, folder=tmp_path / "b")
        each = go(log_norms=True, accumulate=2)
        pairs = go(accumulate=2)
    for run in (seen, looped):
        assert run.model.numpy().tobytes() == plain.model.numpy().tobytes()
        assert run.history["loss"] == plain.history["loss"]
    assert each.model.numpy().tobytes() == pairs.model.numpy().tobytes()

    lines = {e["step"]: e["parameters"]["value"] for e in board.events if "parameters" in e}
    assert [*lines] == [3, 6, 9, 12]
    text = (tmp_path / "a" / "log.jsonl").read_text().splitlines()
    logged = [e for e in map(json.loads, text) if "parameters" in e]
    assert {e["step"]: e["parameters"]["value"] for e in logged} == lines
    assert all(e["memory"]["rss"] > 0 for e in logged)
    for step, found in lines.items():
        before, after = keeps.models[step - 1], keeps.models[step]
        np.testing.assert_allclose(found["weight"], np.linalg.norm(before), rtol=1e-5)
        np.testing.assert_allclose(found["update"], np.linalg.norm(after - before), rtol=1e-5)
    five = (tmp_path / "b" / "log.jsonl").read_text().splitlines()
    assert [e["step"] for e in map(json.loads, five) if "parameters" in e] == [5, 10]


def test_norms_are_of_the_gradient_before_it_is_clipped(tmp_path: Path) -> None:
    run = run_of(folder=tmp_path, log_norms=1, clip_grad_norm=1e-3)
    text = (tmp_path / "log.jsonl").read_text().splitlines()
    found = [e["parameters"]["value"] for e in map(json.loads, text) if "parameters" in e]
    assert len(found) == run.step
    assert {e["gradient"] for e in found} == {1.0}
    assert found[0]["update"] < 1e-3


def test_a_run_that_goes_on_is_shown_with_what_was_logged_before(tmp_path: Path) -> None:
    def go(board: Any, steps: int, **more: Any) -> TrainingRun:
        return run_of(dashboard=board, folder=tmp_path, steps=steps, **more)

    with rg.dashboard(open=False) as first:
        go(first, 4, checkpoint_every=2)
        (tmp_path / "step-00000004.safetensors").unlink()  # as if it had been killed before
    with rg.dashboard(open=False) as second:
        run = go(second, 6, resume=True)
        again = go(second, 3)
    assert second.name != "training"
    events = second.earlier[tmp_path.name]
    losses = {e["step"]: e["scalars"]["loss"] for e in events if "loss" in e.get("scalars", {})}
    assert [*losses.values()] == run.history["loss"]
    assert [*losses] == [1, 2, 3, 4, 5, 6]
    assert [e["step"] for e in events if "started" in e][-1] == 2
    times = [e["time"] for e in events]
    assert times == sorted(times)
    losses_again = [e["scalars"]["loss"] for e in second.events if "loss" in e.get("scalars", {})]
    assert losses_again == again.history["loss"]


def test_a_profile() -> None:
    with rg.backend("llvm"):
        run = run_of(30, profile=True)
    assert run.step == 60
    assert run.profile is not None
    assert len(run.profile.runs) == 20
    assert all(k.calls == 20 for k in run.profile.kernels)


def test_the_last_good_checkpoint_is_named_and_stays(tmp_path: Path) -> None:
    def loss(p: Any, b: Any) -> Any:
        return rg.log(3.5 - p).sum() * b.sum()

    with pytest.raises(NonFiniteError, match=r"step-00000006\.safetensors") as caught:
        fit(
            np.zeros(1, np.float32), loss, [np.ones(1, np.float32)] * 9, epochs=1,
            optimizer=optim.SGD(lr=1.0), folder=tmp_path, checkpoint_every=3, progress=False,
        )  # fmt: skip
    assert "log" in str(caught.value)
    assert [p.name[5:13] for p in sorted(tmp_path.glob("*.safetensors"))] == [
        "00000003",
        "00000006",
    ]


def test_an_error_between_steps_loses_nothing(tmp_path: Path) -> None:
    class Fails:
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 4:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        run_of(folder=tmp_path, callbacks=[Fails()])
    assert "the run until step 4 is saved" in caught.value.__notes__[-1]
    assert run_of(folder=tmp_path, resume=True).model.item() == 6


def test_an_error_before_the_first_step_or_after_the_last_saves_nothing(tmp_path: Path) -> None:
    class Fails:
        def __init__(self, hook: str) -> None:
            setattr(self, hook, self.fail)

        def fail(self, run: TrainingRun) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_of(folder=tmp_path, callbacks=[Fails("on_start")])
    assert not list(tmp_path.glob("*.safetensors"))
    held_out = [np.ones(1, np.float32)]
    best = EarlyStopping(monitor="val_far")
    with pytest.raises(ZeroDivisionError):
        run_of(
            folder=tmp_path, callbacks=[Fails("on_end")], validation=held_out, early_stopping=best,
            metrics={"far": lambda p, b: rg.abs(p - 3).sum()},
        )  # fmt: skip
    assert load_checkpoint(tmp_path / "step-00000006.safetensors")["model"]["value"].item() == 6


def test_steps_of_an_iterator_that_ends_too_early_are_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="gives its batches once"):
        fit(
            np.zeros(1), lambda p, b: -(p * b).sum(), iter([np.ones(1)] * 2),
            optimizer=optim.SGD(lr=1.0), steps=5, folder=tmp_path, progress=False,
        )  # fmt: skip
    assert (tmp_path / "step-00000002.safetensors").exists()
