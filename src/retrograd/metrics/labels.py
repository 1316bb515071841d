"""What predictions and targets of a classification say: labels, from labels or from scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import (
    DTypeError,
    IndexRangeError,
    NonFiniteError,
    OptionError,
    ShapeError,
)
from retrograd.metrics.arrays import Array, is_floating, is_text, not_empty

HALF = 0.5  # the probability from which on a class is predicted


@dataclass(frozen=True)
class Labelled:
    """Predicted and true labels of one shape; the number of classes, if scores told it."""

    predictions: Array
    targets: Array
    classes: int | None = None


def labelled(
    xp: Any, predictions: Array, targets: Array, threshold: float | None, axis: int = -1
) -> Labelled:
    """Labels from predictions of any form.

    Predictions with one axis more than the targets are scores of classes, be they probabilities or
    logits: the label is the position of the greatest along `axis`. Predictions of the targets'
    shape are labels, if they are integers, booleans, texts or whole floats; other floats are
    probabilities of the positive class, which is predicted above the threshold (0.5).
    """
    p, t = _columns(predictions, targets)
    not_empty(t, "targets")
    not_empty(p, "predictions")
    if p.ndim == t.ndim + 1:
        p = _scores(xp, p, t, axis)
        if p.shape[-1] > 1:
            return Labelled(xp.argmax(p, axis=-1), whole(xp, t, "targets"), int(p.shape[-1]))
        p = p[..., 0]
    if tuple(p.shape) != tuple(t.shape):
        raise ShapeError(
            f"predictions of the shape {tuple(p.shape)} and targets of {tuple(t.shape)}: "
            "predictions are labels or probabilities of the targets' shape, or scores with one "
            "more axis, that of the classes"
        )
    return Labelled(predicted(xp, p, threshold), whole(xp, t, "targets"))


def _columns(p: Array, t: Array) -> tuple[Array, Array]:
    """Columns `[N, 1]` beside vectors `[N]` or scores `[N, C]` count as vectors."""
    if t.ndim == 2 and t.shape[1] == 1 and p.ndim <= 2 and tuple(p.shape) != tuple(t.shape):
        t = t.reshape(-1)
    return p, t


def _scores(xp: Any, p: Array, t: Array, axis: int) -> Array:
    """Scores with the axis of classes last."""
    if not isinstance(axis, int) or not -p.ndim <= axis < p.ndim:
        raise ShapeError(f"axis={axis} of scores of the shape {tuple(p.shape)}: there is none")
    moved = p if axis % p.ndim == p.ndim - 1 else xp.moveaxis(p, axis, -1)
    if tuple(moved.shape[:-1]) != tuple(t.shape):
        hint = ""
        if p.ndim > 2 and (p.shape[0], *p.shape[2:]) == tuple(t.shape):
            hint = "; where classes are along the second axis, as in PyTorch, give axis=1"
        raise ShapeError(
            f"scores of the shape {tuple(p.shape)} and targets of {tuple(t.shape)}: without the "
            f"axis of the classes, which is {axis}, the shapes should be equal{hint}"
        )
    if is_text(moved):
        raise DTypeError("scores of classes are numbers, not texts")
    reject_nan(xp, moved, "scores")
    return moved


def predicted(xp: Any, p: Array, threshold: float | None) -> Array:
    """Labels from labels, or from the scores of one class."""
    if threshold is not None and not (isinstance(threshold, int | float) and threshold < math.inf):
        raise OptionError(f"threshold is a number, not {threshold!r}")
    if is_text(p) or not is_floating(xp, p):
        if threshold is not None and not is_text(p) and getattr(p.dtype, "kind", "") not in "b":
            return (p > threshold).astype(xp.int64)
        return whole(xp, p, "predictions")
    reject_nan(xp, p, "predictions")
    if threshold is None and xp is np:
        if (p == np.floor(p)).all():
            return whole(xp, p, "predictions")
        if p.min() < 0 or p.max() > 1:
            raise OptionError(
                f"predictions are floats from {float(p.min()):.6g} to {float(p.max()):.6g}, so "
                "neither labels nor probabilities: give threshold=0 if they are logits, or labels"
            )
    return (p > (HALF if threshold is None else threshold)).astype(xp.int64)


def whole(xp: Any, x: Array, what: str) -> Array:
    """Labels as texts or int64."""
    if is_text(x):
        return x
    if is_floating(xp, x):
        if xp is not np:
            raise DTypeError(f"{what} should be integers inside of jit, not {x.dtype}")
        reject_nan(xp, x, what)
        fits = (np.abs(x.astype(np.float64)) < 2.0**63) & (x == np.floor(x))
        if not fits.all():
            odd = x[~fits].flat[0]
            raise DTypeError(f"{what} are labels, which are whole numbers or texts, not {odd}")
    elif getattr(x.dtype, "kind", "") in ("c", "complex"):
        raise DTypeError(f"{what} are labels, which are whole numbers or texts, not {x.dtype}")
    return x.astype(xp.int64)


def reject_nan(xp: Any, x: Array, what: str) -> None:
    """Raise for a NaN, which is neither more nor less than anything."""
    if xp is np and is_floating(xp, x) and (odd := np.isnan(x)).any():
        raise NonFiniteError(
            f"{what} hold NaN at {np.argwhere(odd)[0].tolist()}; look for where it comes from with "
            "rg.debug(), or leave such samples out"
        )


def class_numbers(
    xp: Any, found: Labelled, labels: Sequence[Any] | None, num_classes: int | None
) -> tuple[Array, Array, int, Array | None]:
    """Predictions and targets as numbers from 0, flat; how many classes there are, and their labels
    (None: the numbers are the labels). Classes of `labels` come first, in their order."""
    p, t = found.predictions.reshape(-1), found.targets.reshape(-1)
    known = num_classes if num_classes is not None else found.classes
    if xp is not np:
        if known is None or labels is not None:
            raise OptionError(
                "inside of jit the number of classes has to be known: give num_classes, and labels "
                "that are numbers below it"
            )
        return p, t, known, None
    if is_text(p) != is_text(t):
        raise DTypeError(
            "predictions and targets should be labels of one kind, not texts and numbers"
        )
    if labels is None and known is not None and not is_text(t):
        in_range(t, known, "targets")
        in_range(p, known, "predictions")
        return p, t, known, None
    present = np.unique(np.concatenate([p, t]))
    first = present if labels is None else _listed(labels, present)
    order = np.concatenate([first, np.setdiff1d(present, first)])
    places = np.argsort(order, stable=True)
    ordered = order[places]
    numbers = [places[np.searchsorted(ordered, x)] for x in (p, t)]
    return numbers[0], numbers[1], len(order), first


def listed(labels: Any) -> Array:
    """A list of labels as an array."""
    first = np.asarray(labels)
    if first.ndim != 1 or not first.size or first.dtype.kind not in "biufUS":
        raise OptionError(f"labels should be a list of one or more labels, not {labels!r:.60}")
    return first


def _listed(labels: Any, present: Array) -> Array:
    first = listed(labels)
    if is_text(first) != is_text(present):
        raise DTypeError(f"labels are {labels!r:.60}, the data hold {present.tolist()!r:.60}")
    if len(np.unique(first)) != len(first):
        raise OptionError(f"labels should be different, not {labels!r:.60}")
    return first


def in_range(x: Array, classes: int, what: str) -> None:
    """Raise for a label that no class has."""
    if is_text(x):
        raise DTypeError(f"{what} are numbers of classes here, not texts")
    if x.size and (x.min() < 0 or x.max() >= classes):
        odd = x[(x < 0) | (x >= classes)][0]
        raise IndexRangeError(
            f"{what} hold the label {odd}; with {classes} classes, labels are 0 to {classes - 1}"
        )


def is_indicator(xp: Any, predictions: Array, targets: Array) -> bool:
    """Whether targets are rows of zeros and ones for several labels, as in scikit-learn: of two
    axes, more than one column, predictions of the same shape. Of what is traced nobody knows."""
    p, t = predictions, targets
    if xp is not np or t.ndim != 2 or t.shape[1] < 2 or p.shape != t.shape or is_text(t):
        return False
    return bool(((t == 0) | (t == 1)).all())


def indicators(
    xp: Any, predictions: Array, targets: Array, threshold: float | None
) -> tuple[Array, Array]:
    """Predictions and targets of several labels, `[N, L]`, as zeros and ones."""
    p, t = predictions, targets
    not_empty(t, "targets")
    if t.ndim != 2 or tuple(p.shape) != tuple(t.shape):
        raise ShapeError(
            f"predictions of the shape {tuple(p.shape)} and targets of {tuple(t.shape)}: for "
            "several labels of a sample both are [N, L]"
        )
    p, t = predicted(xp, p, threshold), whole(xp, t, "targets")
    if is_text(p) or is_text(t):
        raise DTypeError("several labels of a sample are given as zeros and ones, not as texts")
    if xp is np:
        in_range(p, 2, "predictions")
        in_range(t, 2, "targets")
    return p, t


def tensor_of_labels(labels: Array | None) -> Any:
    """Labels for a result; texts as they are."""
    return labels if labels is None or is_text(labels) else rg.asarray(labels)
