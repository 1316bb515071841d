"""What a run says about itself in its folder: its configuration, a log of JSON lines, a plot."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.api.run_logs import LOG, read_log
from retrograd.errors import FormatError
from retrograd.files import append_text, make_directory, read_bytes, write_atomically
from retrograd.io import CheckpointManager, structured
from retrograd.train.history import History
from retrograd.train.loss_plot import to_svg
from retrograd.xla.agreement import is_main

Array = np.ndarray[Any, Any]

CONFIG, PLOT = "config.toml", "loss.svg"
FILES = (LOG, CONFIG, PLOT)
TASK = "task.json"  # what `retrograd predict` needs to know of a run, and its weights
MODEL = "model.safetensors"  # at the end, or where the validation was best
PAUSE = 0.1  # seconds between writes
LINES = 500  # of training losses in a run, about


class RunLog:
    """The log of a run in a directory: a line every so many steps with the mean loss of these,
    and one for each validation. Lines are written at most every 0.1 s, and when it is closed.

    `step` is where the run goes on: lines of later steps, and a last line that was cut short, are
    removed; `kept` are those before. `place` tells of a step what its line has besides: learning
    rate and epoch.
    """

    def __init__(
        self,
        directory: Path,
        step: int,
        steps: int,
        place: Callable[[int], Mapping[str, float]] = lambda step: {},
    ) -> None:
        self._place = place
        self._units = 0.0
        self._path = directory / LOG
        self._every = max(steps // LINES, 1)
        self._step = step
        self._losses: list[Array] = []
        self._lines: list[str] = []
        self._written = float("-inf")
        entries = read_log(self._path)
        self.kept = kept = [e for e in entries if e["step"] <= step]
        self._seconds = kept[-1].get("seconds", 0.0) if kept else 0.0
        if kept != entries or self._path.exists():
            write_atomically(self._path, _lines(kept).encode(), "log", durable=False)
        validated = [e["step"] for e in kept if "validation loss" in e]
        self._validated = validated[-1] if validated else None
        self._started = time.monotonic()

    def steps(self, losses: Array, tokens: int = 0) -> None:
        """Steps were done, with these losses; they learned from so many tokens together."""
        each = tokens / max(len(losses), 1)
        while len(losses):
            n = self._every - self._step % self._every
            part, losses = losses[:n], losses[n:]
            self._losses.append(part)
            self._step += len(part)
            self._units += each * len(part)
            if self._step % self._every == 0:
                self._line()
        if time.monotonic() - self._written >= PAUSE:
            self.flush()

    def _line(self) -> None:
        if self._losses:
            losses = np.concatenate(self._losses)
            numbers = {"loss": round(float(losses.mean(dtype=np.float64)), 6)}
            if self._units:
                numbers["tokens"] = round(self._units / len(losses), 2)
            place = self._place(self._step).items()
            self._entry(numbers | {name: float(f"{x:.6g}") for name, x in place})
        self._losses, self._units = [], 0.0

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """A line of its own."""
        self._entry({**values}, step)

    def _entry(self, numbers: Mapping[str, Any], step: int | None = None) -> None:
        seconds = self._seconds + time.monotonic() - self._started
        at = self._step if step is None else step
        entry = {"step": at, **numbers, "seconds": round(seconds, 3)}
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


class ConfigurationWriter:
    """Writes the options of a new run when it begins, a callback of `fit`; those of an earlier run
    in the folder are put aside, as its log is."""

    def __init__(self, directory: Path, options: Mapping[str, Any]) -> None:
        self.directory, self.options = directory, options

    def on_start(self, run: Any) -> None:
        """Before the first step, when all that is given has been looked at. Of several processes
        the first writes: another would put aside what that has written."""
        if not is_main():
            return
        path = self.directory / CONFIG
        if path.exists():
            path.replace(make_directory(self.directory / "previous") / CONFIG)
        write_configuration(self.directory, self.options)


def same_configuration(directory: Path, options: Mapping[str, Any], *free: str) -> None:
    """Refuse to go on with other options than those that `write_configuration` wrote: `FormatError`
    with the first that differs, but for those that are `free` to change. `FileNotFoundError` where
    there is no checkpoint to go on from."""
    if not CheckpointManager(directory).paths():
        raise FileNotFoundError(
            2, "there is no checkpoint in this folder that a run could go on from", str(directory)
        )
    path = directory / CONFIG
    if not path.exists():
        return  # the checkpoint itself says what differs
    with structured(path, "it is no configuration"):
        saved = tomllib.loads(read_bytes(path, "configuration").decode())
    for name, value in options.items():
        before = saved.get(name)
        if name not in free and before != value:
            raise FormatError(
                f"{directory} is of a run with {name} = {before!r}, which cannot go on with "
                f"{name} = {value!r}: --config {path} gives all options that it was started with; "
                "or start a new run elsewhere"
            )


def _toml(value: str | float | bool) -> str:
    """A text, number or truth value as TOML: texts are JSON's, but for characters beyond ASCII."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f") if isinstance(value, str) else text
