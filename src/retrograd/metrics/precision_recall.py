"""Precision, recall, F-scores and the Jaccard index: ratios of counts of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.errors import OptionError
from retrograd.metrics.arrays import Array, as_tensors, given_once
from retrograd.metrics.class_counts import ClassMetric, Measure, measured
from retrograd.tensor_type import Tensor


def of_precision(hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
    """TP / (TP + FP)."""
    return hits, predicted


def of_recall(hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
    """TP / (TP + FN)."""
    return hits, actual


def of_jaccard(hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
    """TP / (TP + FP + FN)."""
    return hits, predicted + actual - hits


def of_fbeta(beta: float) -> Measure:
    """(1 + b²) TP / (b² (TP + FN) + TP + FP)."""
    if not isinstance(beta, int | float) or not beta >= 0:
        raise OptionError(f"beta is a number of 0 or more, not {beta!r}")
    if math.isinf(beta):
        return of_recall
    if beta == 0:
        return of_precision
    square = float(beta) ** 2
    return lambda hits, predicted, actual: ((1 + square) * hits, square * actual + predicted)


def _of(measure: Measure, predictions: Any, targets: Any, sample_weight: Any, options: Any) -> Any:
    xp, arrays = given_once(predictions, targets, sample_weight)
    return as_tensors(measured(measure, xp, *arrays, **options))


# -- functions -----------------------------------------------------------------------------------
def precision(
    predictions: Any,
    targets: Any,
    *,
    average: str | None = "binary",
    pos_label: Any = 1,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    zero_division: float = 0.0,
    threshold: float | None = None,
    axis: int = -1,
    multilabel: bool | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """Of what was predicted to be of a class, the part that is: `TP / (TP + FP)`.

    `predictions` are labels, scores of classes `[..., C]` (probabilities or logits), or
    probabilities of the positive class; of several labels of a sample, both are `[N, L]` of zeros
    and ones, or `predictions` their probabilities. `targets` are labels `[...]`. The options:

    - `average`: "binary" (the class `pos_label` alone), "micro" (of the sums of all classes),
      "macro" (the mean over classes that occur), "weighted" (by how often they are true), "samples"
      (the mean over samples of several labels), None (a value for each class).
    - `labels`: the classes that count, in their order; by default all that occur.
    - `zero_division`: the value of 0 / 0, which is 0, 1 or NaN; means leave out what is NaN.
    - `threshold`: from where on a probability predicts the positive class (0.5); 0 for logits.
    - `axis`: the axis of classes in scores; 1 for PyTorch's `[N, C, ...]`.
    - `num_classes`: asked for inside of `jit`, where predictions are labels.
    - `multilabel`: whether elements along the second axis are labels of one sample; by default
      they are where both are `[N, L]` and targets 0 or 1, as in scikit-learn.
    - `sample_weight`: a weight for each sample.

    The result is float64 of the shape `[]`, or `[C]` with `average=None`, equal to scikit-learn's
    `precision_score(targets, predictions)`. `ShapeError` for shapes that do not fit or no sample,
    `OptionError` for an option there is not, or more than two classes with "binary",
    `IndexRangeError` for a label beyond the classes, `DTypeError` for labels that are not whole,
    `NonFiniteError` for a NaN.

    >>> import retrograd as rg
    >>> rg.metrics.precision([1, 1, 0, 1], [1, 0, 0, 1]).item()
    0.6666666666666666
    >>> rg.metrics.precision([2, 1, 0], [2, 0, 0], average=None).tolist()
    [1.0, 0.0, 1.0]
    """
    options = {
        "average": average,
        "pos_label": pos_label,
        "labels": labels,
        "num_classes": num_classes,
        "zero_division": zero_division,
        "threshold": threshold,
        "axis": axis,
        "multilabel": multilabel,
    }
    return _of(of_precision, predictions, targets, sample_weight, options)


def recall(
    predictions: Any,
    targets: Any,
    *,
    average: str | None = "binary",
    pos_label: Any = 1,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    zero_division: float = 0.0,
    threshold: float | None = None,
    axis: int = -1,
    multilabel: bool | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """Of what is of a class, the part that was predicted to be: `TP / (TP + FN)`.

    Predictions, targets, options and errors such as `OptionError` are those of `precision`. The
    result is float64 of the shape `[]`, or `[C]` with `average=None`, equal to scikit-learn's
    `recall_score(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.recall([1, 0, 0, 1], [1, 1, 0, 1]).item()
    0.6666666666666666
    """
    options = {
        "average": average,
        "pos_label": pos_label,
        "labels": labels,
        "num_classes": num_classes,
        "zero_division": zero_division,
        "threshold": threshold,
        "axis": axis,
        "multilabel": multilabel,
    }
    return _of(of_recall, predictions, targets, sample_weight, options)


def f1(
    predictions: Any,
    targets: Any,
    *,
    average: str | None = "binary",
    pos_label: Any = 1,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    zero_division: float = 0.0,
    threshold: float | None = None,
    axis: int = -1,
    multilabel: bool | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """The harmonic mean of precision and recall: `2 TP / (2 TP + FP + FN)`.

    Predictions, targets, options and errors such as `OptionError` are those of `precision`. The
    result is float64 of the shape `[]`, or `[C]` with `average=None`, equal to scikit-learn's
    `f1_score(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.f1([2, 1, 0, 0], [2, 0, 0, 1], average="macro").item()
    0.5
    """
    options = {
        "average": average,
        "pos_label": pos_label,
        "labels": labels,
        "num_classes": num_classes,
        "zero_division": zero_division,
        "threshold": threshold,
        "axis": axis,
        "multilabel": multilabel,
    }
    return _of(of_fbeta(1.0), predictions, targets, sample_weight, options)


def fbeta(
    predictions: Any,
    targets: Any,
    *,
    beta: float,
    average: str | None = "binary",
    pos_label: Any = 1,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    zero_division: float = 0.0,
    threshold: float | None = None,
    axis: int = -1,
    multilabel: bool | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """The F-score, in which recall counts `beta` times as much as precision:
    `(1 + b²) TP / ((1 + b²) TP + b² FN + FP)`.

    Predictions, targets, options and errors such as `OptionError` are those of `precision`. The
    result is float64 of the shape `[]`, or `[C]` with `average=None`, equal to scikit-learn's
    `fbeta_score(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.fbeta([1, 1, 0, 1], [1, 0, 0, 1], beta=2.0).item()
    0.9090909090909091
    """
    options = {
        "average": average,
        "pos_label": pos_label,
        "labels": labels,
        "num_classes": num_classes,
        "zero_division": zero_division,
        "threshold": threshold,
        "axis": axis,
        "multilabel": multilabel,
    }
    return _of(of_fbeta(beta), predictions, targets, sample_weight, options)


def jaccard(
    predictions: Any,
    targets: Any,
    *,
    average: str | None = "binary",
    pos_label: Any = 1,
    labels: Sequence[Any] | None = None,
    num_classes: int | None = None,
    zero_division: float = 0.0,
    threshold: float | None = None,
    axis: int = -1,
    multilabel: bool | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """Intersection over union of what was predicted and what is: `TP / (TP + FP + FN)`.

    Predictions, targets, options and errors such as `OptionError` are those of `precision`. The
    result is float64 of the shape `[]`, or `[C]` with `average=None`, equal to scikit-learn's
    `jaccard_score(targets, predictions)`.

    >>> import retrograd as rg
    >>> rg.metrics.jaccard([1, 1, 0, 1], [1, 0, 0, 1]).item()
    0.6666666666666666
    """
    options = {
        "average": average,
        "pos_label": pos_label,
        "labels": labels,
        "num_classes": num_classes,
        "zero_division": zero_division,
        "threshold": threshold,
        "axis": axis,
        "multilabel": multilabel,
    }
    return _of(of_jaccard, predictions, targets, sample_weight, options)


# -- running -------------------------------------------------------------------------------------
class Precision(ClassMetric):
    """`precision` over batches, with its options, but for `labels`; labels are numbers from 0 on,
    and `multilabel` has to be said.

    Without `num_classes` there are as many classes as labels were seen, or scores have; the pure
    form needs it. `ShapeError`, `OptionError` and the rest as `precision`; results have its shapes.

    >>> import retrograd as rg
    >>> metric = rg.metrics.Precision(average="macro")
    >>> metric.update([2, 1, 0], [2, 0, 0]).update([0, 1], [0, 1]).compute().item()
    0.8333333333333334
    """

    def __init__(
        self,
        *,
        average: str | None = "binary",
        num_classes: int | None = None,
        pos_label: int = 1,
        zero_division: float = 0.0,
        threshold: float | None = None,
        axis: int = -1,
        multilabel: bool = False,
    ) -> None:
        super().__init__(
            average=average,
            num_classes=num_classes,
            pos_label=pos_label,
            zero_division=zero_division,
            threshold=threshold,
            axis=axis,
            multilabel=multilabel,
        )

    def measure(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return of_precision(hits, predicted, actual)


class Recall(Precision):
    """`recall` over batches, with the options of `Precision`: `OptionError` for others.

    Results are of the shape `[]`, or `[C]` with `average=None`.

    >>> import retrograd as rg
    >>> rg.metrics.Recall().update([1, 0], [1, 1]).update([0, 1], [0, 1]).compute().item()
    0.6666666666666666
    """

    def measure(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return of_recall(hits, predicted, actual)


class Jaccard(Precision):
    """`jaccard` over batches, with the options of `Precision`: `OptionError` for others.

    Results are of the shape `[]`, or `[C]` with `average=None`.

    >>> import retrograd as rg
    >>> rg.metrics.Jaccard().update([1, 1], [1, 0]).update([0, 1], [0, 1]).compute().item()
    0.6666666666666666
    """

    def measure(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return of_jaccard(hits, predicted, actual)


class F1(Precision):
    """`f1` over batches, with the options of `Precision`: `OptionError` for others.

    Results are of the shape `[]`, or `[C]` with `average=None`.

    >>> import retrograd as rg
    >>> rg.metrics.F1().update([1, 0], [1, 1]).update([0, 1], [0, 1]).compute().item()
    0.8
    """

    def measure(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return of_fbeta(1.0)(hits, predicted, actual)


class FBeta(Precision):
    """`fbeta` over batches, with the options of `Precision`: `OptionError` for others.

    Results are of the shape `[]`, or `[C]` with `average=None`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.FBeta(2.0)
    >>> metric.update([1, 1], [1, 0]).update([0, 1], [0, 1]).compute().item()
    0.9090909090909091
    """

    def __init__(self, beta: float, **options: Any) -> None:
        of_fbeta(beta)
        super().__init__(**options)
        self.beta = float(beta)

    def measure(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return of_fbeta(self.beta)(hits, predicted, actual)
