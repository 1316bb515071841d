"""What is written of a run: lines of JSON, events for TensorBoard; and where that fails."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.train import TrainingRun, fit
from retrograd.train.loop.log import JsonLines
from retrograd.tuning import TUNING


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def run_of(folder: Path, steps: int = 10, **options: Any) -> TrainingRun:
    x = np.arange(8, dtype=np.float32)[:, None] / 8
    return fit(
        np.zeros(1, np.float32), lambda p, b: ((b * p - b) ** 2).mean(), x, folder=folder,
        optimizer=optim.SGD(lr=0.1), steps=steps, validation=x, validate_every=5, progress=False,
        **options,
    )  # fmt: skip


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_lines(tmp_path: Path) -> None:
    run = run_of(tmp_path, log_every=2)
    settings, *rest = lines(tmp_path)
    assert settings["settings"]["optimizer"]["kind"] == "SGD"
    assert settings["settings"]["flush_subnormals"] is True
    assert [(x["step"], x["loss"]) for x in rest if "loss" in x] == [
        (s, run.history["loss"][s - 1]) for s in (2, 4, 6, 8, 10)
    ]
    assert [(x["step"], x["val_loss"]) for x in rest if "val_loss" in x] == list(
        zip([5, 10], run.history["val_loss"], strict=True)
    )
    assert all(x["time"] >= 0 for x in rest)
    before = (tmp_path / "log.jsonl").read_text()
    run_of(tmp_path, steps=1)  # another run
    assert (tmp_path / "previous" / "log.jsonl").read_text() == before


def test_a_run_that_goes_on_has_each_line_once(tmp_path: Path) -> None:
    whole = run_of(tmp_path / "a")
    run_of(tmp_path / "b", steps=5, checkpoint_every=3)
    log = tmp_path / "b" / "log.jsonl"
    (tmp_path / "b" / "step-00000005.safetensors").unlink()  # on from step 3
    with log.open("a") as file:
        file.write('{"step": 4, "los')  # as when it was killed
    run_of(tmp_path / "b", resume=True)
    got, wanted = ([x for x in lines(tmp_path / f) if "settings" not in x] for f in "ba")
    assert [{**x, "time": 0} for x in got] == [{**x, "time": 0} for x in wanted]
    assert len(wanted) == whole.step + 2


def test_a_checkpoint_is_written_after_the_lines_until_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a run that is killed and goes on has them."""
    monkeypatch.setattr(TUNING, "fit_report_s", 1e9)
    seen: list[int] = []

    class Look:
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 4:
                seen.extend(x["step"] for x in lines(tmp_path))

    run_of(tmp_path, checkpoint_every=3, callbacks=[Look()])
    assert seen == [0, 1, 2, 3]


def test_a_full_disk_loses_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = JsonLines(tmp_path / "log.jsonl"), os.write
    room = [30]  # bytes

    def some(handle: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        done = write(handle, data[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr("retrograd.train.loop.log.os.write", some)
    log.write(1, {"loss": 0.5})
    with pytest.warns(RuntimeWarning, match="No space left.*kept until"):
        log.flush()
    log.write(2, {"loss": 0.25})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log.flush()  # says so once
    room[0] = 10**6
    log.close()
    assert [x["loss"] for x in lines(tmp_path)] == [0.5, 0.25]


def test_events_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = run_of(tmp_path, tensorboard=True, log_every=1)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [
        (s, np.float32(x)) for s, x in enumerate(run.history["loss"], 1)
    ]
    assert [e.step for e in events.Scalars("val_loss")] == [5, 10]
