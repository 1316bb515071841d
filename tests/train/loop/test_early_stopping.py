"""When a run stops early, and what it ends with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.errors import OptionError
from retrograd.train import EarlyStopping, TrainingRun, fit
from retrograd.train.loop.early_stopping import Watch

NAN = float("nan")


@pytest.mark.parametrize(
    ("rule", "values", "stops"),
    [
        (EarlyStopping(2), [3.0, 2.0, 2.0, 2.5], 4),
        (EarlyStopping(2), [3.0, 2.0, 2.5, 1.0, 2.0], None),
        (EarlyStopping(2, min_delta=0.5), [3.0, 2.6, 2.6], 3),
        (EarlyStopping(2, min_delta=0.5), [3.0, 2.4, 2.0, 1.8, 1.0], None),
        (EarlyStopping(1, mode="max"), [1.0, 2.0, 1.5], 3),
        (EarlyStopping(2), [NAN, NAN], 2),
        (EarlyStopping(2), [NAN, 1.0, NAN, 0.5], None),
    ],
)
def test_patience(rule: EarlyStopping, values: list[float], stops: int | None) -> None:
    watch = Watch(rule)
    ended = None
    for i, value in enumerate(values, 1):
        watch.better(value)
        ended = ended or (i if watch.exhausted else None)
    assert ended == stops


def test_options() -> None:
    for options in ({"patience": 0}, {"min_delta": -1.0}, {"mode": "least"}, {"min_delta": NAN}):
        with pytest.raises(OptionError):
            EarlyStopping(**options)


def far(p: Any, b: Any) -> Any:
    """How far from 3."""
    return rg.abs(p - 3).sum()


def run_of(**options: Any) -> TrainingRun:
    """A parameter that walks from 0 by 1 in each step; validation is best at 3."""
    with rg.backend("reference"):
        return fit(
            np.zeros(1, np.float32), lambda p, b: -(p * b).sum(), np.ones((1, 1), np.float32),
            optimizer=optim.SGD(lr=1.0), steps=20, validation=np.ones((1, 1), np.float32),
            metrics={"far": far, "near": lambda p, b: 9 - far(p, b)},
            validate_every=1, progress=False, **options,
        )  # fmt: skip


def test_the_best_model_comes_back() -> None:
    for monitor, mode in (("val_far", "min"), ("val_near", "max")):
        rule = EarlyStopping(4, monitor=monitor, mode=mode)  # type: ignore[arg-type]
        run = run_of(early_stopping=rule)
        assert (run.step, run.stopped) == (7, "early stopping")
        assert run.model.item() == 3.0
        assert run.best is not None
        assert (run.best.step, run.best.model.item()) == (3, 3.0)
    long = run_of(early_stopping=EarlyStopping(40, monitor="val_far"))
    assert (long.step, long.stopped, long.model.item()) == (20, None, 3.0)
    kept = run_of(early_stopping=EarlyStopping(4, monitor="val_far", restore_best=False))
    assert (kept.step, kept.model.item()) == (7, 7.0)


def test_a_callback_may_stop_a_run_too() -> None:
    class Enough:
        def on_validation(self, run: TrainingRun) -> None:
            if run.metrics["val_far"] == 0:
                run.stop("near enough")

    run = run_of(callbacks=[Enough()])
    assert (run.step, run.stopped) == (3, "near enough")
