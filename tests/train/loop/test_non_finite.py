"""The step at which a run went wrong is found wherever it lies among the calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.errors import NonFiniteError
from retrograd.train import TrainingRun, fit
from retrograd.train.loop.non_finite import REPEATED
from retrograd.tuning import TUNING


class Look:
    """Looks at every step."""

    def on_step(self, run: TrainingRun) -> None: ...


def run_of(bad: int, **options: Any) -> str:
    """The error of a run whose gradient is infinite in a step, and its loss NaN in the next."""
    data = [np.zeros(1, np.float32)] * 60
    data[bad - 1] = np.full(1, 2.0, np.float32)

    def loss(w: Any, b: Any) -> Any:
        return rg.sqrt(w - b).sum()

    with rg.backend("reference"), pytest.raises(NonFiniteError) as caught:
        fit(
            np.full(1, 2.0, np.float32), loss, data, optimizer=optim.SGD(lr=0.0), epochs=1,
            progress=False, **options,
        )  # fmt: skip
    assert f"the loss is nan at step {bad + 1}" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("bad", [1, 2, *range(REPEATED - 1, REPEATED + 3), 2 * REPEATED])
def test_in_single_steps(bad: int) -> None:
    text = run_of(bad, callbacks=Look())
    assert "sqrt" in text
    assert "gradient" in text


@pytest.mark.parametrize("accumulate", [1, 2])
def test_in_many_steps_in_a_call(monkeypatch: pytest.MonkeyPatch, accumulate: int) -> None:
    for name in ("fit_step_call_s", "fit_looped_step_s"):
        monkeypatch.setattr(TUNING, name, 1e9)
    monkeypatch.setattr(TUNING, "fit_loop_bytes", 28)  # seven steps in a call
    if accumulate == 1:
        assert all("gradient" in run_of(bad) for bad in (9, 10, 11, 17, 18))
        return
    data = [np.zeros(1, np.float32)] * 40
    data[21] = np.full(1, 2.0, np.float32)
    with rg.backend("reference"), pytest.raises(NonFiniteError, match=r"at step 12(.|\n)*gradient"):
        fit(
            np.full(1, 2.0, np.float32), lambda w, b: rg.sqrt(w - b).sum(), data, accumulate=2,
            optimizer=optim.SGD(lr=0.0), epochs=1, progress=False,
        )  # fmt: skip


def test_of_a_large_model_the_parameters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TUNING, "fit_kept_bytes", 0)
    assert "before that step these were not finite already: value" in run_of(5, callbacks=Look())
