"""The part of predictions that is right: accuracy, balanced accuracy, among the top k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.metrics.arrays import (
    Array,
    as_tensors,
    given_once,
    not_empty,
    ratio,
    reject_zero_weights,
    weights_for,
)
from retrograd.metrics.class_counts import (
    checked_size,
    counts_of,
    number_of_classes,
    of_one_size,
    running_numbers,
)
from retrograd.metrics.labels import (
    class_numbers,
    in_range,
    indicators,
    is_indicator,
    is_text,
    labelled,
    listed,
    reject_nan,
    whole,
)
from retrograd.metrics.metric import Metric, State
from retrograd.tensor_type import Tensor


def accuracy(
    predictions: Any,
    targets: Any,
    *,
    top_k: int = 1,
    threshold: float | None = None,
    axis: int = -1,
    multilabel: bool | None = None,
    ignore_index: int | None = None,
    normalize: bool = True,
    sample_weight: Any = None,
) -> Tensor:
    """The part of the predictions that is right, or with `top_k` the part of the samples whose
    class has one of the k greatest scores.

    `predictions` are labels, scores of classes `[..., C]` (probabilities or logits; of equal ones
    the first counts as greater), or probabilities of the positive class, with `threshold` 0.5 (0
    for logits); `targets` are labels `[...]`. Of several labels of a sample, `[N, L]`, all have to
    be right (see `precision` for `multilabel` and `axis`). Targets equal to `ignore_index` do not
    count. Without `normalize`, how many are right.

    The result is float64 of the shape `[]`, equal to scikit-learn's
    `accuracy_score(targets, predictions)`. `ShapeError` for shapes that do not fit or no sample,
    `OptionError` for a `top_k` that there is not or weights that are all zero, `IndexRangeError`
    for a target beyond the classes, `NonFiniteError` for a NaN.

    >>> import retrograd as rg
    >>> rg.metrics.accuracy([0, 2, 1, 1], [0, 2, 1, 0]).item()
    0.75
    >>> rg.metrics.accuracy([[0.1, 0.5, 0.4]], [2], top_k=2).item()
    1.0
    """
    xp, (p, t, w) = given_once(predictions, targets, sample_weight)
    hit, w = _hits(xp, p, t, w, top_k, threshold, axis, multilabel, ignore_index)
    total = _total(xp, hit, w)
    right = xp.sum(hit if w is None else hit * w)
    if not normalize:
        return as_tensors(right)
    reject_zero_weights(xp, total)
    return as_tensors(right / total)


def _total(xp: Any, hit: Array, w: Array | None) -> Array:
    return xp.sum(xp.ones_like(hit) if w is None else w)


def _hits(
    xp: Any,
    predictions: Array,
    targets: Array,
    sample_weight: Array | None,
    top_k: int,
    threshold: float | None,
    axis: int,
    multilabel: bool | None,
    ignore_index: int | None,
) -> tuple[Array, Array | None]:
    """Whether each prediction is right, as floats, and the weights."""
    if multilabel is None:
        multilabel = ignore_index is None and is_indicator(xp, predictions, targets)
    if multilabel:
        p, t = indicators(xp, predictions, targets, threshold)
        return xp.all(p == t, axis=1).astype(xp.float64), weights_for(
            xp, sample_weight, p.shape[:1]
        )
    if top_k != 1:
        return _top_k_hits(xp, predictions, targets, sample_weight, top_k, axis, ignore_index)
    found = labelled(xp, predictions, targets, threshold, axis)
    if is_text(found.predictions) != is_text(found.targets):
        class_numbers(xp, found, None, None)  # which refuses them
    w = weights_for(xp, sample_weight, found.targets.shape)
    t = found.targets.reshape(-1)
    w = _without(xp, t, w, ignore_index)
    if found.classes is not None and xp is np and not is_text(t):
        in_range(t if ignore_index is None else t[t != ignore_index], found.classes, "targets")
    return (found.predictions.reshape(-1) == t).astype(xp.float64), w


def _without(xp: Any, t: Array, w: Array | None, ignore_index: int | None) -> Array | None:
    """The weights, 0 where the target is to be ignored."""
    if ignore_index is None:
        return w
    kept = (t != ignore_index).astype(xp.float64)
    return kept if w is None else kept * w


def _top_k_hits(
    xp: Any,
    predictions: Array,
    targets: Array,
    sample_weight: Array | None,
    k: int,
    axis: int,
    ignore_index: int | None = None,
    later_first: bool = False,
) -> tuple[Array, Array | None]:
    if not isinstance(k, int | np.integer) or k < 1:
        raise OptionError(f"top_k is a whole number of 1 or more, not {k!r}")
    if predictions.ndim != targets.ndim + 1:
        raise ShapeError(
            f"predictions of the shape {tuple(predictions.shape)} and targets of "
            f"{tuple(targets.shape)}: among the top {k} are classes with scores, so predictions "
            "have one more axis than targets, that of the classes"
        )
    # Labels are found in order that shapes are checked; they are not needed.
    found = labelled(xp, predictions, targets, None, axis)
    scores = xp.moveaxis(predictions, axis, -1)
    scores = scores.reshape(-1, scores.shape[-1])
    t = found.targets.reshape(-1)
    w = _without(xp, t, weights_for(xp, sample_weight, found.targets.shape), ignore_index)
    if ignore_index is not None:
        t = xp.where(t == ignore_index, 0, t)
    if xp is np:
        in_range(t, scores.shape[1], "targets")
    own = xp.take_along_axis(scores, t.reshape(-1, 1), axis=1)
    place = xp.arange(scores.shape[1]).reshape(1, -1)
    earlier = place > t.reshape(-1, 1) if later_first else place < t.reshape(-1, 1)
    above = (scores > own) | ((scores == own) & earlier)
    return (xp.sum(above.astype(xp.int64), axis=1) < k).astype(xp.float64), w


def top_k_accuracy(
    scores: Any,
    targets: Any,
    *,
    k: int = 2,
    labels: Sequence[Any] | None = None,
    normalize: bool = True,
    sample_weight: Any = None,
) -> Tensor:
    """The part of the samples whose class has one of the k greatest scores.

    `scores` are `[N, C]`, probabilities or logits, `targets` `[N]` labels: numbers from 0, or those
    of `labels`, which name the columns in ascending order. Of equal scores the later counts as
    greater, as in scikit-learn (in `accuracy(top_k=k)` the earlier one, as for `argmax`). Scores
    `[N]` are those of the second of two classes; its threshold is 0.5 if all are in [0, 1], else 0.

    The result is float64 of the shape `[]`, equal to scikit-learn's
    `top_k_accuracy_score(targets, scores)`. `ShapeError`, `OptionError`, `IndexRangeError` as
    `accuracy`.

    >>> import retrograd as rg
    >>> scores = [[0.5, 0.2, 0.2], [0.3, 0.4, 0.2], [0.2, 0.4, 0.3], [0.7, 0.2, 0.1]]
    >>> rg.metrics.top_k_accuracy(scores, [0, 1, 2, 2], k=2).item()
    0.75
    """
    xp, (p, t, w) = given_once(scores, targets, sample_weight)
    not_empty(p, "scores")
    not_empty(t, "targets")
    if is_text(p):
        raise DTypeError("scores are numbers, not texts")
    if not isinstance(k, int | np.integer) or k < 1:
        raise OptionError(f"k is a whole number of 1 or more, not {k!r}")
    t = _columns_named(xp, p, t, labels)
    if p.ndim == t.ndim and tuple(p.shape) != tuple(t.shape):
        raise ShapeError(
            f"scores have the shape {tuple(p.shape)}, targets {tuple(t.shape)}; make them equal"
        )
    if p.ndim == t.ndim and xp is np:
        reject_nan(np, p, "scores")
        threshold = 0.5 if p.min() >= 0 and p.max() <= 1 else 0.0
        hit = (p > threshold) == t if k == 1 else np.full(t.shape, True)
        hit, weights = hit.astype(np.float64), weights_for(np, w, t.shape)
    else:
        hit, weights = _top_k_hits(xp, p, t, w, k, -1, later_first=True)
    right = xp.sum(hit if weights is None else hit * weights)
    if not normalize:
        return as_tensors(right)
    total = _total(xp, hit, weights)
    reject_zero_weights(xp, total)
    return as_tensors(right / total)


def _columns_named(xp: Any, p: Array, t: Array, labels: Sequence[Any] | None) -> Array:
    """Targets as numbers of columns of scores."""
    classes = p.shape[-1] if p.ndim > t.ndim else 2
    if xp is not np:
        return t
    t = whole(np, t, "targets")
    if labels is None:
        if not is_text(t) and t.size and t.min() >= 0 and t.max() < classes:
            return t
        labels = np.unique(t).tolist()
    names = listed(labels)
    if len(names) != classes or not np.array_equal(names, np.unique(names)):
        raise OptionError(
            f"there are {classes} columns of scores, so labels are that many, ascending, not "
            f"{names.tolist()!r:.80}"
        )
    if len(odd := np.setdiff1d(t, names)):
        raise OptionError(f"targets hold {odd[0]!r}, which is none of the labels {names.tolist()}")
    return np.searchsorted(names, t)


def balanced_accuracy(
    predictions: Any,
    targets: Any,
    *,
    adjusted: bool = False,
    threshold: float | None = None,
    axis: int = -1,
    num_classes: int | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """The mean of the recall of all classes that are true of a sample; `adjusted` so that guessing
    is 0 and perfection 1.

    Predictions, targets and options as in `precision`. The result is float64 of the shape `[]`,
    equal to scikit-learn's `balanced_accuracy_score(targets, predictions)`. `ShapeError`,
    `OptionError`, `IndexRangeError` as `precision`.

    >>> import retrograd as rg
    >>> rg.metrics.balanced_accuracy([0, 1, 0, 0, 0, 1], [0, 1, 0, 0, 1, 0]).item()
    0.625
    """
    xp, (p, t, w) = given_once(predictions, targets, sample_weight)
    found = labelled(xp, p, t, threshold, axis)
    w = weights_for(xp, w, found.targets.shape)
    numbers = class_numbers(xp, found, None, checked_size(num_classes))[:3]
    return as_tensors(_balanced(xp, counts_of(xp, *numbers[:2], w, numbers[2]), adjusted))


def _balanced(xp: Any, counts: State, adjusted: bool) -> Array:
    there = (counts["actual"] != 0).astype(xp.float64)
    classes = xp.sum(there)
    score = ratio(
        xp, xp.sum(ratio(xp, counts["true_positives"], counts["actual"], 0.0)), classes, math.nan
    )
    if not adjusted:
        return score
    chance = ratio(xp, 1.0, classes, math.nan)
    return (score - chance) / (1 - chance)


# -- running -------------------------------------------------------------------------------------
class Accuracy(Metric):
    """`accuracy` over batches; `multilabel` has to be said.

    `ShapeError`, `OptionError`, `IndexRangeError` as `accuracy`; the result is of the shape `[]`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.Accuracy(top_k=2)
    >>> state = rg.jit(metric.step)(metric.init(), rg.tensor([[3.0, 2.0, 1.0]]), rg.tensor([1]))
    >>> metric.result(state).item()
    1.0
    """

    def __init__(
        self,
        *,
        top_k: int = 1,
        threshold: float | None = None,
        axis: int = -1,
        multilabel: bool = False,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(top_k, int | np.integer) or top_k < 1:
            raise OptionError(f"top_k is a whole number of 1 or more, not {top_k!r}")
        self.top_k = int(top_k)
        self.threshold = threshold
        self.axis = axis
        self.multilabel = bool(multilabel)
        self.ignore_index = ignore_index

    def empty(self, like: State | None = None) -> State:
        return {"right": np.zeros(()), "total": np.zeros(())}

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        options = (self.top_k, self.threshold, self.axis, self.multilabel, self.ignore_index)
        p, t, w = arrays
        hit, w = _hits(xp, p, t, w, *options)
        return {"right": xp.sum(hit if w is None else hit * w), "total": _total(xp, hit, w)}

    def value(self, xp: Any, state: State) -> Array:
        reject_nothing(xp, self, state["total"])
        return state["right"] / state["total"]


def reject_nothing(xp: Any, metric: Metric, total: Array) -> None:
    """Raise where the weights of all batches were zero; of the pure form's first state it is NaN,
    so that a result can always be asked for."""
    if xp is np and metric._state is not None:
        reject_zero_weights(np, total)


class TopKAccuracy(Accuracy):
    """`accuracy(top_k=k)` over batches of scores: `ShapeError` for labels, `OptionError` for a k
    below 1. The result is of the shape `[]`.

    >>> import retrograd as rg
    >>> rg.metrics.TopKAccuracy(2).update([[3.0, 2.0, 1.0]], [1]).compute().item()
    1.0
    """

    def __init__(self, k: int = 2, *, axis: int = -1, ignore_index: int | None = None) -> None:
        super().__init__(top_k=k, axis=axis, ignore_index=ignore_index)


class BalancedAccuracy(Metric):
    """`balanced_accuracy` over batches; the pure form needs `num_classes`.

    `ShapeError`, `OptionError`, `IndexRangeError` as `balanced_accuracy`; the result is of the
    shape `[]`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.BalancedAccuracy()
    >>> metric.update([0, 1, 0], [0, 1, 0]).update([0, 0, 1], [0, 1, 0]).compute().item()
    0.625
    """

    def __init__(
        self,
        *,
        num_classes: int | None = None,
        adjusted: bool = False,
        threshold: float | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__()
        self.num_classes = checked_size(num_classes)
        self.adjusted = bool(adjusted)
        self.threshold = threshold
        self.axis = axis

    def empty(self, like: State | None = None) -> State:
        size = number_of_classes(self, like, "true_positives")
        return dict.fromkeys(("true_positives", "actual"), np.zeros(size))

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        found = labelled(xp, arrays[0], arrays[1], self.threshold, self.axis)
        w = weights_for(xp, arrays[2], found.targets.shape)
        p, t, n = running_numbers(xp, found, self.num_classes)
        counts = counts_of(xp, p, t, w, n)
        return {k: counts[k] for k in ("true_positives", "actual")}

    def combine(self, xp: Any, a: State, b: State) -> State:
        return super().combine(xp, *of_one_size(xp, a, b))

    def value(self, xp: Any, state: State) -> Array:
        return _balanced(xp, state, self.adjusted)
