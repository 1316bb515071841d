"""How well scores rank positives above negatives: ROC and precision-recall curves, the areas under
them, average precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.metrics.arrays import (
    Array,
    as_tensors,
    floats,
    given_once,
    is_text,
    not_empty,
    ratio,
    weights_for,
)
from retrograd.metrics.labels import in_range, listed, whole
from retrograd.tensor_type import Tensor

Area = Callable[[Any, Array, Array, Array], Array]  # xp, scores, targets of 0 and 1, weights


# -- of two classes ------------------------------------------------------------------------------
def _binary_areas(xp: Any, s: Array, t: Array, w: Array) -> tuple[Array, Array]:
    """ROC AUC and average precision from weighted ranks. For each sample, `below` and `same` are
    the weights of negatives with smaller and with equal scores; `tp` and `fp` the weights of
    positives and negatives with scores at least as great:

    AUC = sum over positives of w (below + same / 2) / (W+ W-),
    AP = sum over positives of w tp / (tp + fp) / W+.
    """
    order = xp.argsort(s)
    ranked = s[order]
    positive, negative = w * t, w * (1.0 - t)
    first, last = _ties(xp, ranked)
    zero = xp.zeros((1,), dtype=xp.float64)
    to_here = [xp.concat([zero, xp.cumulative_sum(x[order])]) for x in (positive, negative)]
    totals = [x[-1] for x in to_here]
    own = positive[order]
    below, until = to_here[1][first], to_here[1][last]
    auc = ratio(xp, xp.sum(own * (below + until) / 2), totals[0] * totals[1], math.nan)
    tp, fp = totals[0] - to_here[0][first], totals[1] - below
    precise = ratio(xp, own * tp, tp + fp, 0.0)
    return auc, ratio(xp, xp.sum(precise), totals[0], 0.0)


def _ties(xp: Any, ranked: Array) -> tuple[Array, Array]:
    """Where in an ascending row the elements equal to each one begin, and where they have ended."""
    if xp is not np:
        return tuple(xp.searchsorted(ranked, ranked, side=side) for side in ("left", "right"))
    begins = np.append(True, ranked[1:] != ranked[:-1])
    starts = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    return starts[group], np.append(starts[1:], len(ranked))[group]


def binary_roc_auc(xp: Any, s: Array, t: Array, w: Array) -> Array:
    """The area under the ROC curve, NaN where there is only one class."""
    return _binary_areas(xp, s, t, w)[0]


def binary_average_precision(xp: Any, s: Array, t: Array, w: Array) -> Array:
    """Average precision, 0 where there is no positive."""
    return _binary_areas(xp, s, t, w)[1]


def binary_pr_auc(xp: Any, s: Array, t: Array, w: Array) -> Array:
    """The area under the precision-recall curve by trapezoids, for arrays of NumPy."""
    fps, tps, _ = _counts_by_threshold(s, t, w)
    precision, recall = _precision_recall(fps, tps)
    return -np.trapezoid(precision, recall)


def _counts_by_threshold(s: Array, t: Array, w: Array | None) -> tuple[Array, Array, Array]:
    """False and true positives for each distinct score as threshold, descending. Samples without
    weight are no thresholds, as in scikit-learn."""
    if w is not None:
        kept = w != 0
        s, t, w = s[kept], t[kept], w[kept]
    if not len(s):
        raise OptionError("all weights of samples are zero; give at least one a weight that is not")
    order = np.argsort(s, stable=True)[::-1]
    s, t = s[order], t[order]
    last = np.append(np.flatnonzero(np.diff(s)), len(s) - 1)
    if w is None:
        tps = np.cumsum(t)[last]
        return 1.0 + last - tps, tps, s[last]
    w = w[order]
    return np.cumsum((1 - t) * w)[last], np.cumsum(t * w)[last], s[last]


def _precision_recall(fps: Array, tps: Array) -> tuple[Array, Array]:
    precision = ratio(np, tps, tps + fps, 0.0)
    recall = np.ones_like(tps) if tps[-1] == 0 else tps / tps[-1]
    return np.append(precision[::-1], 1.0), np.append(recall[::-1], 0.0)


def _partial_auc(s: Array, t: Array, w: Array | None, max_fpr: float) -> Array:
    """The area up to a rate of false positives, scaled to 0.5 for chance and 1 (McClish 1989)."""
    fpr, tpr = _rates(*_counts_by_threshold(s, t, w)[:2])
    if np.isnan(fpr).any() or np.isnan(tpr).any():
        return np.asarray(math.nan)
    stop = np.searchsorted(fpr, max_fpr, side="right")
    end = np.interp(max_fpr, fpr[stop - 1 : stop + 1], tpr[stop - 1 : stop + 1])
    area = np.trapezoid(np.append(tpr[:stop], end), np.append(fpr[:stop], max_fpr))
    least = max_fpr**2 / 2
    return 0.5 * (1 + (area - least) / (max_fpr - least))


def _rates(fps: Array, tps: Array) -> tuple[Array, Array]:
    found = []
    for x in (fps, tps):
        counts = np.append(0.0, x)
        found.append(counts / x[-1] if x[-1] > 0 else np.full(len(counts), math.nan))
    return found[0], found[1]


# -- curves --------------------------------------------------------------------------------------
def _curve(scores: Any, targets: Any, pos_label: Any, sample_weight: Any) -> tuple[Any, ...]:
    xp, (s, t, w) = given_once(scores, targets, sample_weight)
    if xp is not np:
        raise OptionError(
            "a curve has as many points as there are distinct scores, which is not known inside of "
            "jit; compute it outside, or roc_auc and average_precision inside"
        )
    s, t, w = _vectors(np, s, t, w)
    return _counts_by_threshold(s, _positives(t, pos_label), w)


def _vectors(xp: Any, s: Array, t: Array, w: Array | None) -> tuple[Array, Array, Array | None]:
    """Scores of the positive class and labels, `[N]`."""
    if s.ndim == 2 and s.shape[1] == 1:
        s = s.reshape(-1)
    if t.ndim == 2 and t.shape[1] == 1:
        t = t.reshape(-1)
    not_empty(t, "targets")
    if t.ndim != 1 or tuple(s.shape) != tuple(t.shape):
        raise ShapeError(
            f"scores of the shape {tuple(s.shape)} and targets of {tuple(t.shape)}: of two classes "
            "both are [N], the scores those of the positive class"
        )
    return floats(xp, s, "scores"), whole(xp, t, "targets"), weights_for(xp, w, t.shape)


def _positives(t: Array, pos_label: Any) -> Array:
    """1.0 for the positive class, 0.0 for the other."""
    present = np.unique(t)
    if len(present) > 2:
        raise OptionError(
            f"targets hold the labels {present.tolist()!r:.80}; a curve is one of two classes. "
            "Compare one class with the rest: targets == label"
        )
    if pos_label is None:
        if is_text(t) or not set(present.tolist()) <= {-1, 0, 1}:
            raise OptionError(
                f"the labels are {present.tolist()!r:.80}: give pos_label, the one that counts as "
                "positive"
            )
        pos_label = 1
    elif len(present) == 2 and pos_label not in present:
        raise OptionError(f"pos_label={pos_label!r} is none of the labels {present.tolist()!r:.80}")
    return (t == pos_label).astype(np.float64)


def roc_curve(
    scores: Any,
    targets: Any,
    *,
    pos_label: Any = None,
    drop_intermediate: bool = True,
    sample_weight: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Rates of false and of true positives for each threshold, descending, and these; the first is
    infinite, where nothing is predicted to be positive.

    `scores` `[N]` are those of the positive class, `targets` `[N]` labels, of which `pos_label` is
    positive (1 by default). Without `drop_intermediate` points on straight lines are kept. The
    three results, float64, have one shape `[T]` and equal scikit-learn's
    `roc_curve(targets, scores)`. A rate of nothing is NaN. `ShapeError` for other shapes,
    `OptionError` for more than two classes, `NonFiniteError` for a NaN.

    >>> import retrograd as rg
    >>> fpr, tpr, thresholds = rg.metrics.roc_curve([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    fps, tps, thresholds = _curve(scores, targets, pos_label, sample_weight)
    if drop_intermediate and len(fps) > 2:
        bend = (np.diff(fps, 2) != 0) | (np.diff(tps, 2) != 0)
        kept = np.concatenate([[True], bend, [True]])
        fps, tps, thresholds = fps[kept], tps[kept], thresholds[kept]
    return as_tensors((*_rates(fps, tps), np.append(math.inf, thresholds)))


def precision_recall_curve(
    scores: Any,
    targets: Any,
    *,
    pos_label: Any = None,
    drop_intermediate: bool = False,
    sample_weight: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Precision and recall for each threshold, ascending, and these; the last point, precision 1 at
    recall 0, has no threshold.

    `scores` `[N]`, `targets` `[N]` and `pos_label` as in `roc_curve`. The results, float64, have
    the shapes `[T + 1]`, `[T + 1]` and `[T]` and equal scikit-learn's
    `precision_recall_curve(targets, scores)`. Without positives recall is 1. `ShapeError`,
    `OptionError`, `NonFiniteError` as `roc_curve`.

    >>> import retrograd as rg
    >>> precision, recall, _ = rg.metrics.precision_recall_curve([0.1, 0.4, 0.8], [0, 1, 1])
    >>> recall.tolist()
    [1.0, 1.0, 0.5, 0.0]
    """
    fps, tps, thresholds = _curve(scores, targets, pos_label, sample_weight)
    if drop_intermediate and len(fps) > 2:
        change = (np.diff(tps[:-1]) != 0) | (np.diff(tps[1:]) != 0)
        kept = np.concatenate([[True], change, [True]])
        fps, tps, thresholds = fps[kept], tps[kept], thresholds[kept]
    return as_tensors((*_precision_recall(fps, tps), thresholds[::-1].copy()))


