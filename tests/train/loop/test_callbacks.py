"""Which hooks are called, in which order, and whose errors they raise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from retrograd.errors import ArgumentError
from retrograd.train.loop.callbacks import Callbacks

RUN = SimpleNamespace(step=3)


class Counts:
    """Counts steps, and saves that."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_step(self, run: Any) -> None:
        self.seen.append(run.step)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = list(state["seen"])


class Ends:
    """Has another hook alone."""

    def on_end(self, run: Any) -> None:
        raise ValueError("no")


def test_hooks_and_states() -> None:
    first, second = Counts(), Counts()
    callbacks = Callbacks([first, Ends(), second])
    assert callbacks.has("on_step")
    assert not callbacks.has("on_epoch")
    callbacks.call("on_step", RUN)
    assert first.seen == second.seen == [3]
    again = [Counts(), Ends(), Counts(), Counts()]
    Callbacks(again).load_state_dict(callbacks.state_dict())
    assert [c.seen for c in again if isinstance(c, Counts)] == [[3], [3], []]


def test_errors() -> None:
    with pytest.raises(ValueError, match="no") as caught:
        Callbacks(Ends()).call("on_end", RUN)
    assert caught.value.__notes__ == ["in the callback Ends.on_end, after step 3"]
    with pytest.raises(ArgumentError, match=r"Counts\(\), not its class"):
        Callbacks([Counts])
    with pytest.raises(ArgumentError, match="int has none of the methods on_start"):
        Callbacks([1])
