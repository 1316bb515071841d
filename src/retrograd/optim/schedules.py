"""Learning rates as functions of the number of steps taken.

A schedule maps 0, 1, 2, ... to the rate of the first, second, third step. It takes ints, and
tensors inside `jit`, so it can be passed as `lr` to every optimizer, in both forms.

>>> rate = linear(1.0, steps=4)
>>> [rate(i) for i in range(6)]
[1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor


@dataclass(frozen=True)
class Schedule:
    """A rise in proportion to the step during `warmup` steps, up to `peak`, then a fall to `end`,
    reached after `steps` steps, the warm-up included."""

    decay: Literal["linear", "cosine"]
    peak: float
    steps: int
    end: float = 0.0
    warmup: int = 0

    def __post_init__(self) -> None:
        if self.decay not in ("linear", "cosine"):
            raise OptionError(f"the decay of a schedule is linear or cosine, not {self.decay!r}")
        if not 0 <= self.warmup <= self.steps or self.steps < 1:
            raise OptionError(
                f"a schedule of {self.steps} steps with {self.warmup} steps of warm-up: there is "
                "at least one step, and the warm-up is part of them"
            )

    def __call__(self, step: Any) -> Any:
        if isinstance(step, Tensor):
            s = step.astype(rg.float64)
            done = rg.clip((s - self.warmup) / max(self.steps - self.warmup, 1), 0.0, 1.0)
            falling = self._falling(done, rg.cos)
            rising = self.peak * ((s + 1) / max(self.warmup, 1))
            return rg.where(s < self.warmup, rising, falling)
        if step < self.warmup:
            return self.peak * ((step + 1) / self.warmup)
        done = min(max((step - self.warmup) / max(self.steps - self.warmup, 1), 0.0), 1.0)
        return self._falling(done, math.cos)

    def _falling(self, done: Any, cos: Any) -> Any:
        left = 1 - done if self.decay == "linear" else 0.5 * (1 + cos(math.pi * done))
        return self.end + (self.peak - self.end) * left


def linear(peak: float, steps: int, end: float = 0.0, warmup: int = 0) -> Schedule:
    """From `peak` in a straight line to `end`, after `warmup` steps of rising to it."""
    return Schedule("linear", peak, steps, end, warmup)


def cosine(peak: float, steps: int, end: float = 0.0, warmup: int = 0) -> Schedule:
    """From `peak` along half a cosine to `end` (Loshchilov, Hutter, arXiv:1608.03983), after
    `warmup` steps of rising to it."""
    return Schedule("cosine", peak, steps, end, warmup)
