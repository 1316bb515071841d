"""What a run says about itself in its folder: its configuration, a log of JSON lines, a plot."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.files import append_text, read_bytes, write_atomically
from retrograd.train.history import History
from retrograd.train.loss_plot import to_svg

Array = np.ndarray[Any, Any]

LOG, CONFIG, PLOT = "log.jsonl", "config.toml", "loss.svg"
FILES = (LOG, CONFIG, PLOT)
TASK = "task.json"  # what `retrograd predict` needs to know of a run, and its weights
MODEL = "model.safetensors"  # at the end, or where the validation was best
PAUSE = 0.1  # seconds between writes
LINES = 500  # of training losses in a run, about


class RunLog:
    """The log of a run in a directory: a line every so many steps with the mean loss of these,
    and one for each validation. Lines are written at most every 0.1 s, and when it is closed.

    `step` is where the run goes on: lines of later steps, and a last line that was cut short, are
    removed.
    """

    def __init__(self, directory: Path, step: int, steps: int) -> None:
        self._path = directory / LOG
        self._every = max(steps // LINES, 1)
        self._step = step
        self._losses: list[Array] = []
        self._lines: list[str] = []
        self._written = float("-inf")
        entries = read_log(self._path)
        kept = [e for e in entries if e["step"] <= step]
        self._seconds = kept[-1].get("seconds", 0.0) if kept else 0.0
        if kept != entries or self._path.exists():
            write_atomically(self._path, _lines(kept).encode(), "log", durable=False)
        validated = [e["step"] for e in kept if "validation loss" in e]
        self._validated = validated[-1] if validated else None
        self._started = time.monotonic()

    def steps(self, losses: Array) -> None:
        """Steps were done, with these losses."""
        while len(losses):
            n = self._every - self._step % self._every
            part, losses = losses[:n], losses[n:]
            self._losses.append(part)
            self._step += len(part)
            if self._step % self._every == 0:
                self._line()
        if time.monotonic() - self._written >= PAUSE:
            self.flush()

    def _line(self) -> None:
        if self._losses:
            loss = float(np.concatenate(self._losses).mean(dtype=np.float64))
            self._entry({"loss": round(loss, 6)})
        self._losses = []

    def _entry(self, numbers: Mapping[str, float]) -> None:
        seconds = self._seconds + time.monotonic() - self._started
        entry = {"step": self._step, **numbers, "seconds": round(seconds, 3)}
        self._lines.append(json.dumps(entry) + "\n")

    def validated(self, numbers: Mapping[str, float]) -> None:
        """A validation after the steps so far; once, though a run that is done may be resumed."""
        if self._validated == self._step:
            return
        self._validated = self._step
        self._entry({f"validation {k}": round(v, 6) for k, v in numbers.items()})

    def flush(self) -> None:
        """Write what there is by now: before a checkpoint, behind which the run may go on."""
        text, self._lines = "".join(self._lines), []
        append_text(self._path, text, "log")
        self._written = time.monotonic()

    def close(self, title: str) -> None:
        """Write what is left, and the plot of all losses under this title."""
        self._line()
        self.flush()
        plot = to_svg(history_of(read_log(self._path)), title)
        write_atomically(self._path.with_name(PLOT), plot.encode(), "plot", durable=False)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; none where there is no such file. Lines that are none are left out."""
    if not path.exists():
        return []
    found = []
    for line in read_bytes(path, "log").decode(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a line that was cut short when the process was killed
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            found.append(entry)
    return found


def history_of(entries: Sequence[Mapping[str, Any]]) -> History:
    """The losses of the lines of a log by name, those of validations as `fit` calls them."""
    history = History()
    for entry in entries:
        for name, value in entry.items():
            if name == "loss" or name.startswith("validation "):
                history.append(name.replace("validation ", "val_"), entry["step"], value)
    return history


def _lines(entries: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(e) + "\n" for e in entries)


def write_configuration(directory: Path, options: Mapping[str, Any]) -> None:
    """The options of a run as TOML, in the form that `--config` reads. None is left out."""
    lines = [f"{k} = {_toml(v)}\n" for k, v in options.items() if v is not None]
    path = directory / CONFIG
    write_atomically(path, "".join(lines).encode(), "configuration", durable=False)


def _toml(value: str | float | bool) -> str:
    """A text, number or truth value as TOML: texts are JSON's, but for characters beyond ASCII."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f") if isinstance(value, str) else text
