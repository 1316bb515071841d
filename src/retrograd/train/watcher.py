"""What a dashboard is shown of a run and what it asks for; when parameters are looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from retrograd.api.dashboard import Dashboard, memory_now
from retrograd.train.parameter_norms import by_name
from retrograd.xla.agreement import is_several

PAUSE = 1.0  # seconds between looks at parameters, at least
SHARE = 0.005  # of the time of a run that looks may take
NEVER = 1 << 30  # steps
TOGETHER = 100  # steps between looks of several processes

__all__ = ["Dashboard", "Sink", "Watcher"]


class Sink(Protocol):
    """Takes what was measured after a step."""

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Take it down."""


class Watcher:
    """Shows a run to a dashboard, if there is one, and to its logs. A step learns from so many
    `unit`s.

    A step that is looked at tells norms and gradients of its parameters. With `every`, each step of
    this number is; with True about one a second, as far as that takes little of the time; with None
    so for a dashboard alone.
    """

    def __init__(
        self,
        board: Dashboard | None,
        unit: str = "tokens",
        every: int | bool | None = None,
        sinks: Sequence[Sink] = (),
        peak: Callable[[], int] = lambda: 0,
    ) -> None:
        self._board, self._unit, self._sinks, self._peak = board, unit, sinks, peak
        self._every = (board is not None) if every is None else every
        if self._every is True and is_several():
            self._every = TOGETHER  # their clocks differ, and all do the same steps
        self._units = 0
        self._since = time.monotonic()
        self._next = self._pictured = float("-inf")  # when norms, and histograms, are next
        self._measured = float("-inf")

    @property
    def stopping(self) -> bool:
        """Whether the stop button was pressed."""
        return self._board is not None and self._board.stopping

    def wants_checkpoint(self) -> bool:
        """Whether the checkpoint button was pressed since this was last asked."""
        return self._board is not None and self._board.take_checkpoint()

    def undisturbed(self, step: int) -> int:
        """How many steps behind this one there are before one that is looked at: 0 if it is the
        next."""
        if self._every is False:
            return NEVER
        if self._every is True:
            return 0 if time.monotonic() >= self._next else NEVER
        return self._every - 1 - step % self._every

    def update(
        self,
        step: int,
        loss: float,
        units: int,
        lr: float | None = None,
        epoch: float | None = None,
    ) -> None:
        """After each call: the loss of its last step, how many units it learned from."""
        board, now = self._board, time.monotonic()
        if board is None:
            return
        self._units += units
        scalars = {"loss": loss}
        fields: dict[str, Any] = {"scalars": scalars} | ({} if epoch is None else {"epoch": epoch})
        if now - self._measured >= PAUSE:
            if self._measured > 0 and now > self._since:
                scalars[f"{self._unit} per second"] = self._units / (now - self._since)
            if lr is not None:
                scalars["learning rate"] = lr
            self._units, self._since, self._measured = 0, now, now
            fields["memory"] = self._memory()
        board.record(step, **fields)

    def _memory(self) -> dict[str, int]:
        """Bytes that the process has, and that a call of its largest program allocates."""
        planned = self._peak()
        return memory_now() | ({"peak": planned} if planned else {})

    def looked(
        self,
        step: int,
        names: Sequence[str],
        norms: Any,
        gradients: Any,
        model: Callable[[], Any],
    ) -> None:
        """A step was looked at: its norms, gradients by name, and the model after it, which is
        asked for once in a while."""
        began = time.monotonic()
        found = {"parameters": by_name(names, norms.numpy())}
        for sink in self._sinks:
            sink.write(step, found | {"memory": self._memory()})
        board = self._board
        if board is not None:
            board.record(step, **found)
        now = time.monotonic()
        self._next = now + max(PAUSE, (now - began) / SHARE)
        if board is not None and now >= self._pictured:  # histograms take much longer than norms
            board.show(step, dict(zip(names, gradients, strict=True)), model())
            done = time.monotonic()
            self._pictured = done + max(PAUSE, (done - now) / SHARE)

    def validated(self, step: int, measured: Mapping[str, float] | float | None) -> None:
        """A validation: its loss, or all that was measured by name."""
        if self._board is not None and measured is not None:
            named = measured if isinstance(measured, Mapping) else {"val_loss": measured}
            self._board.record(step, scalars=dict(named))

    def sampled(self, step: int, texts: Sequence[str]) -> None:
        """Texts that the model makes by now."""
        for sink in self._sinks:
            sink.write(step, {"texts": list(texts)})
        if self._board is not None:
            self._board.record(step, texts=list(texts))

    def saved(self, path: Path) -> None:
        """A checkpoint was written."""
        if self._board is not None:
            self._board.message(f"checkpoint: {path}")
