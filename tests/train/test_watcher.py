"""What a dashboard and the log are shown of a run, when, and what the page asks for."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import retrograd as rg
from retrograd.train import watcher
from retrograd.train.watcher import Watcher


class Board:
    """Takes down what it is shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, dict[str, Any]]] = []
        self.said: list[str] = []
        self.stopping = False
        self.pressed = False

    def record(self, step: int, **what: Any) -> None:
        what.pop("memory", None)
        self.shown.append((step, what))

    def show(self, step: int, grads: Any, params: Any) -> None:
        self.shown.append((step, {"grads": [*grads], "params": params}))

    def message(self, text: str) -> None:
        self.said.append(text)

    def take_checkpoint(self) -> bool:
        pressed, self.pressed = self.pressed, False
        return pressed


class Lines:
    """A log in memory."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, Any]]] = []

    def write(self, step: int, values: Any) -> None:
        self.lines.append((step, dict(values)))


NORMS = rg.tensor(np.array([[3.0], [2.0], [0.5]]))
TOLD = {"parameters": {"w": {"weight": 3.0, "gradient": 2.0, "update": 0.5}}}


def test_a_step_a_second_is_looked_at_and_the_loss_always_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(watcher.time, "monotonic", lambda: now)
    board, log = Board(), Lines()
    w = Watcher(cast(Any, board), "nodes", sinks=[log])
    for step, passed in ((1, 0.0), (2, 0.25), (3, 1.75), (4, 0.5)):
        now += passed
        looks = w.undisturbed(step - 1) == 0
        w.update(step, 5.0 - step, 10, lr=0.1, epoch=step / 2)
        if looks:
            w.looked(step, ["w"], NORMS, [np.ones(2)], lambda: "the model")
    seen = {"grads": ["w"], "params": "the model"}
    assert board.shown == [
        (1, {"scalars": {"loss": 4.0, "learning rate": 0.1}, "epoch": 0.5}),
        (1, TOLD),
        (1, seen),
        (2, {"scalars": {"loss": 3.0}, "epoch": 1.0}),
        (3, {"scalars": {"loss": 2.0, "nodes per second": 10.0, "learning rate": 0.1},
             "epoch": 1.5}),  # 20 in 2 seconds
        (3, TOLD),
        (3, seen),
        (4, {"scalars": {"loss": 1.0}, "epoch": 2.0}),
    ]  # fmt: skip
    assert [(s, {k: x[k] for k in TOLD}) for s, x in log.lines] == [(1, TOLD), (3, TOLD)]
    assert all(x["memory"]["rss"] > 1e6 for _, x in log.lines)


def test_looks_that_take_long_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(watcher.time, "monotonic", lambda: now)

    class Slow(Board):
        def show(self, step: int, grads: Any, params: Any) -> None:
            nonlocal now
            now += 0.1
            super().show(step, grads, params)

    board = Slow()
    w = Watcher(cast(Any, board))
    for second in range(60):
        now = 100.0 + 1.11 * second
        assert w.undisturbed(5) == 0  # norms are cheap
        w.looked(second, ["w"], NORMS, [1], lambda: None)
    pictures = [s for s, what in board.shown if "grads" in what]
    assert pictures[0] == 0
    assert np.diff(pictures).min() * 1.11 >= 0.1 / watcher.SHARE  # seconds
    assert len(pictures) > 1


def test_every_nth_step_is_looked_at_where_that_is_asked_for() -> None:
    w, log = Watcher(None, every=4, sinks=[lines := Lines()]), Watcher(None, every=True)
    assert [w.undisturbed(step) for step in range(6)] == [3, 2, 1, 0, 3, 2]
    w.looked(4, ["w"], NORMS, [np.ones(2)], lambda: None)
    assert lines.lines[0][1]["parameters"] == TOLD["parameters"]
    assert log.undisturbed(0) == 0
    assert Watcher(None).undisturbed(0) > 10**6  # nobody looks
    assert Watcher(cast(Any, Board()), every=False).undisturbed(0) > 10**6


def test_what_the_page_asks_for_and_is_told() -> None:
    board = Board()
    w = Watcher(cast(Any, board))
    assert not w.stopping
    board.stopping = board.pressed = True
    assert w.stopping
    assert [w.wants_checkpoint(), w.wants_checkpoint()] == [True, False]
    w.validated(3, None)
    w.validated(4, 0.5)
    w.validated(5, {"val_accuracy": 1.0})
    w.sampled(6, ["abc"])
    w.saved(Path("here"))
    assert board.shown == [
        (4, {"scalars": {"val_loss": 0.5}}), (5, {"scalars": {"val_accuracy": 1.0}}),
        (6, {"texts": ["abc"]}),
    ]  # fmt: skip
    assert board.said == ["checkpoint: here"]


def test_without_a_page_nothing_is_computed_for_it() -> None:
    w = Watcher(None)
    w.update(1, 1.0, 1)
    assert not w.stopping
    assert not w.wants_checkpoint()
