"""The hooks of callbacks: which there are, and whose error it is that comes out of one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from retrograd.errors import ArgumentError

HOOKS = ("on_start", "on_step", "on_epoch", "on_validation", "on_end")


class Callbacks:
    """Calls the hooks that objects have, in the order of the objects."""

    def __init__(self, callbacks: Any) -> None:
        given = list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]
        self.objects = [c for c in given if c is not None]
        for c in self.objects:
            if isinstance(c, type):
                raise ArgumentError(f"fit: a callback is an object: {c.__name__}(), not its class")
            if not any(callable(getattr(c, hook, None)) for hook in HOOKS):
                near = [m for n in dir(c) for m in difflib.get_close_matches(n, HOOKS, 1, 0.8)]
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ArgumentError(
                    f"fit: the callback {_name(c)} has none of the methods {', '.join(HOOKS)}, "
                    f"each of which takes the run{hint}"
                )

    def has(self, hook: str) -> bool:
        """Whether somebody looks there."""
        return any(callable(getattr(c, hook, None)) for c in self.objects)

    def call(self, hook: str, run: Any) -> None:
        """StepCall a hook of all that have it. An error is told whose it is."""
        for c in self.objects:
            method = getattr(c, hook, None)
            if callable(method):
                try:
                    method(run)
                except Exception as error:
                    error.add_note(f"in the callback {_name(c)}.{hook}, after step {run.step}")
                    raise

    def state_dict(self) -> list[Any]:
        """The states of those that have one, None for others."""
        return [c.state_dict() if _saves(c) else None for c in self.objects]

    def load_state_dict(self, states: Sequence[Any]) -> None:
        """Give each its state back. Callbacks may have been added since, behind the others."""
        for c, state in zip(self.objects, states, strict=False):
            if state is not None and _saves(c):
                c.load_state_dict(state)


def _saves(c: Any) -> bool:
    return hasattr(c, "state_dict") and hasattr(c, "load_state_dict")


def _name(c: Any) -> str:
    return getattr(c, "__name__", None) or type(c).__name__
