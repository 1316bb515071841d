"""Learning rates that are changed from outside of the optimizer, and saved with a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.errors import ArgumentError
from retrograd.train import TrainingRun, fit


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with rg.backend("reference"):
        yield


class Falling:
    """Half the rate in every epoch."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer, self.epochs = optimizer, 0

    def step(self, epoch: int | None = None) -> None:
        self.epochs += 1
        self.optimizer.lr = self.optimizer.lr / 2

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs = state["epochs"]


class Plateau(Falling):
    """Half the rate for each metric that is not below 0."""

    def step(self, metrics: float) -> None:  # type: ignore[override]
        if metrics >= 0:
            super().step()


def run_of(kind: Any, folder: Path | None = None, **options: Any) -> tuple[TrainingRun, Any]:
    """A parameter that walks by the rate in each step."""
    optimizer = optim.SGD(lr=1.0)
    scheduler = kind(optimizer)
    given: dict[str, Any] = {"epochs": 4, "lr_scheduler": scheduler, "progress": False} | options
    data = [np.ones(1, np.float32)] * 2
    run = fit(
        np.zeros(1, np.float32), lambda p, b: -(p * b).sum(), data, optimizer=optimizer,
        folder=folder, **given,
    )  # fmt: skip
    return run, scheduler


def test_after_each_epoch_or_with_a_metric_after_each_validation() -> None:
    run, _ = run_of(Falling)
    assert run.model.item() == 2 * (1 + 1 / 2 + 1 / 4 + 1 / 8)
    assert run.lr == 1 / 16
    held_out = [np.array([-1.0], np.float32)]
    run, scheduler = run_of(Plateau, validation=held_out)
    assert (run.model.item(), scheduler.epochs) == (3.75, 4)
    run, scheduler = run_of(Plateau, validation=[np.ones(1, np.float32)])
    assert (run.model.item(), scheduler.epochs) == (8.0, 0)


def test_a_run_that_goes_on_has_the_rate_that_it_had(tmp_path: Path) -> None:
    run_of(Falling, tmp_path, epochs=2)
    run, scheduler = run_of(Falling, tmp_path, resume=True)
    assert (run.model.item(), scheduler.epochs, run.lr) == (3.75, 4, 1 / 16)


def test_what_is_no_scheduler() -> None:
    with pytest.raises(ArgumentError, match="a function of the step is the lr"):
        run_of(Falling, lr_scheduler=lambda step: 0.1)
    with pytest.raises(ArgumentError, match=r"object of optim\.lr_scheduler"):
        run_of(Falling, lr_scheduler=Falling)
