"""What a dashboard is shown of a run, and what it asks for."""

from pathlib import Path
from typing import Any, cast

import pytest

from retrograd.train import watcher
from retrograd.train.watcher import Watcher


class Board:
    """Takes down what it is shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, dict[str, Any]]] = []
        self.said: list[str] = []
        self.stopping = False
        self.pressed = False

    def log(self, step: int, **what: Any) -> None:
        self.shown.append((step, what))

    def message(self, text: str) -> None:
        self.said.append(text)

    def take_checkpoint(self) -> bool:
        pressed, self.pressed = self.pressed, False
        return pressed


class Run:
    step, model = 0, "the model"

    def gradients(self) -> Any:
        return "gradients"


def test_gradients_are_computed_once_in_a_while_and_the_loss_is_always_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(watcher.time, "monotonic", lambda: now)
    board, run = Board(), Run()
    w = Watcher(cast(Any, board), "nodes")
    for run.step, passed in ((1, 0.0), (2, 0.25), (3, 1.75), (4, 0.5)):
        now += passed
        w.update(run, 5.0 - run.step, 10)
    looked = {"grads": "gradients", "params": "the model"}
    assert board.shown == [
        (1, {"loss": 4.0, **looked}),
        (2, {"loss": 3.0}),
        (3, {"loss": 2.0, "nodes per second": 10.0, **looked}),  # 20 in 2 seconds
        (4, {"loss": 1.0}),
    ]


def test_what_the_page_asks_for_and_is_told() -> None:
    board = Board()
    w = Watcher(cast(Any, board))
    assert not w.stopping
    board.stopping = board.pressed = True
    assert w.stopping
    assert [w.wants_checkpoint(), w.wants_checkpoint()] == [True, False]
    w.validated(3, None)
    w.validated(4, 0.5)
    w.saved(Path("here"))
    assert (board.shown, board.said) == ([(4, {"validation loss": 0.5})], ["checkpoint: here"])


def test_without_a_page_nothing_is_computed_for_it() -> None:
    w = Watcher(None)
    w.update(cast(Any, None), 1.0, 1)
    assert not w.stopping
    assert not w.wants_checkpoint()
