"""Areas under curves over batches: exact, from all scores that were seen, or from histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import FormatError, OptionError, ShapeError
from retrograd.metrics import ranking
from retrograd.metrics.arrays import Array, count, floats, not_empty, ratio, weights_for
from retrograd.metrics.labels import in_range, whole
from retrograd.metrics.metric import Metric, State
from retrograd.metrics.probabilities import bin_of


class _Area(Metric):
    """All scores, targets and weights that were seen; or, with `bins`, how many positives and
    negatives of each column of scores fell into each bin."""

    def __init__(self, average: str | None, bins: int | None, num_classes: int | None) -> None:
        self._parts: list[State] = []
        super().__init__()
        if average not in ("macro", "weighted", "micro", "samples", None):
            raise OptionError(
                f"average={average!r}; it is 'macro', 'weighted', 'micro', 'samples' or None"
            )
        if bins is not None and (not isinstance(bins, int) or bins < 2):
            raise OptionError(f"bins is a whole number of 2 or more, or None, not {bins!r}")
        if bins is not None and average in ("micro", "samples"):
            raise OptionError(f"with bins average is 'macro', 'weighted' or None, not {average!r}")
        self.average = average
        self.bins = bins
        self.num_classes = num_classes

    # What is stored grows by a part for each batch, and is joined when it is needed.
    @property
    def _state(self) -> State | None:
        if len(self._parts) > 1:
            first = self._parts[0]
            joined = {k: np.concatenate([p[k] for p in self._parts]) for k in first}
            self._parts = [joined]
        return self._parts[0] if self._parts else None

    @_state.setter
    def _state(self, state: State | None) -> None:
        self._parts = [] if state is None else [state]

    def _take(self, part: State) -> None:
        if self.bins is not None:
            super()._take(part)
            return
        if self._parts:
            self._reject_other(self._parts[0], part)
        self._parts = [*self._parts, part] if self._parts else [part]

    def _reject_other(self, old: State, new: State) -> None:
        for key in ("scores", "targets"):
            if old[key].shape[1:] != new[key].shape[1:]:
                raise ShapeError(
                    f"{type(self).__name__} has seen {key} of {old[key].shape[1:]} for each sample,"
                    f" and now of {new[key].shape[1:]}; they should be alike"
                )

    def empty(self, like: State | None = None) -> State:
        if self.bins is None:
            raise OptionError(
                f"{type(self).__name__} keeps all scores, so that its state has no fixed shape: "
                "give bins=1000, say, for the pure form, whose area is that of histograms"
            )
        size = (self.num_classes or 1, self.bins)
        if like is not None and self.num_classes is None and np.ndim(like.get("positives", 0)) == 2:
            size = (len(like["positives"]), self.bins)
        return dict.fromkeys(("positives", "negatives"), np.zeros(size))

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        s, t, w = arrays
        if self.bins is None:
            return _stored(s, t, w)
        return _histograms(xp, s, t, w, self.bins, self.num_classes)

    def combine(self, xp: Any, a: State, b: State) -> State:
        if np.shape(a["positives"]) != np.shape(b["positives"]):
            raise ShapeError(
                f"{type(self).__name__} has seen {np.shape(a['positives'])[0]} columns of scores, "
                f"and now {np.shape(b['positives'])[0]}; give num_classes, and as many always"
            )
        return super().combine(xp, a, b)

    def _check_loaded(self, loaded: State) -> None:
        if self.bins is not None:
            super()._check_loaded(loaded)
            return
        lengths = {np.shape(v)[:1] for v in loaded.values()}
        if loaded.keys() != {"scores", "targets", "weights"} or len(lengths) != 1 or () in lengths:
            raise FormatError(f"{type(self).__name__}: its state holds scores, targets and weights")

    def exact(self, scores: Array, targets: Array, weights: Array | None) -> Any:
        """The area of all that was seen."""
        raise NotImplementedError

    def of_columns(self, xp: Any, positives: Array, negatives: Array) -> Array:
        """The areas of columns of histograms, `[C, B]`."""
        raise NotImplementedError

    def value(self, xp: Any, state: State) -> Any:
        if self.bins is None:
            w = state["weights"]
            return self.exact(state["scores"], state["targets"], None if (w == 1).all() else w)
        areas = self.of_columns(xp, state["positives"], state["negatives"])
        if areas.shape[0] == 1:
            return areas[0]
        if self.average is None:
            return areas
        if self.average == "macro":
            return xp.mean(areas)
        weights = xp.sum(state["positives"], axis=1)
        areas = xp.where(weights == 0, 0.0, areas)
        return ratio(xp, xp.sum(areas * weights), xp.sum(weights), 0.0)


def _stored(s: Array, t: Array, w: Array | None) -> State:
    """A batch as it is kept."""
    if t.ndim == 2 and t.shape[1] == 1:
        t = t.reshape(-1)
    if s.ndim == 2 and s.shape[1] == 1:
        s = s.reshape(-1)
    not_empty(t, "targets")
    if s.ndim > 2 or t.ndim > 2 or s.shape[:1] != t.shape[:1] or t.ndim > s.ndim:
        raise ShapeError(
            f"scores of the shape {tuple(s.shape)} and targets of {tuple(t.shape)}: scores are [N] "
            "or [N, C], targets [N], or [N, C] of zeros and ones"
        )
    weights = weights_for(np, w, t.shape[:1])
    return {
        "scores": floats(np, s, "scores"),
        "targets": whole(np, t, "targets"),
        "weights": np.ones(len(t)) if weights is None else weights,
    }


def _histograms(
    xp: Any, s: Array, t: Array, w: Array | None, bins: int, num_classes: int | None
) -> State:
    if s.ndim == 2 and s.shape[1] == 1:
        s = s.reshape(-1)
    not_empty(t, "targets")
    if s.ndim > 2 or s.shape[0] != t.shape[0] or (t.ndim > 1 and tuple(t.shape) != tuple(s.shape)):
        raise ShapeError(
            f"scores of the shape {tuple(s.shape)} and targets of {tuple(t.shape)}: scores are [N] "
            "or [N, C], targets [N], or [N, C] of zeros and ones"
        )
    s, t = floats(xp, s, "scores"), whole(xp, t, "targets")
    if xp is np and (s.min() < 0 or s.max() > 1):
        raise OptionError(
            f"with bins scores are probabilities, between 0 and 1, not {s.min():.6g} to "
            f"{s.max():.6g}; take rg.sigmoid or rg.softmax of logits"
        )
    columns = 1 if s.ndim == 1 else int(s.shape[1])
    if num_classes not in (None, columns):
        raise OptionError(f"scores have {columns} columns, the metric num_classes={num_classes}")
    if xp is np:
        in_range(t, 2 if s.ndim == 1 or t.ndim == 2 else columns, "targets")
    weights = weights_for(xp, w, tuple(t.shape[:1]))
    by = (xp.ones((s.shape[0],), dtype=xp.float64) if weights is None else weights).reshape(-1, 1)
    s = s.reshape(-1, columns)
    if t.ndim == 1 and columns > 1:
        true = (t.reshape(-1, 1) == xp.arange(columns)).astype(xp.float64)
    else:
        true = t.reshape(-1, columns).astype(xp.float64)
    at = (bin_of(xp, s, bins) + xp.arange(columns) * bins).reshape(-1)
    parts = {"positives": true * by, "negatives": (1.0 - true) * by}
    return {
        k: count(xp, at, v.reshape(-1), columns * bins).reshape(columns, bins)
        for k, v in parts.items()
    }


class ROCAUC(_Area):
    """`roc_auc` over batches: exact, of all scores, which are kept; or with `bins` of histograms
    over [0, 1], in a state of a fixed size, as the pure form needs.

    Scores in one bin count as equal. So what a histogram gives is off by at most
    `sum_b p_b n_b / (2 P N)`, with the positives p and negatives n of a bin, and of all.
    Histograms take scores of the positive class `[N]`, or of `num_classes` columns `[N, C]`.

    The result is float64 of the shape `[]`, or `[C]` with `average=None`. `ShapeError`,
    `OptionError`, `NonFiniteError` as `roc_auc`; `OptionError` for scores outside of [0, 1] with
    `bins`, and by `init()` without.

    >>> import retrograd as rg
    >>> metric = rg.metrics.ROCAUC()
    >>> metric.update([0.1, 0.4], [0, 0]).update([0.35, 0.8], [1, 1]).compute().item()
    0.75
    """

    def __init__(
        self,
        *,
        average: str | None = "macro",
        multi_class: str = "ovr",
        labels: Sequence[Any] | None = None,
        max_fpr: float | None = None,
        bins: int | None = None,
        num_classes: int | None = None,
    ) -> None:
        super().__init__(average, bins, num_classes)
        if bins is not None and (multi_class != "ovr" or labels is not None or max_fpr):
            raise OptionError("with bins there is no 'ovo', no labels and no max_fpr")
        if multi_class not in ("ovr", "ovo"):
            raise OptionError(f"multi_class is 'ovr' or 'ovo', not {multi_class!r}")
        self.multi_class = multi_class
        self.labels = None if labels is None else tuple(labels)
        self.max_fpr = max_fpr

    def exact(self, scores: Array, targets: Array, weights: Array | None) -> Any:
        return ranking.roc_auc(
            scores,
            targets,
            average=self.average,
            multi_class=self.multi_class,
            labels=self.labels,
            max_fpr=self.max_fpr,
            sample_weight=weights,
        )

    def of_columns(self, xp: Any, positives: Array, negatives: Array) -> Array:
        below = xp.cumulative_sum(negatives, axis=1) - negatives
        pairs = xp.sum(positives, axis=1) * xp.sum(negatives, axis=1)
        return ratio(xp, xp.sum(positives * (below + negatives / 2), axis=1), pairs, math.nan)


class AveragePrecision(_Area):
    """`average_precision` over batches: exact, of all scores, which are kept; or with `bins` of
    histograms over [0, 1], as `ROCAUC` has them: thresholds are the edges of bins alone.

    The result is float64 of the shape `[]`, or `[C]` with `average=None`. `ShapeError`,
    `OptionError`, `NonFiniteError` as `average_precision` and `ROCAUC`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.AveragePrecision()
    >>> metric.update([0.1, 0.4], [0, 0]).update([0.35, 0.8], [1, 1]).compute().item()
    0.8333333333333333
    """

    def __init__(
        self,
        *,
        average: str | None = "macro",
        pos_label: Any = 1,
        bins: int | None = None,
        num_classes: int | None = None,
    ) -> None:
        super().__init__(average, bins, num_classes)
        if bins is not None and pos_label != 1:
            raise OptionError("with bins the positive label is 1")
        self.pos_label = pos_label

    def exact(self, scores: Array, targets: Array, weights: Array | None) -> Any:
        return ranking.average_precision(
            scores,
            targets,
            average=self.average,
            pos_label=self.pos_label,
            sample_weight=weights,
        )

    def of_columns(self, xp: Any, positives: Array, negatives: Array) -> Array:
        tp, fp = (
            xp.sum(x, axis=1, keepdims=True) - xp.cumulative_sum(x, axis=1) + x
            for x in (positives, negatives)
        )
        precise = ratio(xp, tp, tp + fp, 0.0)
        return ratio(xp, xp.sum(positives * precise, axis=1), xp.sum(positives, axis=1), 0.0)
