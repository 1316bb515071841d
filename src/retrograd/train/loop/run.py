"""`TrainingRun`: a training run, as those who look at it see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrograd import notebook, pytree
from retrograd.errors import OptionError
from retrograd.files import StrPath
from retrograd.nn.module.module import Module
from retrograd.train.history import History
from retrograd.train.loop.batches import BatchSource
from retrograd.train.loop.early_stopping import Best
from retrograd.train.loop.non_finite import StepCall
from retrograd.train.loop.step import Leaves, TrainingStep
from retrograd.train.loss_plot import curves, write_plot

if TYPE_CHECKING:
    from retrograd.api.profile import Profile
    from retrograd.optim import Optimizer


class TrainingRun:
    """What `fit` returns, and callbacks are given.

    `step` counts the steps that are done, `epoch` the epochs; `loss` is the loss of the last step,
    before it, and `aux` what the loss function gave besides. `history` holds what was measured by
    name, `metrics` the last validation, `best` the best one. `stopped` says why a run ended before
    its last step: "early stopping", "interrupted", "dashboard" or what `stop` was told; `signal` is
    the number of the signal that interrupted it. `checkpoint` is the file that was saved last.
    """

    def __init__(
        self, programs: TrainingStep, batches: BatchSource, optimizer: Optimizer, steps: int | None
    ) -> None:
        self.optimizer = optimizer
        self.steps = steps
        self.step = 0
        self.loss = float("nan")
        self.aux: Any = None
        self.history = History()
        self.metrics: dict[str, float] = {}
        self.best: Best | None = None
        self.stopped: str | None = None
        self.signal: int | None = None
        self.checkpoint: Path | None = None
        self.profile: Profile | None = None
        self._programs, self._batches = programs, batches
        self._carry: Leaves = programs.start
        self._last: StepCall | None = None
        self._lr: float | None = None  # of a run that has ended
        self._saving: Callable[[], Path] | None = None
        self._models: dict[bool, tuple[Leaves, Any]] = {}

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return self._batches.epoch

    @property
    def model(self) -> Any:
        """The model as it is now, in the structure that `fit` was given. What it holds stays as it
        is while the run goes on."""
        return self._model(False)

    @property
    def ema_model(self) -> Any:
        """The model with the averages of its parameters, where `ema` was given."""
        if self._programs.ema is None:
            raise OptionError("this run keeps no average of the parameters; give fit(ema=0.999)")
        return self._model(True)

    def _model(self, averaged: bool) -> Any:
        known = self._models.get(averaged)
        if known is None or known[0] is not self._carry:
            leaves = self._programs.averaged(self._carry) if averaged else self._carry
            known = self._models[averaged] = (self._carry, self.built(leaves))
        return known[1]

    def built(self, leaves: Leaves) -> Any:
        """A model of these leaves, whose parameters learn as those that `fit` was given."""
        programs = self._programs
        model = pytree.unflatten(programs.structure, leaves[: programs.size])
        for top in pytree.tops(model, lambda x: isinstance(x, Module)):
            if isinstance(top, Module):
                for p in top.parameters():
                    p.requires_grad_(p.trainable)
        return model

    @property
    def state(self) -> Any:
        """The state of the optimizer, as `optimizer.init` and `optimizer.update` return it."""
        return self._programs.state(self._carry)

    @property
    def lr(self) -> float:
        """The learning rate of the next step."""
        return self._lr if self._lr is not None else self.rate_at(self.step)

    def rate_at(self, step: int) -> float:
        """The learning rate behind so many steps: of another one than the next by its schedule."""
        rate = self.optimizer.lr
        return float(rate(step) if callable(rate) else rate)

    def gradients(self) -> Any:
        """The gradients of the loss on the batch of the last step, in the places of the model's
        parameters. None before the first step."""
        if self._last is None:
            return None
        return self._programs.gradients(self._carry, *self._last.last)

    def stop(self, reason: str = "stopped") -> None:
        """End the run after this step, in good order."""
        self.stopped = self.stopped or reason

    def save(self) -> Path:
        """Write a checkpoint now; `OptionError` for a run without a folder."""
        if self._saving is None:
            raise OptionError("this run has no folder for checkpoints; give fit(folder=...)")
        return self._saving()

    def plot(self, path: StrPath) -> None:
        """Draw the losses and metrics over the steps: an `.svg`, an `.html` to look closer, or a
        `.png` or `.pdf`, which need the extra `pictures`."""
        write_plot(self.history, path)

    def _repr_html_(self) -> str:
        """What notebooks show: how far it is, what was measured, and the curves."""
        rows = [(notebook.text(name), f"{value:.6g}") for name, value in self.metrics.items()]
        return notebook.output(
            notebook.headline("TrainingRun", notebook.text(repr(self).removeprefix("TrainingRun"))),
            notebook.table(("last validation", ""), rows, (1,)) if rows else "",
            notebook.curves_svg(curves(self.history), paper=False) if self.history else "",
        )

    def __repr__(self) -> str:
        of = "" if self.steps is None else f" of {self.steps}"
        ended = f", {self.stopped}" if self.stopped else ""
        return f"TrainingRun(step {self.step}{of}, loss {self.loss:.6g}{ended})"
