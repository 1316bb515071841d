"""Losses for few positives among many negatives: focal, Dice and Tversky."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.eager.dispatch import composite
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.indexing import rows_from_front
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.functional.losses import (
    as_floats,
    binary_cross_entropy_with_logits,
    class_weight,
    classes_of,
    pair,
    picked,
    reduced,
)


@composite
def sigmoid_focal_loss(
    input: Any, target: Any, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "none"
) -> Tensor:
    """`-a (1 - p)**gamma log p` for logits, where p is the probability of what is true (Lin et al.,
    arXiv:1708.02002): `sigmoid(x)` where the target is 1, `1 - sigmoid(x)` where it is 0; a is
    alpha and `1 - alpha`, or 1 for a negative alpha. It is torchvision's function of that name,
    with its defaults: each element is returned. Targets between 0 and 1 are mixed linearly.

    Input and target are of one shape, the result is of that shape, or `[]` with another
    `reduction`. `OptionError` for a `reduction` other than "none", "mean" and "sum", an alpha above
    1 and a negative gamma, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.sigmoid_focal_loss([0.0, 0.0], [1.0, 0.0]).tolist()
    [0.0433, 0.13]
    """
    x, t = pair(input, target, "sigmoid_focal_loss")
    _check_gamma("sigmoid_focal_loss", gamma)
    if not alpha <= 1:
        raise OptionError(f"sigmoid_focal_loss: alpha is at most 1, not {alpha}")
    p = rg.sigmoid(x)
    wrong = p * (1 - t) + (1 - p) * t
    loss = binary_cross_entropy_with_logits(x, t, reduction="none") * _power(wrong, gamma)
    if alpha >= 0:
        loss = loss * (alpha * t + (1 - alpha) * (1 - t))
    return reduced(loss, reduction)


@composite
def focal_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    gamma: float = 2.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """`-weight[t] (1 - p)**gamma log p` where `p = softmax(input)[t]`, classes along axis 1, or
    axis 0 of a vector of logits (Lin et al., arXiv:1708.02002). With `gamma=0` it is
    `cross_entropy`, whose mean, by the weights of the targets, it has. For two classes by one logit
    there is `sigmoid_focal_loss`.

    `[N, C, ...]` with classes `[N, ...]` to `[]`, or `[N, ...]` with `reduction="none"`; weight
    `[C]`. `OptionError` for another `reduction` and a negative gamma, `DTypeError` for targets that
    are no integers, `ShapeError` where the shapes do not fit, `IndexRangeError` for a class that
    there is not.

    >>> import retrograd as rg
    >>> rg.nn.functional.focal_loss([[0.0, 0.0]], [1]).item()
    0.1733
    """
    x, t = as_floats(input), rg.asarray(target)
    _check_gamma("focal_loss", gamma)
    axis = classes_of(x, t, "focal_loss")
    counts = t != ignore_index
    at = rg.where(counts, t, 0)
    logp = picked(rg.log_softmax(x, axis=axis), at, axis)
    weights = counts.astype(x.dtype)
    w = class_weight(weight, x, axis)
    if w is not None:
        weights = rg.where(counts, picked(rg.broadcast_to(w, x.shape), at, axis), 0.0)
    loss = rg.where(counts, -logp * _power(-rg.expm1(logp), gamma) * weights, 0.0)
    if reduction == "mean":
        return loss.sum() / weights.sum()
    return reduced(loss, reduction)


def _check_gamma(what: str, gamma: float) -> None:
    if not gamma >= 0:
        raise OptionError(f"{what}: gamma is not negative, not {gamma}")


def _power(x: Tensor, gamma: float) -> Tensor:
    """`x**gamma` of x from 0 to 1, whose slope counts as 0 at 0, where what it multiplies is 0."""
    if gamma == 0:
        return rg.ones_like(x)
    if gamma >= 2:
        return x**gamma
    inside = x > 0
    return rg.where(inside, rg.where(inside, x, 1.0) ** gamma, 0.0)


@composite
def dice_loss(
    input: Any,
    target: Any,
    smooth: float = 1e-6,
    dim: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth)`, one minus the Dice coefficient, for
    probabilities p (Milletari et al., arXiv:1606.04797, without their squares): `tversky_loss` with
    `alpha = beta = 1/2`, whose shapes, axes and errors it has; `smooth` counts twice there.

    `[N, ...]` with targets `[N, ...]`, or `[N, C, ...]` with classes `[N, ...]`, to `[]`.
    `OptionError` for another `reduction`, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.dice_loss([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]).item()
    0.3333
    """
    return tversky_loss(input, target, 0.5, 0.5, smooth / 2, dim, reduction)


@composite
def tversky_loss(
    input: Any,
    target: Any,
    alpha: float = 0.5,
    beta: float = 0.5,
    smooth: float = 1e-6,
    dim: Any = None,
    reduction: str = "mean",
    gamma: float = 1.0,
) -> Tensor:
    """`(1 - T)**gamma`, `T = (TP + smooth) / (TP + alpha FP + beta FN + smooth)`, for probabilities
    p and targets t, where `TP = sum(p t)`, `FP = sum(p (1 - t))`, `FN = sum((1 - p) t)` (Salehi et
    al., arXiv:1706.05721; with `gamma` Abraham, Khan, arXiv:1810.07842).

    The input holds probabilities: apply `sigmoid` or `softmax` to logits first. The target has its
    shape, or holds classes `[N, ...]` for an input `[N, C, ...]`. Sums are over the axes `dim`; by
    default over all but the first, so that there is one number for each sample, and of classes over
    all but the first two, so that there is one for each sample and class. The reduction is over
    these numbers; `dim=()` is an error, all axes give one number.

    The result is `[]`, or what `dim` leaves with `reduction="none"`. `OptionError` for another
    `reduction` and negative options, `DTypeError` for classes that are no integers, `ShapeError`
    where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.tversky_loss([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]], 0.2, 0.8).item()
    0.1667
    """
    for name, value in (("alpha", alpha), ("beta", beta), ("smooth", smooth), ("gamma", gamma)):
        if not value >= 0:
            raise OptionError(f"tversky_loss: {name} is not negative, not {value}")
    x, t = as_floats(input), rg.asarray(target)
    by_class = t.ndim + 1 == x.ndim
    if by_class:
        if classes_of(x, t, "tversky_loss") != 1:
            raise ShapeError(f"tversky_loss: of classes the input is [N, C, ...], not {x.shape}")
        classes: Any = x.shape[1]
        rows = rows_from_front(rg.eye(classes, dtype=x.dtype), t, of="label")
        t = rg.moveaxis(rows, -1, 1)
    x, t = pair(x, t, "tversky_loss")
    axes = (
        tuple(range(2 if by_class else max(min(1, x.ndim - 1), 0), x.ndim)) if dim is None else dim
    )
    if dim == ():
        raise OptionError("tversky_loss: dim names the axes that are summed over, at least one")
    hit = _summed(x * t, axes)
    over, under = _summed(x * (1 - t), axes), _summed((1 - x) * t, axes)
    loss = 1 - (hit + smooth) / (hit + alpha * over + beta * under + smooth)
    return reduced(loss if gamma == 1 else _power(loss, gamma), reduction)


def _summed(x: Tensor, axes: Any) -> Tensor:
    return x.sum(axis=axes) if axes != () else x
