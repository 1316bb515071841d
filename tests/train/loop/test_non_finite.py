"""The step at which a run went wrong is found wherever it lies among the calls."""

from __future__ import annotations

from pathlib import Path
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


@pytest.mark.parametrize("program", [1e9, 0], ids=["a program", "one after another"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_in_many_steps_in_a_call(
    monkeypatch: pytest.MonkeyPatch, accumulate: int, program: float
) -> None:
    monkeypatch.setattr(TUNING, "fit_step_call_s", 1e9)
    monkeypatch.setattr(TUNING, "fit_looped_step_s", program)
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


@pytest.mark.parametrize("steps", [6, 7, 12])
def test_parameters_that_a_gradient_has_spoilt_are_neither_saved_nor_returned(
    tmp_path: Path, steps: int
) -> None:
    """The loss of the sixth step is a number, its gradient is none; a checkpoint is due there, and
    with six steps the run ends."""
    data = [np.full(1, 9.0, np.float32)] * 12
    data[5] = np.zeros(1, np.float32)

    def loss(w: Any, b: Any) -> Any:
        return rg.sqrt(w * 0 + rg.relu(b - w)).sum()

    with rg.backend("reference"), pytest.raises(NonFiniteError) as caught:
        fit(
            np.full(1, 2.0, np.float32), loss, data, optimizer=optim.SGD(lr=0.01), steps=steps,
            folder=tmp_path, checkpoint_every=2, progress=False,
        )  # fmt: skip
    said = str(caught.value)
    assert "the parameters after step 6 are not finite (value)" in said
    assert "the derivative of sqrt at 0 is infinite" in said
    assert f"the last good checkpoint is {tmp_path / 'step-00000004.safetensors'}" in said
    assert sorted(p.name for p in tmp_path.glob("*.safetensors")) == [
        "step-00000002.safetensors",
        "step-00000004.safetensors",
    ]


def test_infinities_that_were_there_at_first_are_none_of_a_step() -> None:
    """A mask of -inf that is part of a model."""
    model = {"w": np.ones(2, np.float32), "mask": np.array([0.0, -np.inf], np.float32)}
    with rg.backend("reference"):
        run = fit(
            model, lambda m, b: rg.logsumexp(m["w"] * b + rg.stop_gradient(m["mask"])),
            np.ones((4, 2), np.float32), batch_size=2, optimizer=optim.SGD(lr=0.1), steps=4,
            progress=False,
        )  # fmt: skip
    assert np.isfinite(run.loss)
