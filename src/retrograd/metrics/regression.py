"""Errors of numbers: MSE, RMSE, MAE, MAPE, the median error, R² and explained variance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.errors import OptionError, ShapeError
from retrograd.metrics.arrays import (
    EPSILON,
    Array,
    as_tensors,
    floats,
    given_once,
    mean_of,
    not_empty,
    ratio,
    reject_zero_weights,
    weights_for,
)
from retrograd.metrics.metric import Metric, State
from retrograd.tensor_type import Tensor

AVERAGES = ("uniform_average", "raw_values")


def _pair(
    xp: Any, predictions: Array, targets: Array, sample_weight: Array | None
) -> tuple[Array, Array, Array | None]:
    """Predictions and targets as `[N, D]`, and weights `[N]`."""
    p, t = floats(xp, predictions, "predictions"), floats(xp, targets, "targets")
    not_empty(t, "targets")
    not_empty(p, "predictions")
    if p.ndim > 2 or t.ndim > 2:
        raise ShapeError(
            f"predictions of the shape {tuple(p.shape)} and targets of {tuple(t.shape)}: metrics "
            "of regression take [N], or [N, D] for D outputs; flatten both, x.reshape(-1), if all "
            "elements are alike"
        )
    rows = [x.reshape(-1, 1) if x.ndim == 1 else x for x in (p, t)]
    if tuple(rows[0].shape) != tuple(rows[1].shape):
        raise ShapeError(
            f"predictions have the shape {tuple(p.shape)}, targets {tuple(t.shape)}; make them "
            "equal"
        )
    return rows[0], rows[1], weights_for(xp, sample_weight, rows[0].shape[:1])


def _weighed_pair(xp: Any, *arrays: Any) -> tuple[Array, Array, Array | None]:
    """The same, some of it with a weight."""
    p, t, w = _pair(xp, *arrays)
    if w is not None:
        reject_zero_weights(xp, xp.sum(w))
    return p, t, w


def _over_outputs(
    xp: Any, values: Array, multioutput: Any, variances: Array | None = None
) -> Array:
    """One value of those of all outputs, as `multioutput` says."""
    if isinstance(multioutput, str):
        if multioutput == "raw_values":
            return values
        if multioutput == "uniform_average":
            return xp.mean(values)
        assert variances is not None  # as `_check_multioutput` saw to
        total = xp.sum(variances)
        weighted = ratio(xp, xp.sum(values * variances), total, math.nan)
        return xp.where(total == 0, xp.mean(values), weighted)
    weights = xp.asarray(np.asarray(multioutput, np.float64))
    if values.shape[0] != weights.shape[0]:
        raise OptionError(
            f"multioutput gives {weights.shape[0]} weights for {values.shape[0]} outputs"
        )
    return xp.sum(values * weights) / xp.sum(weights)


def _check_multioutput(multioutput: Any, variances: bool = False) -> Any:
    known = (*AVERAGES, "variance_weighted") if variances else AVERAGES
    if isinstance(multioutput, str):
        if multioutput not in known:
            raise OptionError(
                f"multioutput={multioutput!r}; it is one of {', '.join(map(repr, known))}, or a "
                "weight for each output"
            )
        return multioutput
    weights = np.asarray(multioutput, np.float64)
    if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all() or not weights.sum():
        raise OptionError(
            f"multioutput is a weight for each output, not all zero, not {multioutput!r:.60}"
        )
    return tuple(weights.tolist())


def _absolute(xp: Any, p: Array, t: Array) -> Array:
    return xp.abs(p - t)


def _squared(xp: Any, p: Array, t: Array) -> Array:
    return (p - t) ** 2


def _relative(xp: Any, p: Array, t: Array) -> Array:
    size = xp.abs(t)
    return xp.abs(p - t) / xp.where(size < EPSILON, EPSILON, size)


def _mean_error(
    error: Any, predictions: Any, targets: Any, sample_weight: Any, multioutput: Any, root: bool
) -> Any:
    multioutput = _check_multioutput(multioutput)
    xp, arrays = given_once(predictions, targets, sample_weight)
    p, t, w = _weighed_pair(xp, *arrays)
    values = mean_of(xp, error(xp, p, t), w, 0)
    values = xp.sqrt(values) if root else values
    return as_tensors(_over_outputs(xp, values, multioutput))


def mse(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
) -> Tensor:
    """The mean squared error, `mean((p - t)²)`.

    Predictions and targets are `[N]`, or `[N, D]` for D outputs, whose errors are averaged
    ("uniform_average"), returned as they are ("raw_values") or averaged with the weights that
    `multioutput` is. Everything is computed in double precision.

    The result is float64 of the shape `[]` or `[D]`, equal to scikit-learn's
    `mean_squared_error(targets, predictions)`. `ShapeError` for shapes that differ or no sample,
    `OptionError` for another `multioutput` or weights that are all zero, `NonFiniteError` for a NaN
    or an infinity.

    >>> import retrograd as rg
    >>> rg.metrics.mse([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0]).item()
    0.375
    """
    return _mean_error(_squared, predictions, targets, sample_weight, multioutput, False)


def rmse(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
) -> Tensor:
    """The root of the mean squared error; of several outputs, of each one's.

    Shapes `[N]` or `[N, D]`, options and errors (`ShapeError`, `OptionError`) as `mse`; equal to
    scikit-learn's `root_mean_squared_error(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.rmse([3.0, 1.0], [1.0, 3.0]).item()
    2.0
    """
    return _mean_error(_squared, predictions, targets, sample_weight, multioutput, True)


def mae(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
) -> Tensor:
    """The mean absolute error, `mean(|p - t|)`.

    Shapes `[N]` or `[N, D]`, options and errors (`ShapeError`, `OptionError`) as `mse`; equal to
    scikit-learn's `mean_absolute_error(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.mae([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0]).item()
    0.5
    """
    return _mean_error(_absolute, predictions, targets, sample_weight, multioutput, False)


def mape(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
) -> Tensor:
    """The mean error relative to the target, `mean(|p - t| / max(|t|, eps))`; not in percent, as in
    scikit-learn. Where a target is zero it is huge.

    Shapes `[N]` or `[N, D]`, options and errors (`ShapeError`, `OptionError`) as `mse`; equal to
    scikit-learn's `mean_absolute_percentage_error(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.mape([1.0, 3.0], [2.0, 4.0]).item()
    0.375
    """
    return _mean_error(_relative, predictions, targets, sample_weight, multioutput, False)


def median_absolute_error(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
) -> Tensor:
    """The median of `|p - t|`, which outliers do not change.

    With weights it is where half of them are reached, or the middle between two where just half
    are. Shapes `[N]` or `[N, D]`, options and errors (`ShapeError`, `OptionError`) as `mse`; equal
    to scikit-learn's `median_absolute_error(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.median_absolute_error([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0]).item()
    0.5
    """
    multioutput = _check_multioutput(multioutput)
    xp, arrays = given_once(predictions, targets, sample_weight)
    p, t, w = _weighed_pair(xp, *arrays)
    apart = xp.abs(p - t)
    if w is None:
        values = xp.median(apart, axis=0)
    else:
        values = xp.stack([_weighted_median(xp, apart[:, d], w) for d in range(p.shape[1])])
    return as_tensors(_over_outputs(xp, values, multioutput))


def _weighted_median(xp: Any, x: Array, w: Array) -> Array:
    order = xp.argsort(x)
    reached = xp.cumulative_sum(w[order])
    half = reached[-1:] / 2
    ends = [xp.searchsorted(reached, half, side=side) for side in ("left", "right")]
    return sum(x[order][xp.clip(at, 0, x.shape[0] - 1)][0] for at in ends) / 2


# -- parts of a variance -------------------------------------------------------------------------
def _moments(xp: Any, p: Array, t: Array, w: Array | None) -> State:
    """Of targets and of residuals the mean and the sum of squares around it."""
    by = 1.0 if w is None else w.reshape(-1, 1)
    means = [mean_of(xp, x, w, 0) for x in (t, t - p)]
    total = xp.asarray(float(p.shape[0])) if w is None else xp.sum(w)
    ones = xp.ones_like(means[0])
    return {
        "count": ones * p.shape[0],
        "weight": ones * total,
        "mean": means[0],
        "spread": xp.sum(by * (t - means[0]) ** 2, axis=0),
        "residual_mean": means[1],
        "residual_spread": xp.sum(by * (t - p - means[1]) ** 2, axis=0),
        "squares": xp.sum(by * (t - p) ** 2, axis=0),
    }


def merged_moments(xp: Any, a: State, b: State, mean: str, spread: str) -> State:
    """Mean and sum of squares of two parts together (Chan, Golub and LeVeque 1979)."""
    total = a["weight"] + b["weight"]
    share = ratio(xp, b["weight"], total, 0.0)
    apart = b[mean] - a[mean]
    return {
        mean: a[mean] + apart * share,
        spread: a[spread] + b[spread] + apart**2 * a["weight"] * share,
    }


def _explained(
    xp: Any, left: Array, spread: Array, count: Array, multioutput: Any, force_finite: bool
) -> Array:
    """`1 - left / spread`, for each output, then for all."""
    if force_finite:
        values = xp.where(left == 0, 1.0, 1.0 - ratio(xp, left, spread, 1.0))
    else:
        values = 1.0 - left / spread
    values = xp.where(count < 2, math.nan, values) if count is not None else values
    return _over_outputs(xp, values, multioutput, spread)


def r2(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
    force_finite: bool = True,
) -> Tensor:
    """The coefficient of determination, `1 - sum((t - p)²) / sum((t - mean(t))²)`.

    Where all targets are equal, it is 1 if the predictions are, too, and 0 if not; without
    `force_finite` NaN or -inf. Of one sample it is NaN. `multioutput` may also be
    "variance_weighted", by the variance of each output's targets.

    Shapes `[N]` or `[N, D]`, options and errors (`ShapeError`, `OptionError`) as `mse`; equal to
    scikit-learn's `r2_score(targets, predictions)`: the order of the arguments matters.

    >>> import retrograd as rg
    >>> rg.metrics.r2([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0]).item()
    0.9486081370449679
    """
    return _part_of_variance(
        "squares", predictions, targets, sample_weight, multioutput, force_finite
    )


def explained_variance(
    predictions: Any,
    targets: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
    force_finite: bool = True,
) -> Tensor:
    """The part of the targets' variance that predictions explain, `1 - Var(t - p) / Var(t)`: R²
    that forgives a constant error.

    Shapes `[N]` or `[N, D]`, options and errors (`ShapeError`, `OptionError`) as `r2`; equal to
    scikit-learn's `explained_variance_score(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.explained_variance([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0]).item()
    0.9571734475374732
    """
    return _part_of_variance(
        "residual_spread", predictions, targets, sample_weight, multioutput, force_finite
    )


def _part_of_variance(
    left: str, predictions: Any, targets: Any, sample_weight: Any, multioutput: Any, finite: bool
) -> Any:
    multioutput = _check_multioutput(multioutput, True)
    xp, arrays = given_once(predictions, targets, sample_weight)
    found = _moments(xp, *_weighed_pair(xp, *arrays))
    count = found["count"] if left == "squares" else found["count"] + 1
    with np.errstate(all="ignore"):
        values = _explained(xp, found[left], found["spread"], count, multioutput, finite)
    return as_tensors(values)


# -- running -------------------------------------------------------------------------------------
class _OfOutputs(Metric):
    """A metric of `num_outputs` numbers for each sample: 1 in the pure form, if not said."""

    def __init__(self, num_outputs: int | None, multioutput: Any, variances: bool = False) -> None:
        super().__init__()
        if num_outputs is not None and (not isinstance(num_outputs, int) or num_outputs < 1):
            raise OptionError(f"num_outputs is a whole number of 1 or more, not {num_outputs!r}")
        self.num_outputs = num_outputs
        self.multioutput = _check_multioutput(multioutput, variances)

    def _size(self, like: State | None) -> int:
        if self.num_outputs is None and like and np.ndim(like.get("weight", 0)) == 1:
            return len(like["weight"])
        return self.num_outputs or 1

    def _rows(self, xp: Any, *arrays: Any) -> tuple[Array, Array, Array | None]:
        p, t, w = _pair(xp, *arrays)
        if self.num_outputs not in (None, p.shape[1]):
            raise ShapeError(
                f"{type(self).__name__} has num_outputs={self.num_outputs}, the batch {p.shape[1]}"
            )
        return p, t, w

    def combine(self, xp: Any, a: State, b: State) -> State:
        if np.shape(a["weight"]) != np.shape(b["weight"]):
            raise ShapeError(
                f"{type(self).__name__} has seen {np.shape(a['weight'])[0]} outputs for each "
                f"sample, and now {np.shape(b['weight'])[0]}; give num_outputs, and as many always"
            )
        return self._together(xp, a, b)

    def _together(self, xp: Any, a: State, b: State) -> State:
        return super().combine(xp, a, b)


class MSE(_OfOutputs):
    """`mse` over batches, with its `multioutput`; the pure form takes `num_outputs`, 1 by default.

    The result is of the shape `[]`, or `[D]`. `ShapeError`, `OptionError` as `mse`.

    >>> import retrograd as rg
    >>> rg.metrics.MSE().update([2.5, 0.0], [3.0, -0.5]).update([2.0, 8.0], [2.0, 7.0]).compute()
    Tensor(0.375, dtype=float64)
    """

    def __init__(
        self, *, num_outputs: int | None = None, multioutput: Any = "uniform_average"
    ) -> None:
        super().__init__(num_outputs, multioutput)

    def error(self, xp: Any, p: Array, t: Array) -> Array:
        """The error of each element."""
        return _squared(xp, p, t)

    def finish(self, xp: Any, mean: Array) -> Array:
        """The value of an output from its mean error."""
        return mean

    def empty(self, like: State | None = None) -> State:
        return dict.fromkeys(("sum", "weight"), np.zeros(self._size(like)))

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        p, t, w = self._rows(xp, *arrays)
        by = xp.ones_like(p) if w is None else w.reshape(-1, 1) * xp.ones_like(p)
        return {"sum": xp.sum(self.error(xp, p, t) * by, axis=0), "weight": xp.sum(by, axis=0)}

    def value(self, xp: Any, state: State) -> Array:
        mean = state["sum"] / state["weight"]
        return _over_outputs(xp, self.finish(xp, mean), self.multioutput)


class RMSE(MSE):
    """`rmse` over batches, with the options and shapes of `MSE`.

    The result is of the shape `[]`, or `[D]`. `ShapeError`, `OptionError` as `mse`.

    >>> import retrograd as rg
    >>> rg.metrics.RMSE().update([3.0], [1.0]).update([1.0], [3.0]).compute().item()
    2.0
    """

    def finish(self, xp: Any, mean: Array) -> Array:
        return xp.sqrt(mean)


class MAE(MSE):
    """`mae` over batches, with the options and shapes of `MSE`.

    The result is of the shape `[]`, or `[D]`. `ShapeError`, `OptionError` as `mse`.

    >>> import retrograd as rg
    >>> rg.metrics.MAE().update([3.0], [1.0]).update([1.0], [3.0]).compute().item()
    2.0
    """

    def error(self, xp: Any, p: Array, t: Array) -> Array:
        return _absolute(xp, p, t)


class MAPE(MSE):
    """`mape` over batches, with the options and shapes of `MSE`.

    The result is of the shape `[]`, or `[D]`. `ShapeError`, `OptionError` as `mse`.

    >>> import retrograd as rg
    >>> rg.metrics.MAPE().update([1.0], [2.0]).update([3.0], [4.0]).compute().item()
    0.375
    """

    def error(self, xp: Any, p: Array, t: Array) -> Array:
        return _relative(xp, p, t)


class R2(_OfOutputs):
    """`r2` over batches, with its options. What is remembered are means and sums of squares around
    them, so that nothing is lost where targets are far from zero.

    The result is of the shape `[]`, or `[D]`. `ShapeError`, `OptionError` as `r2`.

    >>> import retrograd as rg
    >>> rg.metrics.R2().update([2.5, 0.0], [3.0, -0.5]).update([2.0, 8.0], [2.0, 7.0]).compute()
    Tensor(0.94860814, dtype=float64)
    """

    def __init__(
        self,
        *,
        num_outputs: int | None = None,
        multioutput: Any = "uniform_average",
        force_finite: bool = True,
    ) -> None:
        super().__init__(num_outputs, multioutput, True)
        self.force_finite = bool(force_finite)

    def empty(self, like: State | None = None) -> State:
        keys = ("count", "weight", "mean", "spread", "residual_mean", "residual_spread", "squares")
        return dict.fromkeys(keys, np.zeros(self._size(like)))

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        return _moments(xp, *self._rows(xp, *arrays))

    def _together(self, xp: Any, a: State, b: State) -> State:
        return {
            **{k: a[k] + b[k] for k in ("count", "weight", "squares")},
            **merged_moments(xp, a, b, "mean", "spread"),
            **merged_moments(xp, a, b, "residual_mean", "residual_spread"),
        }

    def value(self, xp: Any, state: State) -> Array:
        with np.errstate(all="ignore"):
            return _explained(
                xp,
                state["squares"],
                state["spread"],
                state["count"],
                self.multioutput,
                self.force_finite,
            )


class ExplainedVariance(R2):
    """`explained_variance` over batches, with the options and shapes of `R2`.

    The result is of the shape `[]`, or `[D]`. `ShapeError`, `OptionError` as `r2`.

    >>> import retrograd as rg
    >>> rg.metrics.ExplainedVariance().update([2.0, 3.0], [1.0, 2.0]).compute().item()
    1.0
    """

    def value(self, xp: Any, state: State) -> Array:
        with np.errstate(all="ignore"):
            return _explained(
                xp,
                state["residual_spread"],
                state["spread"],
                state["count"] + 1,
                self.multioutput,
                self.force_finite,
            )
