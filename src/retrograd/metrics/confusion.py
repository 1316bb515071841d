"""The confusion matrix, and what is read off it: Matthews' correlation, Cohen's kappa."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd import notebook
from retrograd.errors import OptionError
from retrograd.memory_limit import check_new
from retrograd.metrics.arrays import Array, as_tensors, count, given_once, ratio, weights_for
from retrograd.metrics.class_counts import (
    checked_size,
    number_of_classes,
    of_one_size,
    running_numbers,
)
from retrograd.metrics.labels import class_numbers, labelled
from retrograd.metrics.metric import Metric, State
from retrograd.tensor_type import Tensor

NORMALIZATIONS = ("true", "pred", "all", None)


def confusion_matrix(
    predictions: Any,
    targets: Any,
    *,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    normalize: str | None = None,
    threshold: float | None = None,
    axis: int = -1,
    sample_weight: Any = None,
) -> Tensor:
    """How many samples of each class were predicted to be of each: element `[i, j]` counts those
    of class i that were predicted to be of class j.

    Predictions, targets, `threshold` and `axis` as in `precision`. Classes are those of `labels`,
    in their order, and samples of others do not count; or 0 to `num_classes - 1`, or as many as
    there are scores; else all labels that occur, ascending. `normalize` divides by the sums of rows
    ("true"), of columns ("pred") or of all ("all"); 0 / 0 is 0.

    The result has the shape `[C, C]`, int64 if nothing is weighed or divided, else float64, equal
    to scikit-learn's `confusion_matrix(targets, predictions)`. `ShapeError`, `OptionError`,
    `IndexRangeError` as `precision`; `OptionError` if no target is one of `labels`.

    >>> import retrograd as rg
    >>> rg.metrics.confusion_matrix([0, 0, 2, 2], [0, 1, 2, 1]).tolist()
    [[1, 0, 0], [1, 0, 1], [0, 0, 1]]
    """
    _check_normalize(normalize)
    xp, (p, t, w) = given_once(predictions, targets, sample_weight)
    matrix = _matrix_of(xp, p, t, w, labels, num_classes, threshold, axis)
    if w is not None and xp is np and w.dtype.kind in "iub":
        matrix = matrix.astype(np.int64)
    return as_tensors(_normalized(xp, matrix, normalize))


def _check_normalize(normalize: Any) -> None:
    if normalize not in NORMALIZATIONS:
        raise OptionError(
            f"normalize={normalize!r}; it is one of {', '.join(map(repr, NORMALIZATIONS))}"
        )


def _matrix_of(
    xp: Any,
    predictions: Array,
    targets: Array,
    sample_weight: Array | None,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    threshold: float | None = None,
    axis: int = -1,
) -> Array:
    found = labelled(xp, predictions, targets, threshold, axis)
    w = weights_for(xp, sample_weight, found.targets.shape)
    p, t, n, first = class_numbers(xp, found, labels, checked_size(num_classes))
    if labels is None or first is None:
        return _counted(xp, p, t, w, n)
    kept = len(first)
    if not (t < kept).any():
        raise OptionError(f"no target is one of labels={list(labels)!r:.80}")
    both = (p < kept) & (t < kept)
    return _counted(np, p[both], t[both], None if w is None else w[both], kept)


def _counted(xp: Any, p: Array, t: Array, w: Array | None, n: int) -> Array:
    check_new((n, n), 8, "a confusion matrix")
    return count(xp, t * n + p, w, n * n).reshape(n, n)


def _normalized(xp: Any, matrix: Array, normalize: str | None) -> Array:
    if normalize is None:
        return matrix
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    return ratio(xp, matrix, xp.sum(matrix, axis=axis, keepdims=True), 0.0)


def matthews_corrcoef(
    predictions: Any,
    targets: Any,
    *,
    num_classes: int | None = None,
    threshold: float | None = None,
    axis: int = -1,
    sample_weight: Any = None,
) -> Tensor:
    """Matthews' correlation of predicted and true classes, from -1 to 1; of several classes as
    Gorodkin (2004) generalizes it. 0 where one of them is always the same.

    Predictions, targets and options as in `precision`. The result is float64 of the shape `[]`,
    equal to scikit-learn's `matthews_corrcoef(targets, predictions)`. `ShapeError`, `OptionError`,
    `IndexRangeError` as `precision`.

    >>> import retrograd as rg
    >>> rg.metrics.matthews_corrcoef([1, 0, 1, 1], [1, 1, 1, 0]).item()
    -0.3333333333333333
    """
    xp, (p, t, w) = given_once(predictions, targets, sample_weight)
    matrix = _matrix_of(xp, p, t, w, None, num_classes, threshold, axis)
    return as_tensors(_matthews(xp, matrix))


def _matthews(xp: Any, matrix: Array) -> Array:
    matrix = matrix.astype(xp.float64)
    actual, predicted = xp.sum(matrix, axis=1), xp.sum(matrix, axis=0)
    right, total = xp.sum(xp.diagonal(matrix)), xp.sum(predicted)
    covariance = right * total - xp.sum(actual * predicted)
    spread = (total**2 - xp.sum(predicted**2)) * (total**2 - xp.sum(actual**2))
    return xp.where(spread == 0, 0.0, covariance / xp.sqrt(xp.where(spread == 0, 1.0, spread)))


def cohen_kappa(
    predictions: Any,
    targets: Any,
    *,
    labels: Sequence[Any] | None = None,
    weights: str | None = None,
    num_classes: int | None = None,
    threshold: float | None = None,
    axis: int = -1,
    sample_weight: Any = None,
) -> Tensor:
    """Cohen's kappa, the agreement of predictions and targets beyond that of chance:
    `1 - sum(w o) / sum(w e)` with the confusion matrix o, the one e expected of independent labels
    and w of ones off the diagonal, or with `weights` "linear" or "quadratic" the distance of
    classes, or its square. NaN where both are always of one class.

    Predictions, targets and options as in `confusion_matrix`. The result is float64 of the shape
    `[]`, equal to scikit-learn's `cohen_kappa_score(targets, predictions)`. `ShapeError`,
    `OptionError`, `IndexRangeError` as `confusion_matrix`.

    >>> import retrograd as rg
    >>> rg.metrics.cohen_kappa([0, 1, 1, 0], [0, 1, 0, 0]).item()
    0.5
    """
    _check_weights(weights)
    xp, (p, t, w) = given_once(predictions, targets, sample_weight)
    matrix = _matrix_of(xp, p, t, w, labels, num_classes, threshold, axis)
    return as_tensors(_kappa(xp, matrix, weights))


def _check_weights(weights: Any) -> None:
    if weights not in ("linear", "quadratic", None):
        raise OptionError(f"weights of kappa are 'linear', 'quadratic' or None, not {weights!r}")


def _kappa(xp: Any, matrix: Array, weights: str | None) -> Array:
    matrix = matrix.astype(xp.float64)
    by_class = xp.arange(matrix.shape[0]).astype(xp.float64)
    distance = xp.abs(by_class[:, None] - by_class[None, :])
    if weights is None:
        distance = (distance != 0).astype(xp.float64)
    elif weights == "quadratic":
        distance = distance**2
    predicted, actual = xp.sum(matrix, axis=0), xp.sum(matrix, axis=1)
    expected = ratio(xp, predicted[:, None] * actual[None, :], xp.sum(predicted), 0.0)
    return 1 - ratio(xp, xp.sum(distance * matrix), xp.sum(distance * expected), math.nan)


# -- running -------------------------------------------------------------------------------------
class ConfusionMatrix(Metric):
    """`confusion_matrix` over batches. Labels are numbers from 0 on; without `num_classes`, which
    the pure form needs, there are as many classes as were seen or scores have.

    The result has the shape `[C, C]`: int64, or float64 in the pure form and where samples have
    weights. `ShapeError`, `OptionError`, `IndexRangeError` as `confusion_matrix`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.ConfusionMatrix(num_classes=2)
    >>> metric.update([0, 1], [0, 0]).update([1], [1]).compute().tolist()
    [[1, 1], [0, 1]]
    """

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        normalize: str | None = None,
        threshold: float | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__()
        _check_normalize(normalize)
        self.num_classes = checked_size(num_classes)
        self.normalize = normalize
        self.threshold = threshold
        self.axis = axis

    def empty(self, like: State | None = None) -> State:
        n = number_of_classes(self, like, "matrix")
        check_new((n, n), 8, "a confusion matrix")
        return {"matrix": np.zeros((n, n))}

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        found = labelled(xp, arrays[0], arrays[1], self.threshold, self.axis)
        w = weights_for(xp, arrays[2], found.targets.shape)
        p, t, n = running_numbers(xp, found, self.num_classes)
        return {"matrix": _counted(xp, p, t, w, n)}

    def combine(self, xp: Any, a: State, b: State) -> State:
        return super().combine(xp, *of_one_size(xp, a, b))

    def value(self, xp: Any, state: State) -> Array:
        return _normalized(xp, state["matrix"], self.normalize)

    def _repr_html_(self) -> str:
        """What notebooks show: the matrix of what was seen, and what follows from it."""
        kind = type(self).__name__
        if self._state is None:
            return notebook.output(notebook.headline(kind, "nothing seen yet"))
        found = self.value(np, self._state)
        facts = [f"{found:.4g}"] if found.ndim == 0 else []
        return notebook.counts_html(
            kind, _normalized(np, self._state["matrix"], self.normalize), facts
        )


class MatthewsCorrcoef(ConfusionMatrix):
    """`matthews_corrcoef` over batches; `num_classes` as in `ConfusionMatrix`.

    The result is of the shape `[]`. `ShapeError`, `OptionError`, `IndexRangeError` as
    `confusion_matrix`.

    >>> import retrograd as rg
    >>> rg.metrics.MatthewsCorrcoef().update([1, 0, 1, 1], [1, 1, 1, 0]).compute().item()
    -0.3333333333333333
    """

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        threshold: float | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, threshold=threshold, axis=axis)

    def value(self, xp: Any, state: State) -> Array:
        return _matthews(xp, state["matrix"])


class CohenKappa(ConfusionMatrix):
    """`cohen_kappa` over batches; `num_classes` as in `ConfusionMatrix`.

    The result is of the shape `[]`. `ShapeError`, `OptionError`, `IndexRangeError` as
    `confusion_matrix`.

    >>> import retrograd as rg
    >>> rg.metrics.CohenKappa().update([0, 1, 1, 0], [0, 1, 0, 0]).compute().item()
    0.5
    """

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        weights: str | None = None,
        threshold: float | None = None,
        axis: int = -1,
    ) -> None:
        _check_weights(weights)
        super().__init__(num_classes, threshold=threshold, axis=axis)
        self.weights = weights

    def value(self, xp: Any, state: State) -> Array:
        return _kappa(xp, state["matrix"], self.weights)
