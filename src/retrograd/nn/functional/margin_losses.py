"""Losses of margins, distances and counts, with PyTorch's names, arguments and meanings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.eager.dispatch import composite
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim
from retrograd.nn.functional.conv_pool import arrays_of, values_of
from retrograd.nn.functional.losses import as_floats, pair, positive, reduced
from retrograd.nn.functional.normalization import pairwise_distance
from retrograd.ops.assume import guard


@composite
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """`x` for targets 1, `max(0, margin - x)` for targets -1: x is a distance.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.hinge_embedding_loss([0.25, 0.25], [1, -1]).item()
    0.5
    """
    x, t = pair(input, target, "hinge_embedding_loss")
    return reduced(
        rg.where(t == 1, x, 0.0) + rg.where(t == -1, rg.relu(margin - x), 0.0), reduction
    )


@composite
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """`max(0, -t (x1 - x2) + margin)`: targets 1 where x1 should be the larger, else -1.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.margin_ranking_loss([1.0], [3.0], [1]).item()
    2.0
    """
    a, b = pair(input1, input2, "margin_ranking_loss")
    a, t = pair(a, target, "margin_ranking_loss")
    return reduced(rg.relu(margin - t * (a - b)), reduction)


@composite
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """`log(1 + exp(-t x))` for targets -1 and 1.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.soft_margin_loss([0.0], [1.0]).item()
    0.6931
    """
    x, t = pair(input, target, "soft_margin_loss")
    return reduced(rg.softplus(-t * x), reduction)


@composite
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """`1 - cos(x1, x2)` for targets 1, `max(0, cos(x1, x2) - margin)` for targets -1; vectors along
    axis 1, or one pair of vectors.

    `[N, D]` twice with targets `[N]`, or `[D]` twice with `[]`. `OptionError` for a `reduction`
    other than "none", "mean" and "sum", `ShapeError` for other shapes.

    >>> import retrograd as rg
    >>> rg.nn.functional.cosine_embedding_loss([1.0, 0.0], [0.0, 1.0], 1).item()
    1.0
    """
    a, b = pair(input1, input2, "cosine_embedding_loss")
    t = rg.asarray(target)
    if a.ndim not in (1, 2) or t.shape != a.shape[:-1]:
        raise ShapeError(
            f"cosine_embedding_loss: inputs [N, D] and targets [N], or [D] and [], not {a.shape} "
            f"and {t.shape}"
        )
    small = 1e-12
    square = ((a * a).sum(axis=-1) + small) * ((b * b).sum(axis=-1) + small)
    cosine = (a * b).sum(axis=-1) / rg.sqrt(square)
    loss = rg.where(t == 1, 1 - cosine, 0.0) + rg.where(t == -1, rg.relu(cosine - margin), 0.0)
    return reduced(loss, reduction)


@composite
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(a, p) - d(a, n) + margin)` with the distances of `pairwise_distance`; with `swap`
    the negative may be nearer to the positive than to the anchor (Balntas et al., 2016).

    `[N, D]` three times, or `[D]`. `OptionError` for a `reduction` other than "none", "mean" and
    "sum" and a margin that is not positive, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.triplet_margin_loss([[0.0]], [[0.0]], [[0.0]]).item()
    1.0
    """
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda x, y: pairwise_distance(x, y, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


@composite
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with another distance of the last axis.

    `[N, D]` three times, or `[D]`. `OptionError` for a `reduction` other than "none", "mean" and
    "sum" and a margin that is not positive, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.triplet_margin_with_distance_loss([[0.0]], [[0.0]], [[0.0]]).item()
    1.0
    """
    if not margin > 0:
        raise OptionError(f"triplet_margin_loss: margin is positive, not {margin}")
    a, b = pair(anchor, positive, "triplet_margin_loss")
    a, c = pair(a, negative, "triplet_margin_loss")
    distance = distance_function or pairwise_distance
    far = distance(a, c)
    if swap:
        far = rg.minimum(far, distance(b, c))
    return reduced(rg.relu(distance(a, b) - far + margin), reduction)


@composite
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """`exp(x) - t x` for the logarithm x of a rate, or `x - t log(x + eps)` for a rate x; with
    `full` also `t log t - t + log(2 pi t) / 2` for targets above 1, Stirling's formula.

    Input and target are of one shape, the result is `[]`, or of that shape with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.poisson_nll_loss([0.0], [2.0]).item()
    1.0
    """
    x, t = pair(input, target, "poisson_nll_loss")
    loss = rg.exp(x) - t * x if log_input else x - t * rg.log(x + eps)
    if full:
        some = t > 1
        u = rg.where(some, t, 1.0)
        stirling = u * rg.log(u) - u + 0.5 * rg.log(2 * math.pi * u)
        loss = loss + rg.where(some, stirling, 0.0)
    return reduced(loss, reduction)


@composite
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """`(log var + (x - t)**2 / var) / 2`, with `full` plus `log(2 pi) / 2`; the variance is at
    least eps, without a change to its gradient. It is a number, or has the axes of the input, of
    which some may be 1, or lacks the last one. The target is broadcast.

    The result is `[]`, or of the shape of the input with `reduction="none"`. `OptionError` for a
    negative variance or another `reduction`, `ShapeError` for a variance that does not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.gaussian_nll_loss([1.0], [0.0], [1.0]).item()
    0.5
    """
    x, t = as_floats(input), as_floats(target)
    positive("gaussian_nll_loss", "eps", eps)
    if isinstance(var, int | float) and not var >= 0:
        raise OptionError(f"gaussian_nll_loss: a variance is not negative, as {var} is")
    v = rg.asarray(var).astype(x.dtype)
    if v.shape == x.shape[:-1] and v.ndim < x.ndim:
        v = rg.expand_dims(v, axis=-1)
    fits = v.ndim == x.ndim and all(n in (1, m) for n, m in zip(v.shape, x.shape, strict=True))
    if not (fits or v.ndim == 0):
        raise ShapeError(
            f"gaussian_nll_loss: the variance has the shape of the input, {x.shape}, with 1 for "
            f"some axes or without the last one, or is a number, but has the shape {v.shape}"
        )
    v = rg.broadcast_to(v, x.shape)
    v = v + rg.stop_gradient(rg.maximum(v, eps) - v)
    loss = 0.5 * (rg.log(v) + rg.square(x - t) / v)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@composite
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`sum_{i != t} w[t] max(0, margin - x[t] + x[i])**p / C` for class scores `[N, C]` or `[C]`,
    p 1 or 2.

    `OptionError` for another p or `reduction`, `DTypeError` for classes that are no integers,
    `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.multi_margin_loss([[0.0, 0.0]], [0]).item()
    0.5
    """
    if p not in (1, 2):
        raise OptionError(f"multi_margin_loss: p is 1 or 2, not {p}")
    x, t = as_floats(input), rg.asarray(target)
    if x.ndim not in (1, 2) or t.shape != x.shape[:-1]:
        raise ShapeError(
            f"multi_margin_loss: scores [N, C] and classes [N], or [C] and [], not {x.shape} and "
            f"{t.shape}"
        )
    classes = x.shape[-1]
    at = rg.expand_dims(t, axis=-1)
    gap = rg.relu(margin - rg.take_along_axis(x, at, axis=-1) + x) ** p
    if weight is not None:
        gap = gap * rg.take(rg.asarray(weight).astype(x.dtype), at, axis=0)
    gap = rg.where(rg.arange(classes) == at, 0.0, gap)
    return reduced(gap.sum(axis=-1) / classes, reduction)


@composite
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """`sum_j sum_{i not in t} max(0, 1 - x[t[j]] + x[i]) / C` for scores `[N, C]` or `[C]`; the
    classes of a sample are those before the first -1 in its row of targets.

    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes differ.

    >>> import retrograd as rg
    >>> rg.nn.functional.multilabel_margin_loss([0.0, 1.0], [1, -1]).item()
    0.0
    """
    x, t = as_floats(input), rg.asarray(target)
    if x.ndim not in (1, 2) or t.shape != x.shape:
        raise ShapeError(
            f"multilabel_margin_loss: scores and targets have one shape, [N, C] or [C], not "
            f"{x.shape} and {t.shape}"
        )
    classes = x.shape[-1]
    ended = rg.cumulative_sum((t < 0).astype(rg.int64), axis=-1) > 0
    at = rg.where(ended, 0, t)
    belongs = rg.where(rg.expand_dims(ended, axis=-1), 0, rg.one_hot(at, classes, dtype=rg.int64))
    other = belongs.sum(axis=-2) == 0
    gap = rg.relu(
        1 - rg.expand_dims(rg.take_along_axis(x, at, axis=-1), axis=-1) + rg.expand_dims(x, axis=-2)
    )
    counts = ~rg.expand_dims(ended, axis=-1) & rg.expand_dims(other, axis=-2)
    return reduced(rg.where(counts, gap, 0.0).sum(axis=(-2, -1)) / classes, reduction)


@composite
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes, the last axis, of `-t log sigmoid(x) - (1 - t) log sigmoid(-x)`.

    `[N, C]` twice, the result is `[]`, or `[N]` with `reduction="none"`. `OptionError` for a
    `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes differ.

    >>> import retrograd as rg
    >>> rg.nn.functional.multilabel_soft_margin_loss([[0.0, 0.0]], [[1.0, 1.0]]).item()
    0.6931
    """
    x, t = pair(input, target, "multilabel_soft_margin_loss")
    loss = t * rg.softplus(-x) + (1 - t) * rg.softplus(x)
    loss = loss if weight is None else loss * rg.asarray(weight)
    return reduced(loss.mean(axis=-1), reduction)


@composite
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al., ICML 2006).

    `log_probs` are `[T, N, C]`, or `[T, C]`; targets `[N, S]`, or one behind another in a vector;
    lengths are numbers, one for each sample. The loss is minus the logarithm of the probability of
    all alignments: symbols may be repeated, and the blank stand between them. The mean is over
    samples, of losses divided by target lengths. A target that no alignment fits has an infinite
    loss, or with `zero_infinity` one of 0 without gradient.

    Targets and lengths may be arguments of a compiled function, targets as `[N, S]` then; of
    lengths that are not known before the call those beyond T or S count as T or S.

    The result is `[]`, or `[N]` with `reduction="none"`. `OptionError` for a `reduction` other than
    "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.ctc_loss(rg.log(rg.full((3, 1, 2), 0.5)), [[1]], [3], [1]).item()
    0.2877
    """
    x = as_floats(log_probs)
    single = x.ndim == 2
    x = rg.expand_dims(x, axis=1) if single else x
    if x.ndim != 3:
        raise ShapeError(f"ctc_loss: log_probs are [T, N, C] or [T, C], not {x.shape}")
    steps, samples, _ = x.shape
    given = rg.asarray(targets)
    given = rg.expand_dims(given, axis=0) if single and given.ndim == 1 else given
    most = given.shape[-1] if given.ndim == 2 else given.size
    x, lengths = _lengths(x, input_lengths, samples, steps, "input_lengths")
    x, sizes = _lengths(x, target_lengths, samples, most, "target_lengths")
    loss = _alignments(x, _padded(given, sizes, samples), lengths, sizes, blank)
    if zero_infinity:
        loss = rg.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        return (loss / rg.maximum(rg.asarray(sizes), 1).astype(loss.dtype)).mean()
    return reduced(rg.squeeze(loss, axis=0) if single else loss, reduction)


def _lengths(
    x: Tensor, value: Any, samples: int | Dim, most: int | Dim, name: str
) -> tuple[Tensor, Any]:
    """A length for each sample, checked if it is known, and x."""
    given = rg.asarray(value).reshape((-1,)).astype(rg.int64)
    known = values_of(given)
    none = f"ctc_loss: {name} are {samples} numbers from 0 to {most}, not "
    if given.shape != (samples,):
        raise ShapeError(f"{none}an array of the shape {given.shape}")
    if known is None:
        return x, rg.clip(given, 0, most)
    if (known < 0).any():
        raise ShapeError(f"{none}{known.tolist()}")
    return guard(x, _longest(known), "<=", most, f"{none}{known.tolist()}"), known


def _padded(given: Tensor, sizes: Any, samples: int | Dim) -> Any:
    """The targets as rows of one length."""
    known = values_of(given)
    if given.ndim == 2:
        if given.shape[0] != samples:
            raise ShapeError(f"ctc_loss: {samples} samples have no targets of {given.shape}")
        return given if known is None or isinstance(sizes, Tensor) else known[:, : _longest(sizes)]
    if known is None or isinstance(sizes, Tensor):
        raise ShapeError(
            f"ctc_loss: targets behind one another, {given.shape}, and their lengths are known "
            "numbers; what becomes known in the call is given as [N, S]"
        )
    rows = np.zeros((len(sizes), _longest(sizes)), np.int64)
    ends = np.cumsum(sizes)
    for row, end, size in zip(rows, ends, sizes, strict=True):
        row[:size] = known[end - size : end]
    return rows


def _longest(sizes: Any) -> int:
    return int(sizes.max(initial=0))


def _alignments(x: Tensor, rows: Any, lengths: Any, sizes: Any, blank: int) -> Tensor:
    """Minus the logarithm of the probability of all alignments, by the forward recursion over
    states: blank, first symbol, blank, second symbol, ..., blank."""
    states, skips = _states(rg if isinstance(rows, Tensor) else np, rows, blank)
    samples, width = states.shape
    emitted = rg.take_along_axis(x, states[None], axis=2)

    def step(total: Tensor, now: Any) -> tuple[Tensor, None]:
        own, t = now
        before = rg.pad(total, ((0, 0), (2, 0)), value=-math.inf)
        two = rg.where(skips, before[:, :width], -math.inf)
        paths = rg.logaddexp(rg.logaddexp(total, before[:, 1 : width + 1]), two)
        return rg.where(t < column, paths + own, total), None

    # Before the first step one is at the first blank, for nothing: it may be the first step's.
    xp, column = arrays_of(width), lengths[:, None]
    start = rg.asarray(xp.where(xp.arange(width) == 0, 0.0, -math.inf)).astype(x.dtype)
    start = rg.broadcast_to(start, (samples, width))
    total, _ = rg.scan(step, start, (emitted, rg.arange(x.shape[0])))
    xp, ends = rg if isinstance(sizes, Tensor) else np, sizes[:, None]
    last = rg.take_along_axis(total, 2 * ends, axis=1)
    before = rg.take_along_axis(total, xp.maximum(2 * ends - 1, 0), axis=1)
    loss = -rg.logaddexp(last, before)
    if xp is rg or not ends.all():
        loss = rg.where(ends > 0, loss, -last)
    if isinstance(lengths, Tensor) or not lengths.all():
        loss = rg.where(column > 0, loss, rg.where(rg.asarray(ends) > 0, math.inf, 0.0))
    return rg.squeeze(loss, axis=1)


def _states(xp: Any, rows: Any, blank: int) -> tuple[Any, Any]:
    """The symbols of the states, and whether the blank before them may be left out: it may between
    different symbols."""
    samples, count = rows.shape
    blanks = xp.full((samples, count), blank, dtype=rows.dtype)
    states = xp.stack([blanks, rows], axis=-1).reshape((samples, 2 * count))
    states = xp.concat([states, xp.full((samples, 1), blank, dtype=rows.dtype)], axis=1)
    none = xp.full((samples, 1), -1, dtype=rows.dtype)
    two = xp.concat([none, none, states], axis=1)[:, : 2 * count + 1]
    first = xp.arange(2 * count + 1) < 2
    return states, ~first & (states != blank) & (states != two)