# -- areas ---------------------------------------------------------------------------------------
def roc_auc(
    scores: Any,
    targets: Any,
    *,
    average: str | None = "macro",
    multi_class: str = "ovr",
    labels: Sequence[Any] | None = None,
    max_fpr: float | None = None,
    sample_weight: Any = None,
) -> Tensor:
    """The area under the ROC curve: how likely a positive has a greater score than a negative,
    where equal scores count half.

    Of two classes `scores` are `[N]`, any numbers that rank, or `[N, 2]`, of which the second
    column counts, and `targets` `[N]` are labels of which the greater is positive. Of C classes
    `scores` are `[N, C]`, and each class is compared with all others (`multi_class="ovr"`) or each
    with each ("ovo", Hand and Till 2001); the columns are those of `labels`, or of all labels there
    are, ascending, or else 0 to C - 1. Of several labels of a sample both are `[N, L]`. `average`
    is "macro", "weighted" (by how often classes are true), "micro" (all as one), "samples" or None
    (one for each class). With `max_fpr` the area up to it, scaled to 0.5 for chance.

    The result is float64 of the shape `[]`, or `[C]` with `average=None`; equal to scikit-learn's
    `roc_auc_score(targets, scores)`, whose `multi_class` has to be given, and is NaN, as there,
    where only one class occurs. Columns need not add up to 1 with "ovr". `ShapeError` for shapes
    that do not fit or no sample, `OptionError` for an option there is not, `NonFiniteError` for a
    NaN. Inside of `jit` labels are numbers from 0 on, and there is no "ovo" and no `max_fpr`.

    >>> import retrograd as rg
    >>> rg.metrics.roc_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).item()
    0.75
    """
    xp, (s, t, w) = given_once(scores, targets, sample_weight)
    if multi_class not in ("ovr", "ovo"):
        raise OptionError(f"multi_class is 'ovr' or 'ovo', not {multi_class!r}")
    if max_fpr is not None and not (isinstance(max_fpr, int | float) and 0 < max_fpr <= 1):
        raise OptionError(f"max_fpr is more than 0 and at most 1, not {max_fpr!r}")
    area = binary_roc_auc
    if max_fpr not in (None, 1):
        if xp is not np:
            raise OptionError("max_fpr cannot be given inside of jit")
        area = lambda xp, s, t, w: _partial_auc(s, t, w, float(max_fpr))  # noqa: E731
    kind, s, t, w = _problem(xp, s, t, w, labels)
    if kind == "classes":
        if max_fpr not in (None, 1):
            raise OptionError("max_fpr is for two classes")
        if multi_class == "ovo":
            return as_tensors(_each_with_each(xp, s, t, w, average))
    return as_tensors(_over_columns(xp, area, kind, s, t, w, average))


