"""Stopping a run when what is measured gets better no more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retrograd.errors import OptionError


@dataclass(frozen=True)
class EarlyStopping:
    """Stop `fit` after `patience` validations in a row in which `monitor` was not better than the
    best so far by more than `min_delta`. With `restore_best` the run ends with its best model, also
    where it was not stopped.

    `mode` is whether "min" or "max" is best; NaN is never better. `OptionError` for a patience
    below 1, a negative `min_delta` and another mode.

    >>> import retrograd as rg
    >>> rg.train.EarlyStopping(patience=3, monitor="val_accuracy", mode="max").patience
    3
    """

    patience: int = 5
    min_delta: float = 0.0
    mode: Literal["min", "max"] = "min"
    monitor: str = "val_loss"
    restore_best: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.patience, bool) or self.patience < 1:
            raise OptionError(f"patience is at least 1 validation, not {self.patience}")
        if not self.min_delta >= 0:
            raise OptionError(f"min_delta is not negative, not {self.min_delta}")
        if self.mode not in ("min", "max"):
            raise OptionError(f'mode is "min" or "max", not {self.mode!r}')


@dataclass
class Best:
    """The best validation so far: the `value` of what is monitored, the `step` it was measured
    after, and the `model` at that step."""

    value: float
    step: int
    leaves: Any  # of the model
    model: Any = None


class Watch:
    """How often in a row a value has not been better than the best."""

    def __init__(self, rule: EarlyStopping) -> None:
        self.rule = rule
        self.best = math.nan
        self.worse = 0

    def better(self, value: float) -> bool:
        """Take down a value; whether it is the best so far."""
        sign = 1.0 if self.rule.mode == "min" else -1.0
        first = math.isnan(self.best) and not math.isnan(value)
        if first or sign * value < sign * self.best - self.rule.min_delta:
            self.best, self.worse = value, 0
            return True
        self.worse += 1
        return False

    @property
    def exhausted(self) -> bool:
        """Whether patience is at its end."""
        return self.worse >= self.rule.patience

    def state_dict(self) -> dict[str, Any]:
        """The best value, and how many have followed it."""
        return {"best": self.best, "worse": self.worse}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.best, self.worse = float(state["best"]), int(state["worse"])
