"""Schedulers of the learning rate that have a state, and when they are asked."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from retrograd.errors import ArgumentError


class Schedulers:
    """Those of a run. One whose `step` needs an argument is given a metric, others are not."""

    def __init__(self, given: Any) -> None:
        every = given if isinstance(given, list | tuple) else [given]
        self.objects = [s for s in every if s is not None]
        for s in self.objects:
            if isinstance(s, type) or not callable(getattr(s, "step", None)):
                raise ArgumentError(
                    "fit: lr_scheduler is an object of optim.lr_scheduler, not "
                    f"{s!r:.60}; a function of the step is the lr of the optimizer"
                )

    def epoch(self) -> None:
        """An epoch has ended."""
        for s in self.objects:
            if not _looks(s):
                s.step()

    def validated(self, value: float) -> None:
        """A metric was measured."""
        for s in self.objects:
            if _looks(s):
                s.step(value)

    def state_dict(self) -> list[Any]:
        """The state of each."""
        return [s.state_dict() for s in self.objects]

    def load_state_dict(self, states: Sequence[Any]) -> None:
        """Go on from there."""
        for s, state in zip(self.objects, states, strict=True):
            s.load_state_dict(state)


def _looks(scheduler: Any) -> bool:
    """Whether it is given a metric."""
    parameters = inspect.signature(scheduler.step).parameters.values()
    return any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
