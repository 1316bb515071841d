"""How good probabilities are: log loss, Brier score, calibration error, perplexity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.memory_limit import check_new
from retrograd.metrics.arrays import (
    EPSILON,
    Array,
    as_tensors,
    count,
    floats,
    given_once,
    is_floating,
    is_text,
    log_softmax,
    not_empty,
    ratio,
    reject_zero_weights,
    weights_for,
)
from retrograd.metrics.labels import in_range, listed, whole
from retrograd.metrics.metric import Metric, State
from retrograd.tensor_type import Tensor

N_BINS = 15  # of calibration, as Guo et al. 2017 have them
NORMS = ("l1", "l2", "max")


# -- what is given -------------------------------------------------------------------------------
def _columns(
    xp: Any, p: Array, t: Array, labels: Sequence[Any] | None, what: str
) -> tuple[Array, Array]:
    """Numbers for each class, `[N, C]`, or for the positive one of two, `[N]`; and the numbers of
    the true classes, `[N]`."""
    if t.ndim == 2 and t.shape[1] == 1 and p.ndim <= 2 and tuple(p.shape) != tuple(t.shape):
        t = t.reshape(-1)
    if p.ndim == t.ndim + 1 and p.shape[-1] == 1:
        p = p[..., 0]
    not_empty(t, "targets")
    not_empty(p, what)
    if tuple(p.shape[: t.ndim]) != tuple(t.shape) or p.ndim > t.ndim + 1:
        raise ShapeError(
            f"{what} of the shape {tuple(p.shape)} and targets of {tuple(t.shape)}: for each "
            f"target there are {what} of all classes along a last axis, or one number, that of the "
            "positive class"
        )
    wide = floats(xp, p, what)
    t = whole(xp, t, "targets").reshape(-1)
    if wide.size == t.size:
        return wide.reshape(-1), _numbered(xp, t, 2, labels)
    classes = int(wide.shape[-1])
    return wide.reshape(-1, classes), _numbered(xp, t, classes, labels)


def _numbered(xp: Any, t: Array, classes: int, labels: Sequence[Any] | None) -> Array:
    """Targets as numbers of classes: those of `labels`; or as they are, from 0; or, if there are
    just as many labels as classes, in ascending order."""
    if xp is not np:
        return t
    present = np.unique(t)
    if labels is None:
        if not is_text(t) and present[0] >= 0 and present[-1] < classes:
            return t
        if classes == 2 and not is_text(t) and set(present.tolist()) <= {-1, 1}:
            return (t == 1).astype(np.int64)
        labels = present.tolist()
        if len(labels) != classes and not is_text(t):
            in_range(t, classes, "targets")
    names = listed(labels)
    if len(names) != classes or len(np.unique(names)) != len(names):
        raise OptionError(
            f"there are {classes} classes, so labels are that many, different, not "
            f"{names.tolist()!r:.80}; give labels=[...]"
        )
    if len(odd := np.setdiff1d(present, names)):
        raise OptionError(f"targets hold {odd[0]!r}, which is none of the labels {names.tolist()}")
    order = np.argsort(names)
    return order[np.searchsorted(names[order], t)]


def _probabilities(
    xp: Any, p: Array, t: Array, labels: Sequence[Any] | None
) -> tuple[Array, Array]:
    """`_columns` of probabilities."""
    p, t = _columns(xp, p, t, labels, "probabilities")
    if xp is np and (p.min() < 0 or p.max() > 1):
        raise OptionError(
            f"probabilities are between 0 and 1, not {p.min():.6g} to {p.max():.6g}; of logits "
            "take rg.softmax, or rg.sigmoid for the positive class, first"
        )
    return p, t


def _epsilon(xp: Any, p: Array) -> float:
    """The precision of the numbers that were given."""
    return float(rg.finfo(rg.asarray(p).dtype).eps) if is_floating(xp, p) else EPSILON


def _mean(xp: Any, loss: Array, w: Array | None, normalize: bool = True) -> Array:
    total = xp.sum(loss if w is None else loss * w)
    if not normalize:
        return total
    weight = xp.asarray(float(loss.shape[0])) if w is None else xp.sum(w)
    reject_zero_weights(xp, weight)
    return total / weight


# -- log loss ------------------------------------------------------------------------------------
def log_loss(
    probabilities: Any,
    targets: Any,
    *,
    labels: Sequence[Any] | None = None,
    from_logits: bool = False,
    normalize: bool = True,
    sample_weight: Any = None,
) -> Tensor:
    """The mean of `-log p` of the true class: cross-entropy of probabilities.

    `probabilities` are `[N, C]`, or `[N]` of the positive class; `targets` `[N]` are numbers from
    0, or labels whose classes, ascending, are the columns, or those of `labels`. Probabilities are
    clipped to `[eps, 1 - eps]` with the precision eps of their dtype; logits, `from_logits`, are
    not. Without `normalize` the sum.

    The result is float64 of the shape `[]`, equal to scikit-learn's
    `log_loss(targets, probabilities)`. `ShapeError` for shapes that do not fit or no sample,
    `OptionError` for numbers that are no probabilities or labels that are not there,
    `IndexRangeError` for a target beyond the classes, `NonFiniteError` for a NaN; a `UserWarning`
    for probabilities that do not add up to 1.

    >>> import retrograd as rg
    >>> round(rg.metrics.log_loss([[0.5, 0.5], [0.75, 0.25]], [0, 0]).item(), 6)
    0.490415
    """
    xp, (p, t, w) = given_once(probabilities, targets, sample_weight)
    loss = _log_losses(xp, p, t, labels, from_logits)
    return as_tensors(_mean(xp, loss, weights_for_rows(xp, w, t, loss), normalize))


def weights_for_rows(xp: Any, w: Array | None, t: Array, loss: Array) -> Array | None:
    """A weight for each target."""
    return weights_for(xp, w, tuple(t.shape) if t.ndim != 2 or t.shape[1] > 1 else loss.shape)


def _log_losses(
    xp: Any, p: Array, t: Array, labels: Sequence[Any] | None, from_logits: bool
) -> Array:
    """`-log p` of each true class."""
    if from_logits:
        x, t = _columns(xp, p, t, labels, "logits")
        if x.ndim == 1:
            return xp.logaddexp(xp.zeros_like(x), xp.where(t == 1, -x, x))
        return -_picked(xp, log_softmax(xp, x), t)
    eps = _epsilon(xp, p)
    p, t = _probabilities(xp, p, t, labels)
    if p.ndim == 1:
        p = xp.stack([1 - p, p], axis=1)
    elif xp is np and not np.allclose(p.sum(axis=1), 1, rtol=math.sqrt(eps), atol=0):
        warnings.warn(
            "probabilities of the classes do not add up to 1; are they logits?", stacklevel=4
        )
    return -xp.log(xp.clip(_picked(xp, p, t), eps, 1 - eps))


def _picked(xp: Any, rows: Array, t: Array) -> Array:
    """The element of each row that belongs to the true class."""
    return xp.take_along_axis(rows, t.reshape(-1, 1), axis=1)[:, 0]


# -- Brier score ---------------------------------------------------------------------------------
def brier_score(
    probabilities: Any,
    targets: Any,
    *,
    labels: Sequence[Any] | None = None,
    scale_by_half: bool | str = "auto",
    sample_weight: Any = None,
) -> Tensor:
    """The mean squared error of probabilities: `mean(sum_c (p_c - [t = c])²)`, halved for two
    classes ("auto"), so that it is `mean((p - t)²)` there, or always, or never.

    Arguments as in `log_loss`. The result is float64 of the shape `[]`, equal to scikit-learn's
    `brier_score_loss(targets, probabilities)`. `ShapeError`, `OptionError`, `IndexRangeError`,
    `NonFiniteError` as `log_loss`.

    >>> import retrograd as rg
    >>> rg.metrics.brier_score([0.1, 0.9, 0.8, 0.3], [0, 1, 1, 0]).item()
    0.0375
    """
    _check_half(scale_by_half)
    xp, (p, t, w) = given_once(probabilities, targets, sample_weight)
    loss = _brier_losses(xp, p, t, labels, scale_by_half)
    return as_tensors(_mean(xp, loss, weights_for_rows(xp, w, t, loss)))


def _check_half(scale_by_half: Any) -> None:
    if scale_by_half not in (True, False, "auto"):
        raise OptionError(f"scale_by_half is True, False or 'auto', not {scale_by_half!r}")


def _brier_losses(
    xp: Any, p: Array, t: Array, labels: Sequence[Any] | None, scale_by_half: bool | str
) -> Array:
    p, t = _probabilities(xp, p, t, labels)
    if p.ndim == 1:
        p = xp.stack([1 - p, p], axis=1)
    true = (t.reshape(-1, 1) == xp.arange(p.shape[1])).astype(xp.float64)
    halved = p.shape[1] < 3 if scale_by_half == "auto" else scale_by_half
    return xp.sum((p - true) ** 2, axis=1) * (0.5 if halved else 1.0)


# -- calibration ---------------------------------------------------------------------------------
def calibration_error(
    probabilities: Any,
    targets: Any,
    *,
    n_bins: int = N_BINS,
    norm: str = "l1",
    sample_weight: Any = None,
) -> Tensor:
    """How far confidence is from accuracy (Guo et al. 2017; Naeini et al. 2015).

    The confidence of a sample is the greatest of its probabilities `[N, C]`, and it is right where
    that is the true class; of `[N]` it is the probability of the positive class, right where the
    target is 1. Samples fall into `n_bins` bins of equal width, `[i / n, (i + 1) / n)`, the last
    one closed. With the share `s_b` of the samples in a bin, their mean confidence and accuracy:

    - `norm="l1"`: the expected calibration error, `ECE = sum_b s_b |acc_b - conf_b|`;
    - `norm="max"`: the maximum one, `MCE = max_b |acc_b - conf_b|` over bins that hold something;
    - `norm="l2"`: the root of the mean square, `sqrt(sum_b s_b (acc_b - conf_b)²)`.

    These are those of torchmetrics (which puts a confidence of 1 into a bin of its own) and netcal.
    The result is float64 of the shape `[]`. `OptionError` for a norm that there is not, fewer than
    one bin, or numbers that are no probabilities; `ShapeError`, `IndexRangeError`,
    `NonFiniteError` as `log_loss`.

    >>> import retrograd as rg
    >>> rg.metrics.calibration_error([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0], n_bins=2).item()
    0.25
    """
    _check_bins(n_bins, norm)
    xp, (p, t, w) = given_once(probabilities, targets, sample_weight)
    bins = _binned(xp, p, t, w, n_bins)
    reject_zero_weights(xp, xp.sum(bins["weight"]))
    return as_tensors(_calibration(xp, bins, norm))


def _check_bins(n_bins: Any, norm: Any = "l1") -> None:
    if norm not in NORMS:
        raise OptionError(f"norm={norm!r}; it is one of {', '.join(map(repr, NORMS))}")
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise OptionError(f"the number of bins is a whole number of 1 or more, not {n_bins!r}")
    check_new((int(n_bins),), 8, "a row of bins")


def bin_of(xp: Any, x: Array, n_bins: int) -> Array:
    """The bin of equal width over [0, 1] that each number falls into, the last one closed."""
    edges = xp.asarray(np.linspace(0, 1, n_bins + 1))
    return xp.clip(xp.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)


def _binned(xp: Any, p: Array, t: Array, w: Array | None, n_bins: int) -> State:
    shape = tuple(t.shape)
    p, t = _probabilities(xp, p, t, None)
    if p.ndim == 1:
        confidence, right = p, t.astype(xp.float64)
    else:
        confidence = xp.max(p, axis=1)
        right = (xp.argmax(p, axis=1) == t).astype(xp.float64)
    weight = weights_for(xp, w, shape)
    by = xp.ones_like(confidence) if weight is None else weight
    at = bin_of(xp, confidence, n_bins)
    parts = {"weight": by, "confidence": by * confidence, "right": by * right}
    return {k: count(xp, at, v, n_bins) for k, v in parts.items()}


def _calibration(xp: Any, bins: State, norm: str) -> Array:
    apart = xp.abs(ratio(xp, bins["right"] - bins["confidence"], bins["weight"], 0.0))
    if norm == "max":
        return xp.max(apart)
    share = bins["weight"] / xp.sum(bins["weight"])
    return xp.sum(share * apart) if norm == "l1" else xp.sqrt(xp.sum(share * apart**2))


# -- perplexity ----------------------------------------------------------------------------------
def perplexity(
    logits: Any, targets: Any, *, ignore_index: int | None = None, sample_weight: Any = None
) -> Tensor:
    """The exponential of the mean cross-entropy, `exp(mean(-log softmax(logits)[target]))`.

    `logits` are `[..., V]`, also logarithms of probabilities, `targets` `[...]` integers from 0.
    Targets equal to `ignore_index` do not count. The result is float64 of the shape `[]`.
    `ShapeError` for shapes that do not fit or no sample, `IndexRangeError` for a target beyond the
    vocabulary, `NonFiniteError` for a NaN, `OptionError` where nothing counts.

    >>> import retrograd as rg
    >>> round(rg.metrics.perplexity([[0.0, 0.0, 0.0, 0.0]] * 3, [0, 3, 1]).item(), 12)
    4.0
    """
    xp, (x, t, w) = given_once(logits, targets, sample_weight)
    sums = _surprise(xp, x, t, w, ignore_index)
    reject_zero_weights(xp, sums["weight"])
    return as_tensors(xp.exp(sums["sum"] / sums["weight"]))


def _surprise(
    xp: Any, x: Array, t: Array, sample_weight: Array | None, ignore_index: int | None
) -> State:
    """Sums of `-log p` and of weights."""
    not_empty(t, "targets")
    if x.ndim != t.ndim + 1 or tuple(x.shape[:-1]) != tuple(t.shape):
        raise ShapeError(
            f"logits of the shape {tuple(x.shape)} and targets of {tuple(t.shape)}: logits have "
            "one more axis, the last, that of the vocabulary"
        )
    w = weights_for(xp, sample_weight, tuple(t.shape))
    t = whole(xp, t, "targets").reshape(-1)
    w = xp.ones_like(t).astype(xp.float64) if w is None else w
    if ignore_index is not None:
        w = xp.where(t == ignore_index, 0.0, w)
        t = xp.where(t == ignore_index, 0, t)
    if xp is np:
        in_range(t, int(x.shape[-1]), "targets")
    rows = _logits(xp, x).reshape(-1, x.shape[-1])
    loss = -_picked(xp, log_softmax(xp, rows), t)
    return {"sum": xp.sum(xp.where(w == 0, 0.0, loss * w)), "weight": xp.sum(w)}


def _logits(xp: Any, x: Array) -> Array:
    """Logits in double precision; -inf, the logarithm of 0, is one."""
    if xp is not np:
        return x.astype(xp.float64)
    if is_text(x) or x.dtype.kind == "c":
        return floats(np, x, "logits")
    wide = x.astype(np.float64)
    floats(np, np.where(np.isneginf(wide), 0.0, wide), "logits")
    return wide


# -- running -------------------------------------------------------------------------------------
class LogLoss(Metric):
    """`log_loss` over batches.

    The result is of the shape `[]`. `ShapeError`, `OptionError`, `IndexRangeError`,
    `NonFiniteError` as `log_loss`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.LogLoss()
    >>> found = metric.update([[0.5, 0.5]], [0]).update([[0.75, 0.25]], [0]).compute()
    >>> round(found.item(), 6)
    0.490415
    """

    def __init__(self, *, labels: Sequence[Any] | None = None, from_logits: bool = False) -> None:
        super().__init__()
        self.labels = None if labels is None else tuple(labels)
        self.from_logits = bool(from_logits)

    def losses(self, xp: Any, p: Array, t: Array) -> Array:
        """The loss of each sample."""
        return _log_losses(xp, p, t, self.labels, self.from_logits)

    def empty(self, like: State | None = None) -> State:
        return {"sum": np.zeros(()), "weight": np.zeros(())}

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        p, t, w = arrays
        loss = self.losses(xp, p, t)
        by = weights_for_rows(xp, w, t, loss)
        by = xp.ones_like(loss) if by is None else by
        return {"sum": xp.sum(loss * by), "weight": xp.sum(by)}

    def value(self, xp: Any, state: State) -> Array:
        return ratio(xp, state["sum"], state["weight"], math.nan)


class BrierScore(LogLoss):
    """`brier_score` over batches.

    The result is of the shape `[]`. `ShapeError`, `OptionError`, `IndexRangeError`,
    `NonFiniteError` as `log_loss`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.BrierScore()
    >>> metric.update([0.1, 0.9], [0, 1]).update([0.8, 0.3], [1, 0]).compute().item()
    0.0375
    """

    def __init__(
        self, *, labels: Sequence[Any] | None = None, scale_by_half: bool | str = "auto"
    ) -> None:
        super().__init__(labels=labels)
        _check_half(scale_by_half)
        self.scale_by_half = scale_by_half

    def losses(self, xp: Any, p: Array, t: Array) -> Array:
        return _brier_losses(xp, p, t, self.labels, self.scale_by_half)


class CalibrationError(Metric):
    """`calibration_error` over batches.

    The result is of the shape `[]`. `ShapeError`, `OptionError`, `IndexRangeError`,
    `NonFiniteError` as `calibration_error`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.CalibrationError(n_bins=2, norm="max")
    >>> metric.update([0.25, 0.25], [0, 0]).update([0.75, 0.75], [1, 0]).compute().item()
    0.25
    """

    def __init__(self, *, n_bins: int = N_BINS, norm: str = "l1") -> None:
        super().__init__()
        _check_bins(n_bins, norm)
        self.n_bins = int(n_bins)
        self.norm = norm

    def empty(self, like: State | None = None) -> State:
        return dict.fromkeys(("weight", "confidence", "right"), np.zeros(self.n_bins))

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        p, t, w = arrays
        return _binned(xp, p, t, w, self.n_bins)

    def value(self, xp: Any, state: State) -> Array:
        return _calibration(xp, state, self.norm)


class Perplexity(Metric):
    """`perplexity` over batches, of all targets together.

    The result is of the shape `[]`. `ShapeError`, `OptionError`, `IndexRangeError`,
    `NonFiniteError` as `perplexity`.

    >>> import retrograd as rg
    >>> metric = rg.metrics.Perplexity()
    >>> round(metric.update([[0.0, 0.0]], [1]).update([[0.0, 0.0]], [0]).compute().item(), 12)
    2.0
    """

    def __init__(self, *, ignore_index: int | None = None) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def empty(self, like: State | None = None) -> State:
        return {"sum": np.zeros(()), "weight": np.zeros(())}

    def batch(self, xp: Any, *arrays: Array | None) -> State:
        x, t, w = arrays
        return _surprise(xp, x, t, w, self.ignore_index)

    def value(self, xp: Any, state: State) -> Array:
        return xp.exp(ratio(xp, state["sum"], state["weight"], math.nan))
