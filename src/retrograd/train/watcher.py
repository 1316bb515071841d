"""What a dashboard is shown of a run, and what it asks for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

from retrograd.api.dashboard import Dashboard

PAUSE = 1.0  # seconds between gradients: they are computed for the page alone

__all__ = ["Dashboard", "WatchedRun", "Watcher"]


class WatchedRun(Protocol):
    """A run in progress, as far as it is shown."""

    step: int

    @property
    def model(self) -> Any:
        """What is trained."""

    def gradients(self) -> Any:
        """The gradients of the next step's loss, in the places of the model's parameters."""


class Watcher:
    """Shows a run to a dashboard, if there is one. A step learns from so many `unit`s."""

    def __init__(self, board: Dashboard | None, unit: str = "tokens") -> None:
        self._board, self._unit = board, unit
        self._tokens = 0
        self._since = time.monotonic()
        self._looked = float("-inf")

    @property
    def stopping(self) -> bool:
        """Whether the stop button was pressed."""
        return self._board is not None and self._board.stopping

    def wants_checkpoint(self) -> bool:
        """Whether the checkpoint button was pressed since this was last asked."""
        return self._board is not None and self._board.take_checkpoint()

    def update(self, run: WatchedRun, loss: float, tokens: int) -> None:
        """After each step: its loss and speed, and once in a while gradients and parameters."""
        board, now = self._board, time.monotonic()
        if board is None:
            return
        self._tokens += tokens
        scalars = {"loss": loss}
        if now - self._looked < PAUSE:
            board.log(run.step, **scalars)
            return
        passed = now - self._since
        if self._looked > 0 and passed > 0:
            scalars[f"{self._unit} per second"] = self._tokens / passed
        board.log(run.step, grads=run.gradients(), params=run.model, **scalars)
        self._tokens, self._since = 0, time.monotonic()
        self._looked = self._since

    def validated(self, step: int, loss: float | None) -> None:
        """A validation loss, where there is one."""
        if self._board is not None and loss is not None:
            self._board.log(step, **{"validation loss": loss})

    def saved(self, path: Path) -> None:
        """A checkpoint was written."""
        if self._board is not None:
            self._board.message(f"checkpoint: {path}")
