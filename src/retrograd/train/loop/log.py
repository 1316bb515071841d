"""What is written of a run while it goes: JSON lines, and events for TensorBoard."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from retrograd.errors import BackendError
from retrograd.files import StrPath, make_directory, read_bytes, write_atomically


class Log(Protocol):
    """Takes numbers by name, of a step."""

    def configured(self, step: int, settings: Mapping[str, Any]) -> None:
        """Take down what a run begins, or goes on, with."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Take down what was measured after a step."""

    def flush(self) -> None:
        """Have what was taken down where others can read it."""

    def close(self) -> None:
        """Nothing more comes."""


class JsonLines:
    """One JSON object for each step that is logged, with seconds since the start of the run.

    What cannot be written, as where the disk is full, is kept and tried again the next time: one
    warning says so, and training goes on.
    """

    def __init__(self, path: StrPath, after: int | None = None) -> None:
        """`after` is the step of a checkpoint that the run goes on from: later lines go."""
        self.path = Path(path)
        self._pending = b""
        self._warned = False
        self._handle: int | None = None
        self._started = time.monotonic()
        self._spent = 0.0
        if after is not None and self.path.exists():
            kept = _lines_until(read_bytes(self.path, "log"), after)
            self._spent = json.loads(kept[-1]).get("time", 0.0) if kept else 0.0
            write_atomically(self.path, b"".join(kept), "log")
        elif self.path.exists():  # of an earlier run, as checkpoints are
            self.path.replace(make_directory(self.path.parent / "previous") / self.path.name)

    def configured(self, step: int, settings: Mapping[str, Any]) -> None:
        self.write(step, {"settings": settings, "started": round(time.time(), 3)})

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        spent = round(self._spent + time.monotonic() - self._started, 3)
        line = json.dumps({"step": step, **values, "time": spent})
        self._pending += line.encode() + b"\n"

    def flush(self) -> None:
        if not self._pending:
            return
        try:
            if self._handle is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._handle = os.open(self.path, flags, 0o666)
            while self._pending:
                done = os.write(self._handle, self._pending)
                self._pending = self._pending[done:]
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"the log {self.path} cannot be written ({error.strerror}); training goes on, "
                    "and its lines are kept until they can",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def close(self) -> None:
        self.flush()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _lines_until(content: bytes, step: int) -> list[bytes]:
    """The lines of a log up to a step; without a last one that was cut off."""
    kept = []
    for line in content.splitlines(keepends=True):
        try:
            if json.loads(line)["step"] <= step and line.endswith(b"\n"):
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    return kept


class TensorBoard:
    """Events that TensorBoard shows as curves, written by its own package."""

    def __init__(self, folder: StrPath, after: int | None = None) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise BackendError(
                "tensorboard= needs the package of this name: pip install 'retrograd[tensorboard]'"
            ) from error
        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        self._writer: Any = EventFileWriter(str(make_directory(folder)))
        self._warned = False
        if after is not None:  # what TensorBoard has of later steps it forgets
            log = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._add(lambda: self._event(wall_time=time.time(), step=after + 1, session_log=log))

    def configured(self, step: int, settings: Mapping[str, Any]) -> None: ...

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        numbers = {k: v for k, v in values.items() if isinstance(v, int | float)}
        items = [self._summary.Value(tag=k, simple_value=v) for k, v in numbers.items()]
        event = self._event(wall_time=time.time(), step=step, summary=self._summary(value=items))
        self._add(lambda: event)

    def _add(self, event: Callable[[], Any]) -> None:
        self._guarded(lambda: self._writer.add_event(event()))

    def flush(self) -> None:
        self._guarded(self._writer.flush)

    def close(self) -> None:
        self._guarded(self._writer.close)

    def _guarded(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"the events for TensorBoard cannot be written ({error}); training goes on",
                    RuntimeWarning,
                    stacklevel=2,
                )
