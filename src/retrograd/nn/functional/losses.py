"""Losses, with PyTorch's names, arguments and meanings.

`reduction` is "mean" (the default), "sum" or "none". Shapes of input and target must be equal,
where the loss compares them element by element: nothing is broadcast silently.
"""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.eager.dispatch import composite
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.indexing import along_from_front
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.functional.affine import linear


def as_floats(value: Any) -> Tensor:
    """As a tensor of floats."""
    x = rg.asarray(value)
    return x if x.dtype.is_float else x.astype(rg.get_default_dtype())


def pair(input: Any, target: Any, what: str) -> tuple[Tensor, Tensor]:
    """Input and target of one shape, as floats."""
    x, t = as_floats(input), rg.asarray(target)
    if x.shape != t.shape:
        raise ShapeError(
            f"{what}: the input has the shape {x.shape}, the target {t.shape}; make them equal"
        )
    return x, t if t.dtype.is_float else t.astype(x.dtype)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss as `reduction` says."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise OptionError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")


# -- regression ----------------------------------------------------------------------------------
@composite
def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Tensor:
    """`(x - t)**2`, with a weight for each element if given; the mean is then by the weights' sum.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.mse_loss([1.0, 2.0], [0.0, 0.0], weight=[3.0, 1.0]).item()
    1.75
    """
    x, t = pair(input, target, "mse_loss")
    return _averaged(rg.square(x - t), weight, reduction, "mse_loss")


@composite
def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Tensor:
    """`|x - t|`, with a weight for each element if given; the mean is then by the weights' sum.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.l1_loss([1.0, 3.0], [0.0, 0.0]).item()
    2.0
    """
    x, t = pair(input, target, "l1_loss")
    return _averaged(rg.abs(x - t), weight, reduction, "l1_loss")


@composite
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """`d**2 / 2` where `d = |x - t|` is at most delta, `delta (d - delta / 2)` beyond; times a
    weight for each element if given, which the mean does not divide by.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.huber_loss([3.0], [0.0]).item()
    2.5
    """
    x, t = pair(input, target, "huber_loss")
    positive("huber_loss", "delta", delta)
    d = x - t
    near = rg.clip(d, -delta, delta)
    # d**2 / 2 and delta (|d| - delta / 2) in one, with no branch that could overflow unused, and
    # no |d|, whose kink would be in the way of second derivatives.
    loss = near * (d - 0.5 * near)
    if weight is not None:
        loss = loss * _weights(loss, weight, "huber_loss")
    return reduced(loss, reduction)


def _weights(loss: Tensor, weight: Any, what: str) -> Tensor:
    w = as_floats(weight)
    if w.shape != loss.shape:
        raise ShapeError(f"{what}: the input has the shape {loss.shape}, the weight {w.shape}")
    return w


def _averaged(loss: Tensor, weight: Any, reduction: str, what: str) -> Tensor:
    """Elements reduced, with weights or without."""
    if weight is None:
        return reduced(loss, reduction)
    w = _weights(loss, weight, what)
    if reduction == "mean":
        return (loss * w).sum() / w.sum()
    return reduced(loss * w, reduction)


@composite
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """`d**2 / (2 beta)` where `d = |x - t|` is below beta, `d - beta / 2` beyond; beta = 0 is
    `l1_loss`.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.smooth_l1_loss([3.0], [0.0]).item()
    2.5
    """
    if beta == 0:
        return l1_loss(input, target, reduction)
    positive("smooth_l1_loss", "beta", beta)
    return huber_loss(input, target, reduction, beta) / beta


def positive(what: str, name: str, value: float) -> None:
    """Raise unless an option is positive."""
    if not value > 0:
        raise OptionError(f"{what}: {name} is positive, not {value}")


