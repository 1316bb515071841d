"""The log of a run: what its lines hold, and how it goes on."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from retrograd.train.run_log import RunLog, read_log, write_configuration


def test_lines_hold_the_mean_of_the_losses_since_the_last_one(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, 2000)  # a line every 4 steps
    losses = np.arange(10, dtype=np.float32)
    log.steps(losses[:3])
    log.steps(losses[3:])
    log.validated({"loss": 7.0})
    log.close("a run")
    again = RunLog(tmp_path, 10, 2000)
    again.validated({"loss": 7.0})
    again.close("a run")
    entries = [
        {k: v for k, v in e.items() if k != "seconds"} for e in read_log(tmp_path / "log.jsonl")
    ]
    assert entries == [
        {"step": 4, "loss": 1.5},
        {"step": 8, "loss": 5.5},
        {"step": 10, "validation loss": 7.0},
        {"step": 10, "loss": 8.5},
    ]
    plot = (tmp_path / "loss.svg").read_text()
    assert plot.count("<path") >= 2
    assert ">loss</text>" in plot


def test_going_on_removes_lines_of_later_steps_and_one_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"step": n, "loss": 1.0, "seconds": float(n)}) for n in (2, 4, 6)]
    path.write_text("\n".join(lines) + '\n{"step": 8, "lo')
    log = RunLog(tmp_path, 4, 10)
    log.steps(np.ones(1, np.float32))
    log.close("a run")
    found = read_log(path)
    assert [e["step"] for e in found] == [2, 4, 5]
    assert found[-1]["seconds"] >= 4


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, 10)
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(IsADirectoryError, match="cannot write the log"):
        log.steps(np.ones(1, np.float32))


def test_a_configuration_is_read_again(tmp_path: Path) -> None:
    options = {
        "a": 1,
        "b": 1e-5,
        "c": 'x"\\\n\x7f\u00e4\U0001f600',
        "d": True,
        "e": 2.0,
        "none": None,
    }
    write_configuration(tmp_path, options)
    found = tomllib.loads((tmp_path / "config.toml").read_text(encoding="utf-8"))
    assert found == {k: v for k, v in options.items() if v is not None}


def test_lines_have_tokens_rates_and_what_is_written_besides(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, 2000, lambda step: {"lr": 1 / step, "epoch": step / 8})
    log.write(0, {"started": 5.0})
    log.steps(np.ones(6, np.float32), 30)
    log.steps(np.ones(2, np.float32), 2)
    log.write(8, {"texts": ["abc"]})
    log.close("a run")
    entries = [
        {k: v for k, v in e.items() if k != "seconds"} for e in read_log(tmp_path / "log.jsonl")
    ]
    assert entries == [
        {"step": 0, "started": 5.0},
        {"step": 4, "loss": 1.0, "tokens": 5.0, "lr": 0.25, "epoch": 0.5},
        {"step": 8, "loss": 1.0, "tokens": 3.0, "lr": 0.125, "epoch": 1.0},
        {"step": 8, "texts": ["abc"]},
    ]
    assert [e["step"] for e in RunLog(tmp_path, 4, 2000).kept] == [0, 4]
