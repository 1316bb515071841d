"""Running statistics of numbers: their mean, variance, extrema."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.errors import OptionError
from retrograd.metrics.arrays import Array, floats, not_empty, ratio, weights_for
from retrograd.metrics.metric import Metric, State
from retrograd.metrics.regression import merged_moments


class Mean(Metric):
    """The mean of all numbers of all batches, such as losses; `update(values, sample_weight=None)`,
    of any shape, with a weight for each, or one for all.

    The result is float64 of the shape `[]`; NaN where all weights are zero. `ShapeError` for no
    number or weights of another shape, `NonFiniteError` for a NaN.

    >>> import retrograd as rg
    >>> rg.metrics.Mean().update([1.0, 2.0]).update(6.0, sample_weight=2.0).compute().item()
    3.75
    """

    def arguments(self, values: Any, sample_weight: Any = None) -> tuple[Any, ...]:  # type: ignore[override]
        return values, sample_weight

    def empty(self, like: State | None = None) -> State:
        return {"sum": np.zeros(()), "weight": np.zeros(())}

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        x, w = _weighed(xp, *arrays)
        return {"sum": xp.sum(x * w), "weight": xp.sum(w)}

    def value(self, xp: Any, state: State) -> Any:
        return ratio(xp, state["sum"], state["weight"], math.nan)


def _weighed(xp: Any, values: Any, sample_weight: Any) -> tuple[Array, Array]:
    """Numbers and their weights, flat."""
    x = floats(xp, values, "values")
    x = x.reshape(1) if x.ndim == 0 else x
    not_empty(x, "values")
    w = weights_for(xp, sample_weight, tuple(x.shape))
    x = x.reshape(-1)
    return x, xp.ones_like(x) if w is None else w


class RunningStatistics(Metric):
    """Count, mean, variance, standard deviation, least and greatest of all numbers of all batches;
    `update(values, sample_weight=None)` as `Mean`.

    Means and sums of squares around them are merged (Welford 1962; Chan, Golub and LeVeque 1979),
    so that nothing is lost where the numbers are far from zero. The variance is divided by the sum
    of the weights less `correction`, as in `rg.var`.

    `compute()` is a dict of float64 tensors of the shape `[]`: "count", "mean", "var", "std",
    "min", "max". `ShapeError` and `NonFiniteError` as `Mean`, `OptionError` for a `correction` that
    is no number of 0 or more.

    >>> import retrograd as rg
    >>> found = rg.metrics.RunningStatistics().update([1.0, 2.0]).update([6.0]).compute()
    >>> {k: v.item() for k, v in found.items() if k in ("count", "mean", "max")}
    {'count': 3.0, 'mean': 3.0, 'max': 6.0}
    """

    def __init__(self, *, correction: float = 0.0) -> None:
        super().__init__()
        if not isinstance(correction, int | float) or not correction >= 0:
            raise OptionError(f"correction is a number of 0 or more, not {correction!r}")
        self.correction = float(correction)

    def arguments(self, values: Any, sample_weight: Any = None) -> tuple[Any, ...]:  # type: ignore[override]
        return values, sample_weight

    def empty(self, like: State | None = None) -> State:
        zero = np.zeros(())
        ends = {"min": np.asarray(math.inf), "max": np.asarray(-math.inf)}
        return dict.fromkeys(("count", "weight", "mean", "spread"), zero) | ends

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        x, w = _weighed(xp, *arrays)
        total = xp.sum(w)
        mean = ratio(xp, xp.sum(x * w), total, 0.0)
        return {
            "count": xp.sum(xp.ones_like(x)),
            "weight": total,
            "mean": mean,
            "spread": xp.sum(w * (x - mean) ** 2),
            "min": xp.min(x),
            "max": xp.max(x),
        }

    def combine(self, xp: Any, a: State, b: State) -> State:
        return {
            **{k: a[k] + b[k] for k in ("count", "weight")},
            **merged_moments(xp, a, b, "mean", "spread"),
            "min": xp.minimum(a["min"], b["min"]),
            "max": xp.maximum(a["max"], b["max"]),
        }

    def value(self, xp: Any, state: State) -> Any:
        weight = state["weight"]
        left = weight - self.correction
        var = xp.where(left > 0, state["spread"] / xp.where(left > 0, left, 1.0), math.nan)
        return {
            "count": state["count"],
            "mean": xp.where(weight == 0, math.nan, state["mean"]),
            "var": var,
            "std": xp.sqrt(var),
            "min": state["min"],
            "max": state["max"],
        }