# -- classification ------------------------------------------------------------------------------
@composite
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`-log softmax(input)[target]`, classes along axis 1, or axis 0 of a vector of logits.

    `target` holds class indices (`[N, ...]` for `[N, C, ...]`) or probabilities in the shape of the
    input. Indices equal to `ignore_index` count for nothing; others out of range, -1 included, are
    an `IndexRangeError`. `weight` (`[C]`) weighs the classes. The mean is over the weights of the
    targets, or over the samples where targets are probabilities. `label_smoothing` s mixes the
    targets with the uniform distribution, `(1 - s) target + s / C`.

    The result is `[]`, or `[N, ...]` with `reduction="none"`. `OptionError` for a `reduction` other
    than "none", "mean" and "sum" and a `label_smoothing` outside of 0 to 1, `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.cross_entropy(rg.zeros((2, 4)), [0, 3]).item()
    1.3863
    """
    x, t = as_floats(input), rg.asarray(target)
    _check_classes(x, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise OptionError(f"label_smoothing is between 0 and 1, not {label_smoothing}")
    axis = min(1, x.ndim - 1)
    logp = rg.log_softmax(x, axis=axis)
    w = class_weight(weight, x, axis)
    if not t.dtype.is_float:
        return _by_index(logp, t, w, ignore_index, reduction, label_smoothing, "cross_entropy")
    if t.shape != x.shape:
        raise ShapeError(
            f"cross_entropy: targets that are probabilities have the shape of the input, "
            f"{x.shape}, not {t.shape}; class indices are integers"
        )
    weighted = logp if w is None else logp * w
    loss = -_times_log(t, weighted).sum(axis=axis)
    if label_smoothing:
        loss = (1 - label_smoothing) * loss - label_smoothing * weighted.mean(axis=axis)
    return reduced(loss, reduction)


@composite
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """`-input[target]` for log probabilities `[N, C, ...]`; see `cross_entropy`.

    Classes are integers `[N, ...]`. `OptionError` for a `reduction` other than "none", "mean" and
    "sum", `DTypeError` for other targets, `ShapeError` where the shapes do not fit,
    `IndexRangeError` for a class that there is not.

    >>> import retrograd as rg
    >>> rg.nn.functional.nll_loss([[-1.0, -2.0]], [1]).item()
    2.0
    """
    x, t = as_floats(input), rg.asarray(target)
    _check_classes(x, "nll_loss")
    w = class_weight(weight, x, min(1, x.ndim - 1))
    return _by_index(x, t, w, ignore_index, reduction, 0.0, "nll_loss")


def _check_classes(x: Tensor, what: str) -> None:
    if x.ndim == 0 or x.shape[min(1, x.ndim - 1)] == 0:
        raise ShapeError(f"{what}: the input, {x.shape}, has no axis of classes; it is [N, C, ...]")


def class_weight(weight: Any, x: Tensor, axis: int) -> Tensor | None:
    """Weights of the classes, shaped to be multiplied with x."""
    if weight is None:
        return None
    w = rg.asarray(weight).astype(x.dtype)
    if w.shape != (x.shape[axis],):
        raise ShapeError(f"a weight for each of {x.shape[axis]} classes, not of shape {w.shape}")
    return w.reshape((-1,) + (1,) * (x.ndim - 1 - axis))


def _by_index(
    logp: Tensor,
    t: Tensor,
    w: Tensor | None,
    ignore: int,
    reduction: str,
    smoothing: float,
    what: str,
) -> Tensor:
    """The loss for targets that are class indices."""
    axis = classes_of(logp, t, what)
    counts = t != ignore
    at = rg.where(counts, t, 0)
    weights = counts.astype(logp.dtype)
    if w is not None:
        weights = rg.where(counts, picked(rg.broadcast_to(w, logp.shape), at, axis), 0.0)
    loss = -picked(logp, at, axis)
    loss = rg.where(counts, loss if w is None else loss * weights, 0.0)
    if smoothing:
        spread = -(logp if w is None else logp * w).mean(axis=axis)
        loss = (1 - smoothing) * loss + smoothing * rg.where(counts, spread, 0.0)
    if reduction == "mean":
        return loss.sum() / weights.sum()
    return reduced(loss, reduction)


def classes_of(x: Tensor, t: Tensor, what: str) -> int:
    """The axis of the classes of an input, for class indices as targets, which are checked."""
    _check_classes(x, what)
    axis = min(1, x.ndim - 1)
    if not t.dtype.is_integer:
        raise DTypeError(f"{what}: class indices are integers, not {t.dtype}")
    if t.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        raise ShapeError(
            f"{what}: class indices for the input {x.shape} have the shape "
            f"{x.shape[:axis] + x.shape[axis + 1 :]}, not {t.shape}; classes are axis {axis}"
        )
    return axis


def picked(x: Tensor, label: Tensor, axis: int) -> Tensor:
    """What stands at a label for each position, along the axis of the classes."""
    index = rg.expand_dims(label, axis=axis)
    return rg.squeeze(along_from_front(x, index, axis=axis, of="label"), axis=axis)


@composite
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """`-(t log x + (1 - t) log(1 - x))` for probabilities x. As in PyTorch no logarithm is below
    -100; where it is held there, its gradient is 0. Values of x outside of 0 to 1 are not refused,
    as that would take a look at them: their loss means nothing.
    `binary_cross_entropy_with_logits` has no such limits and is preferable.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.binary_cross_entropy([0.5], [1.0]).item()
    0.6931
    """
    x, t = pair(input, target, "binary_cross_entropy")
    loss = -(t * _log_above(x) + (1 - t) * _log_above(1 - x))
    return reduced(loss if weight is None else loss * weight, reduction)


def _log_above(x: Tensor) -> Tensor:
    """`max(log x, -100)`, defined and with a finite gradient at 0."""
    inside = x > 0
    return rg.where(inside, rg.maximum(rg.log(rg.where(inside, x, 1.0)), -100.0), -100.0)


@composite
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """`binary_cross_entropy(sigmoid(x), t)` for logits x, exact in both tails. `pos_weight`
    multiplies the part of the positive class.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.binary_cross_entropy_with_logits([0.0], [1.0]).item()
    0.6931
    """
    x, t = pair(input, target, "binary_cross_entropy_with_logits")
    tail = rg.softplus(-x)
    if pos_weight is not None:
        tail = tail * ((rg.asarray(pos_weight).astype(x.dtype) - 1) * t + 1)
    loss = (1 - t) * x + tail
    return reduced(loss if weight is None else loss * weight, reduction)


@composite
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """`t (log t - x)` for log probabilities x and probabilities t, or log probabilities t with
    `log_target`. `reduction="batchmean"`, the divergence, divides the sum by the size of axis 0;
    "mean" divides by the number of elements.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.kl_div([-0.6931], [1.0], reduction="sum").item()
    0.6931
    """
    x, t = pair(input, target, "kl_div")
    if log_target:
        loss = _times_log(rg.exp(t), t - x)
    else:
        positive = t > 0
        loss = rg.where(positive, t * rg.log(rg.where(positive, t, 1.0)), 0.0) - _times_log(t, x)
    if reduction == "batchmean":
        if x.ndim == 0:
            raise ShapeError("kl_div: 'batchmean' divides by the size of axis 0, there is none")
        return loss.sum() / x.shape[0]
    return reduced(loss, reduction)


def _times_log(p: Tensor, logp: Tensor) -> Tensor:
    """`p * logp`, 0 where p is 0 even if logp is infinite."""
    none = (p == 0) & rg.isinf(logp)
    return rg.where(none, 0.0, p * rg.where(none, 0.0, logp))


@composite
def hinge_loss(
    input: Any, target: Any, reduction: str = "mean", margin: float = 1.0, squared: bool = False
) -> Tensor:
    """`max(0, margin - t x)` for targets -1 and 1; or its square.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.hinge_loss([0.25, 0.25], [1.0, -1.0]).item()
    1.0
    """
    x, t = pair(input, target, "hinge_loss")
    loss = rg.relu(margin - t * x)
    return reduced(rg.square(loss) if squared else loss, reduction)


@composite
def squared_hinge_loss(
    input: Any, target: Any, reduction: str = "mean", margin: float = 1.0
) -> Tensor:
    """`max(0, margin - t x)**2` for targets -1 and 1: `hinge_loss` with `squared=True`.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.squared_hinge_loss([0.5, 0.5], [1.0, -1.0]).item()
    1.25
    """
    return hinge_loss(input, target, reduction, margin, squared=True)


@composite
def distillation_loss(
    input: Any,
    teacher: Any,
    target: Any = None,
    temperature: float = 2.0,
    alpha: float = 0.5,
    reduction: str = "mean",
) -> Tensor:
    """`T**2 KL(softmax(teacher / T) || softmax(input / T))` of two arrays of logits, classes along
    axis 1, or axis 0 of a vector, at a temperature T (Hinton et al., arXiv:1503.02531). The factor
    keeps the size of the gradient. With a `target`, as `cross_entropy` takes it, the loss is
    `alpha` times this plus `1 - alpha` times `cross_entropy(input, target)`.

    The mean is over samples, `kl_div`'s "batchmean". The teacher gets a gradient too, unless it is
    computed under `rg.no_grad()` or `rg.stop_gradient` is applied to it.

    `[N, C, ...]` twice to `[]`, or `[N, ...]` with `reduction="none"`. `OptionError` for another
    `reduction`, a temperature that is not positive and an alpha outside of 0 to 1, `ShapeError`
    where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.distillation_loss([[0.0, 2.0]], [[2.0, 0.0]], temperature=2.0).item()
    1.8485
    """
    x, t = pair(input, teacher, "distillation_loss")
    _check_classes(x, "distillation_loss")
    positive("distillation_loss", "temperature", temperature)
    if not 0 <= alpha <= 1:
        raise OptionError(f"distillation_loss: alpha is between 0 and 1, not {alpha}")
    axis = min(1, x.ndim - 1)
    student, given = (rg.log_softmax(z / temperature, axis=axis) for z in (x, t))
    loss = _times_log(rg.exp(given), given - student).sum(axis=axis)
    loss = temperature**2 * reduced(loss, reduction)
    if target is None:
        return loss
    return alpha * loss + (1 - alpha) * cross_entropy(x, target, reduction=reduction)


@composite
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`: `[N, in]`, weight
    `[C, in]`, classes `[N]`; or with more axes `[C, d1, ..., in]` and classes `[N, d1, ...]`.

    The result is `[]`, or that of the classes with `reduction="none"`. `ShapeError` where sizes do
    not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.linear_cross_entropy(rg.zeros((2, 3)), rg.ones((4, 3)), [0, 3]).item()
    1.3863
    """
    x, w = rg.asarray(input), rg.asarray(linear_weight)
    if w.ndim < 2 or x.ndim == 0 or x.shape[-1] != w.shape[-1]:
        raise ShapeError(
            f"linear_cross_entropy: the input {x.shape} and the weight {w.shape} end with one size"
        )
    bias = None if linear_bias is None else rg.asarray(linear_bias).reshape((-1,))
    logits = linear(x, w.reshape((-1, w.shape[-1])), bias)
    logits = logits.reshape((*x.shape[:-1], *w.shape[:-1]))
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)
