"""The run that callbacks and users see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.errors import OptionError
from retrograd.train import TrainingRun, fit


def run_of(**options: Any) -> TrainingRun:
    model = rg.nn.Linear(2, 1, generator=rg.random.Generator(0))
    model.bias.requires_grad_(False)
    given: dict[str, Any] = {"optimizer": optim.SGD(lr=0.5), "steps": 2, "progress": False}
    with rg.backend("reference"):
        return fit(model, lambda m, b: (m(b) ** 2).mean(), np.ones((3, 2)), **given | options)


def test_its_model_learns_on_as_the_one_that_was_given() -> None:
    run = run_of()
    assert run.model is run.model
    assert (run.model.weight.requires_grad, run.model.bias.requires_grad) == (True, False)
    (run.model(rg.ones((1, 2))) ** 2).sum().backward()
    assert run.model.weight.grad is not None
    assert run.state["step"].item() == 2


def test_rates_of_schedules() -> None:
    run = run_of(optimizer=optim.SGD(lr=optim.schedules.linear(1.0, 4)))
    assert run.lr == 0.5
    assert run_of().lr == 0.5


def test_what_needs_a_folder_or_an_average(tmp_path: Path) -> None:
    run = run_of()
    with pytest.raises(OptionError, match="give fit\\(folder="):
        run.save()
    with pytest.raises(OptionError, match="give fit\\(ema="):
        _ = run.ema_model
    run.plot(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    run.stop("enough")
    run.stop("later")
    assert run.stopped == "enough"
