"""How often each class was predicted, was true, and both; and ratios of these, averaged over
classes as scikit-learn averages them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import OptionError
from retrograd.metrics.arrays import Array, count, is_text, ratio, weights_for
from retrograd.metrics.labels import (
    class_numbers,
    indicators,
    is_indicator,
    labelled,
    listed,
)
from retrograd.metrics.metric import Metric, State

# Numerator and denominator from true positives, predicted and actual positives.
Measure = Callable[[Array, Array, Array], tuple[Array, Array]]

AVERAGES = ("binary", "micro", "macro", "weighted", "samples", None)


def checked_average(average: Any, zero_division: Any, pos_label: Any = 1) -> float:
    """`zero_division` as a number; raises for options that there are not."""
    if average not in AVERAGES:
        raise OptionError(
            f"average={average!r}; it is one of {', '.join(map(repr, AVERAGES))}: 'binary' for the "
            "positive class alone, None for a value of each class"
        )
    if not isinstance(zero_division, int | float) or not (
        zero_division in (0, 1) or math.isnan(zero_division)
    ):
        raise OptionError(f"zero_division is 0, 1 or NaN, not {zero_division!r}")
    if average != "binary" and pos_label != 1:
        raise OptionError(
            f"pos_label={pos_label!r} counts for average='binary' alone, not for {average!r}; give "
            "labels=[...] for certain classes"
        )
    return float(zero_division)


def counts_of(xp: Any, p: Array, t: Array, w: Array | None, classes: int) -> State:
    """Counts of classes from labels that are numbers. `present` counts samples without weights:
    whether there is a class at all."""
    hit = p == t
    hits = hit.astype(xp.float64) if w is None else xp.where(hit, w, 0.0)
    return {
        "true_positives": count(xp, t, hits, classes),
        "predicted": count(xp, p, w, classes),
        "actual": count(xp, t, w, classes),
        "present": count(xp, p, None, classes) + count(xp, t, None, classes),
    }


def counts_of_indicators(xp: Any, p: Array, t: Array, w: Array | None) -> State:
    """The same of several labels of each sample, `[N, L]`; all labels count as present."""
    a, b = p.astype(xp.float64), t.astype(xp.float64)
    by = 1.0 if w is None else w.reshape(-1, 1)
    return {
        "true_positives": xp.sum(a * b * by, axis=0),
        "predicted": xp.sum(a * by, axis=0),
        "actual": xp.sum(b * by, axis=0),
        "present": xp.full((int(p.shape[1]),), 1.0),
    }


def averaged(
    xp: Any, counts: State, measure: Measure, average: str | None, zero: float, included: Array
) -> Array:
    """The measure, averaged over the classes that are `included`."""
    hits, predicted, actual = (counts[k] for k in ("true_positives", "predicted", "actual"))
    if average == "micro":
        hits, predicted, actual = (
            xp.sum(xp.where(included, x, 0.0)).reshape(1) for x in (hits, predicted, actual)
        )
        included = included[:1] | True
    values = ratio(xp, *measure(hits, predicted, actual), zero)
    if average is None:
        return values
    weights = actual if average == "weighted" else xp.ones_like(actual)
    return nan_average(xp, values, xp.where(included, weights, 0.0), included)


def nan_average(xp: Any, values: Array, weights: Array, included: Array) -> Array:
    """The weighted mean of what is included and no NaN; the plain one where all weights are zero;
    NaN of nothing."""
    valid = included & ~xp.isnan(values)
    values = xp.where(valid, values, 0.0)
    weights = xp.where(valid, weights, 0.0)
    total, number = xp.sum(weights), xp.sum(valid.astype(xp.float64))
    plain = ratio(xp, xp.sum(values), number, math.nan)
    return ratio(xp, xp.sum(values * weights), total, plain)


def per_sample(xp: Any, p: Array, t: Array, w: Array | None, measure: Measure, zero: float) -> Any:
    """Sums over samples of the measure of each one's labels, of the weights of these, and the same
    without weights."""
    a, b = p.astype(xp.float64), t.astype(xp.float64)
    hits, predicted, actual = (xp.sum(x, axis=1) for x in (a * b, a, b))
    values = ratio(xp, *measure(hits, predicted, actual), zero)
    valid = (~xp.isnan(values)).astype(xp.float64)
    values = xp.where(valid == 1, values, 0.0)
    weights = valid if w is None else xp.where(valid == 1, w, 0.0)
    return {
        "sum": xp.sum(values * weights),
        "weight": xp.sum(weights),
        "plain_sum": xp.sum(values),
        "number": xp.sum(valid),
    }


def mean_of_samples(xp: Any, sums: State) -> Array:
    """Their mean: the plain one where all weights are zero."""
    plain = ratio(xp, sums["plain_sum"], sums["number"], math.nan)
    return ratio(xp, sums["sum"], sums["weight"], plain)


def measured(
    measure: Measure,
    xp: Any,
    predictions: Array,
    targets: Array,
    sample_weight: Array | None,
    *,
    average: str | None,
    pos_label: Any,
    labels: Sequence[Any] | None,
    num_classes: int | None,
    zero_division: float,
    threshold: float | None,
    axis: int,
    multilabel: bool | None,
) -> Array:
    """The measure of one set of predictions."""
    zero = checked_average(average, zero_division, pos_label)
    if multilabel is None:
        multilabel = average == "samples" or is_indicator(xp, predictions, targets)
    if multilabel:
        p, t = indicators(xp, predictions, targets, threshold)
        p, t = _columns_of(p, t, labels)
        w = weights_for(xp, sample_weight, p.shape[:1])
        if average == "binary":
            raise OptionError(
                "targets have several labels, so average='binary' has no meaning; choose "
                f"{', '.join(map(repr, AVERAGES[1:]))}, or multilabel=False to count elements"
            )
        if average == "samples":
            return mean_of_samples(xp, per_sample(xp, p, t, w, measure, zero))
        counts = counts_of_indicators(xp, p, t, w)
        return averaged(xp, counts, measure, average, zero, counts["present"] > 0)
    if average == "samples":
        raise OptionError("average='samples' is for several labels of a sample, [N, L]")
    found = labelled(xp, predictions, targets, threshold, axis)
    w = weights_for(xp, sample_weight, found.targets.shape)
    if average == "binary":
        return _binary(xp, found, w, measure, zero, pos_label)
    p, t, n, first = class_numbers(xp, found, labels, checked_size(num_classes))
    counts = counts_of(xp, p, t, w, n)
    if first is not None and labels is not None:
        counts = {k: v[: len(first)] for k, v in counts.items()}
        included = np.full(len(first), True)
    else:
        included = counts["present"] > 0
    return averaged(xp, counts, measure, average, zero, included)


def _binary(xp: Any, found: Any, w: Array | None, measure: Measure, zero: float, pos: Any) -> Array:
    """The measure of the positive class of two."""
    if xp is not np:
        p, t, n, _ = class_numbers(xp, found, None, 2)
        if (found.classes or 2) != 2 or pos not in (0, 1):
            raise OptionError(
                "inside of jit average='binary' is for two classes, with pos_label 0 or 1"
            )
        counts = counts_of(xp, p, t, w, n)
        return averaged(xp, counts, measure, None, zero, counts["present"] > 0)[int(pos)]
    present = np.unique(np.concatenate([found.predictions.reshape(-1), found.targets.reshape(-1)]))
    if len(present) > 2 or (found.classes or 2) > 2:
        raise OptionError(
            f"there are {max(len(present), found.classes or 0)} classes, so average='binary' has "
            f"no meaning; choose {', '.join(map(repr, AVERAGES[1:4]))} or None"
        )
    if pos not in present and (len(present) == 2 or isinstance(pos, str) != is_text(present)):
        raise OptionError(
            f"pos_label={pos!r} is none of the labels {present.tolist()}; give the one that counts "
            "as positive"
        )
    p, t, n, _ = class_numbers(np, found, [pos], None)
    counts = {k: v[:1] for k, v in counts_of(np, p, t, w, n).items()}
    return averaged(np, counts, measure, None, zero, counts["present"] >= 0)[0]


def _columns_of(p: Array, t: Array, labels: Sequence[Any] | None) -> tuple[Array, Array]:
    if labels is None:
        return p, t
    columns = listed(labels).tolist()
    if any(type(c) is not int or not 0 <= c < p.shape[1] for c in columns):
        raise OptionError(f"labels are columns from 0 to {p.shape[1] - 1}, not {columns}")
    return p[:, columns], t[:, columns]


class ClassMetric(Metric):
    """A measure of classes, over batches. A subclass says which (`measure`)."""

    def __init__(
        self,
        *,
        average: str | None,
        num_classes: int | None,
        pos_label: int,
        zero_division: float,
        threshold: float | None,
        axis: int,
        multilabel: bool,
    ) -> None:
        super().__init__()
        zero = checked_average(average, zero_division, pos_label)
        self.average = average
        self.multilabel = multilabel or average == "samples"
        if self.multilabel and average == "binary":
            raise OptionError("average='binary' has no meaning for several labels of a sample")
        if average == "binary" and num_classes not in (None, 2):
            raise OptionError(
                f"average='binary' is for two classes, not {num_classes}; choose "
                f"{', '.join(map(repr, AVERAGES[1:4]))} or None"
            )
        if average == "binary" and pos_label not in (0, 1):
            raise OptionError(f"pos_label is 0 or 1, not {pos_label!r}")
        self.num_classes = 2 if average == "binary" else checked_size(num_classes)
        self.pos_label = int(pos_label)
        self.zero_division = zero
        self.threshold = threshold
        self.axis = axis

    def measure(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        """Numerator and denominator."""
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        found = super().options()  # NaN is not equal to itself
        return found | {"zero_division": str(self.zero_division)}

    def empty(self, like: State | None = None) -> State:
        if self.average == "samples":
            return dict.fromkeys(("sum", "weight", "plain_sum", "number"), np.zeros(()))
        size = number_of_classes(self, like, "true_positives")
        return dict.fromkeys(("true_positives", "predicted", "actual", "present"), np.zeros(size))

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        predictions, targets, sample_weight = arrays
        if self.multilabel:
            p, t = indicators(xp, predictions, targets, self.threshold)
            if self.num_classes not in (None, p.shape[1]):
                raise OptionError(f"{p.shape[1]} labels of a sample, with {self.options()}")
            w = weights_for(xp, sample_weight, p.shape[:1])
            if self.average == "samples":
                return per_sample(xp, p, t, w, self.measure, self.zero_division)
            return counts_of_indicators(xp, p, t, w)
        found = labelled(xp, predictions, targets, self.threshold, self.axis)
        w = weights_for(xp, sample_weight, found.targets.shape)
        p, t, n = running_numbers(xp, found, self.num_classes)
        return counts_of(xp, p, t, w, n)

    def combine(self, xp: Any, a: State, b: State) -> State:
        return super().combine(xp, *of_one_size(xp, a, b))

    def value(self, xp: Any, state: State) -> Array:
        if self.average == "samples":
            return mean_of_samples(xp, state)
        included = state["present"] > 0
        if self.average == "binary":
            values = averaged(xp, state, self.measure, None, self.zero_division, included)
            return values[self.pos_label]
        return averaged(xp, state, self.measure, self.average, self.zero_division, included)


def checked_size(num_classes: Any) -> int | None:
    """A number of classes."""
    if num_classes is None:
        return None
    if not isinstance(num_classes, int | np.integer) or num_classes < 1:
        raise OptionError(f"num_classes is a whole number of 1 or more, not {num_classes!r}")
    return int(num_classes)


def number_of_classes(metric: Any, like: State | None, key: str) -> int:
    """How many classes a state has room for."""
    if metric.num_classes is not None:
        return int(metric.num_classes)
    if like is not None and key in like and like[key].ndim:
        return len(like[key])
    raise OptionError(
        f"the state of {type(metric).__name__} has a fixed shape in the pure form: give num_classes"
    )


def running_numbers(xp: Any, found: Any, num_classes: int | None) -> tuple[Array, Array, int]:
    """Labels of a batch as numbers, and how many classes there are as far as it tells."""
    if num_classes is not None and found.classes is not None and found.classes > num_classes:
        raise OptionError(
            f"scores have {found.classes} classes, the metric num_classes={num_classes}; make them "
            "equal"
        )
    known = num_classes if num_classes is not None else found.classes
    if xp is np and known is None:
        p, t = found.predictions, found.targets
        if p.dtype.kind in "US" or t.dtype.kind in "US":
            raise OptionError("labels of running metrics are numbers from 0 on, not texts")
        known = max(int(p.max()), int(t.max()), 0) + 1
        if known > MOST_CLASSES:
            raise OptionError(
                f"the label {known - 1} would make that many classes; give num_classes if they "
                "are so many, or number the labels from 0 on"
            )
    p, t, n, _ = class_numbers(xp, found, None, known)
    return p, t, n


MOST_CLASSES = 1 << 20  # that labels may make; more are a mistake, unless they are announced


def of_one_size(xp: Any, a: State, b: State) -> tuple[State, State]:
    """Two states with room for as many classes as the larger one."""
    if xp is not np:
        return a, b
    size = max(max(x.shape, default=0) for part in (a, b) for x in part.values())
    grown = [
        {k: np.pad(x, [(0, size - n) for n in x.shape]) if x.ndim else x for k, x in part.items()}
        for part in (a, b)
    ]
    return grown[0], grown[1]