def average_precision(
    scores: Any,
    targets: Any,
    *,
    average: str | None = "macro",
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> Tensor:
    """Average precision, the area under the precision-recall curve by steps:
    `sum((R_n - R_(n-1)) P_n)` over the thresholds.

    `scores`, `targets` and `average` as in `roc_auc`; `pos_label` is the positive one of two
    labels. The result is float64 of the shape `[]`, or `[C]` with
    `average=None`, equal to scikit-learn's `average_precision_score(targets, scores)`: 0 where
    there is no positive. `ShapeError`, `OptionError`, `NonFiniteError` as `roc_auc`.

    >>> import retrograd as rg
    >>> rg.metrics.average_precision([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).item()
    0.8333333333333333
    """
    return _area_under_pr(
        binary_average_precision, scores, targets, average, pos_label, sample_weight
    )


def pr_auc(
    scores: Any,
    targets: Any,
    *,
    average: str | None = "macro",
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> Tensor:
    """The area under the precision-recall curve by trapezoids: more optimistic than
    `average_precision`, as between two points the curve is not a line.

    Arguments as `average_precision`. The result is float64 of the shape `[]`, or `[C]` with
    `average=None`; equal to scikit-learn's `auc(recall, precision)` of its
    `precision_recall_curve`. `ShapeError`, `OptionError`, `NonFiniteError` as `roc_auc`; no `jit`.

    >>> import retrograd as rg
    >>> rg.metrics.pr_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).item()
    0.7916666666666666
    """
    return _area_under_pr(binary_pr_auc, scores, targets, average, pos_label, sample_weight)


def _area_under_pr(
    area: Area, scores: Any, targets: Any, average: str | None, pos_label: Any, weights: Any
) -> Any:
    xp, (s, t, w) = given_once(scores, targets, weights)
    if xp is not np and area is binary_pr_auc:
        raise OptionError("pr_auc cannot be computed inside of jit; average_precision can")
    kind, s, t, w = _problem(xp, s, t, w, None, pos_label)
    return as_tensors(_over_columns(xp, area, kind, s, t, w, average))


# -- of several classes --------------------------------------------------------------------------
def _problem(
    xp: Any,
    s: Array,
    t: Array,
    w: Array | None,
    labels: Sequence[Any] | None,
    pos_label: Any = None,
) -> tuple[str, Array, Array, Array | None]:
    """What is asked: of two classes, of several, or of several labels of a sample; scores, targets
    as zeros and ones with a column for each class, and weights."""
    if s.ndim == 2 and t.ndim == 2 and t.shape[1] > 1:
        if tuple(s.shape) != tuple(t.shape):
            raise ShapeError(
                f"scores of the shape {tuple(s.shape)} and targets of {tuple(t.shape)}: for "
                "several labels of a sample both are [N, L]"
            )
        not_empty(t, "targets")
        t = whole(xp, t, "targets")
        if is_text(t):
            raise DTypeError("several labels of a sample are given as zeros and ones, not as texts")
        if xp is np:
            in_range(t, 2, "targets")
        weights = weights_for(xp, w, t.shape[:1])
        return "labels", floats(xp, s, "scores"), t.astype(xp.float64), weights
    if s.ndim == 2 and s.shape[1] == 2 and t.ndim == 1:
        s = s[:, 1]
    if s.ndim < 2 or s.shape[1] == 1:
        s, t, w = _vectors(xp, s, t, w)
        if xp is not np:
            return "binary", s, t.astype(xp.float64), w
        return "binary", s, _greater(t) if pos_label is None else _positives(t, pos_label), w
    if t.ndim == 2 and t.shape[1] == 1:
        t = t.reshape(-1)
    if s.ndim != 2 or t.ndim != 1 or s.shape[0] != t.shape[0]:
        raise ShapeError(
            f"scores of the shape {tuple(s.shape)} and targets of {tuple(t.shape)}: scores are [N] "
            "or [N, C], targets [N]"
        )
    not_empty(t, "targets")
    t = _columns(xp, whole(xp, t, "targets"), int(s.shape[1]), labels)
    each = (t.reshape(-1, 1) == xp.arange(s.shape[1])).astype(xp.float64)
    return "classes", floats(xp, s, "scores"), each, weights_for(xp, w, t.shape)


def _greater(t: Array) -> Array:
    """1.0 for the greater of two labels; of 0 and 1 alone the number itself."""
    present = np.unique(t)
    if len(present) > 2:
        raise OptionError(
            f"targets hold the labels {present.tolist()!r:.80}: of more than two classes scores "
            "have a column for each, [N, C]"
        )
    if len(present) == 1 and not is_text(t):
        return (t > 0).astype(np.float64)
    return (t == present[-1]).astype(np.float64)


def _columns(xp: Any, t: Array, classes: int, labels: Sequence[Any] | None) -> Array:
    """Targets as numbers of the columns of scores."""
    if xp is not np:
        return t
    present = np.unique(t)
    if labels is None:
        if not is_text(t) and present[0] >= 0 and present[-1] < classes:
            return t
        labels = present.tolist()
    names = listed(labels)
    if len(names) != classes or not np.array_equal(names, np.unique(names)):
        raise OptionError(
            f"scores have {classes} columns, so there are that many labels, ascending and "
            f"different, not {names.tolist()!r:.80}; give labels"
        )
    if len(odd := np.setdiff1d(present, names)):
        raise OptionError(f"targets hold {odd[0]!r}, which is none of the labels {names.tolist()}")
    return np.searchsorted(names, t)


def _over_columns(
    xp: Any, area: Area, kind: str, s: Array, t: Array, w: Array | None, average: str | None
) -> Array:
    """The area of each column, and their mean."""
    ones = xp.ones((s.shape[0],), dtype=xp.float64) if w is None else w
    known = ("macro", "weighted", "micro", *(("samples",) if kind == "labels" else ()), None)
    if kind == "binary":
        return area(xp, s, t, ones)
    if average not in known:
        raise OptionError(f"average={average!r}; here it is one of {', '.join(map(repr, known))}")
    if average == "micro":
        each = xp.broadcast_to(ones.reshape(-1, 1), s.shape).reshape(-1)
        return area(xp, s.reshape(-1), t.reshape(-1), each)
    if average == "samples":
        return _over_samples(xp, area, s, t, ones)
    columns = range(s.shape[1])
    values = xp.stack([area(xp, s[:, c], t[:, c], ones) for c in columns])
    if average is None:
        return values
    if average == "macro":
        return xp.mean(values)
    weights = xp.sum(t * ones.reshape(-1, 1), axis=0)
    values = xp.where(weights == 0, 0.0, values)
    return ratio(xp, xp.sum(values * weights), xp.sum(weights), 0.0)


def _over_samples(xp: Any, area: Area, s: Array, t: Array, w: Array) -> Array:
    """The mean over samples of the area of each one's labels."""
    ones = xp.ones((s.shape[1],), dtype=xp.float64)
    if xp is not np:
        raise OptionError("average='samples' cannot be computed inside of jit")
    values = np.stack([area(xp, *row, ones) for row in zip(s, t, strict=True)])
    return np.average(np.where(w == 0, 0.0, values), weights=w)


def _each_with_each(xp: Any, s: Array, t: Array, w: Array | None, average: str | None) -> Array:
    """The mean over pairs of classes of how well each of the two is told from the other."""
    if xp is not np:
        raise OptionError("multi_class='ovo' cannot be computed inside of jit; 'ovr' can")
    if w is not None:
        raise OptionError("multi_class='ovo' takes no sample_weight; 'ovr' does")
    if average not in ("macro", "weighted"):
        raise OptionError(
            f"with multi_class='ovo' average is 'macro' or 'weighted', not {average!r}"
        )
    values, shares = [], []
    for a, b in combinations(np.flatnonzero(t.sum(axis=0)), 2):
        both = (t[:, a] + t[:, b]) > 0
        ones = np.ones(int(both.sum()))
        pair = [binary_roc_auc(np, s[both, c], t[both, c], ones) for c in (a, b)]
        values.append((pair[0] + pair[1]) / 2)
        shares.append(both.mean())
    if not values:
        return np.asarray(math.nan)
    return np.average(values, weights=shares if average == "weighted" else None)
