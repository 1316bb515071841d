"""Normalisations and distances as functions, with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ml_dtypes import finfo

import retrograd as rg
from retrograd.eager.dispatch import composite
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, as_shape, product, provenance
from retrograd.ir.source import located
from retrograd.nn.functional.activations import floating


def _at() -> str:
    scope = provenance().scope
    return f" in {scope}" if scope else ""


def _last_axes(x: Tensor, normalized_shape: Any, what: str) -> tuple[int, ...]:
    size = as_shape(normalized_shape)
    if not size or x.shape[-len(size) :] != size:
        raise ShapeError(
            f"{what}{_at()}: the input, {x.shape}, must end with the normalized shape {size}"
        )
    return tuple(range(x.ndim - len(size), x.ndim))


@composite
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias`, mean and variance over the last axes, whose
    sizes are `normalized_shape` (Ba, Kiros, Hinton, arXiv:1607.06450).

    `[..., *normalized_shape]` to the same. `ShapeError` where the input does not end in these
    sizes.

    >>> import retrograd as rg
    >>> rg.nn.functional.layer_norm([1.0, 3.0], (2,), eps=0.0).tolist()
    [-1.0, 1.0]
    """
    x = rg.asarray(input)
    axes = _last_axes(x, normalized_shape, "layer_norm")
    if len(axes) == 1:
        return rg.layer_norm(x, weight, bias, eps)
    y = _standardised(x, axes, eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _standardised(x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    centred = x - x.mean(axis=tuple(axes), keepdims=True)
    return centred * rg.rsqrt((centred * centred).mean(axis=tuple(axes), keepdims=True) + eps)


@composite
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """`x / sqrt(mean(x**2) + eps) * weight`, the mean over the last axes, whose sizes are
    `normalized_shape` (Zhang, Sennrich, arXiv:1910.07467). `eps` is by default the distance from
    1 to the next number of the dtype.

    `[..., *normalized_shape]` to the same. `ShapeError` where the input does not end in these
    sizes.

    >>> import retrograd as rg
    >>> rg.nn.functional.rms_norm([3.0, 4.0], (2,), eps=0.0).tolist()
    [0.8485, 1.1314]
    """
    x = rg.asarray(input)
    axes = _last_axes(x, normalized_shape, "rms_norm")
    small = float(finfo(x.dtype.dtype).eps) if eps is None else eps
    if len(axes) == 1:
        return rg.rms_norm(x, weight, small)
    y = x * rg.rsqrt((x * x).mean(axis=axes, keepdims=True) + small)
    return y if weight is None else y * weight


def _affine(x: Tensor, weight: Any, bias: Any, what: str) -> Tensor:
    """Times a weight, plus a bias, for each channel."""
    for name, w in (("weight", weight), ("bias", bias)):
        if w is not None and rg.asarray(w).shape != (x.shape[1],):
            raise ShapeError(
                f"{what}{_at()}: the {name} has a number for each of {x.shape[1]} channels, not "
                f"the shape {rg.asarray(w).shape}"
            )
    y = x if weight is None else x * _per_channel(weight, x)
    return y if bias is None else y + _per_channel(bias, x)


def _per_channel(w: Any, x: Tensor) -> Tensor:
    return rg.asarray(w).astype(x.dtype).reshape((1, -1) + (1,) * (x.ndim - 2))


def _with_channels(input: Any, what: str, least: int) -> Tensor:
    x = floating(input)
    if x.ndim < least:
        raise ShapeError(f"{what}{_at()}: the input is [N, C, ...], not of shape {x.shape}")
    return x


@located
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each channel, axis 1 (Ioffe, Szegedy,
    arXiv:1502.03167).

    Mean and variance are the running ones or, in training, those of the batch. Tensors do not
    change: `running_statistics` gives what the running ones become, with `momentum`, which is
    taken here for PyTorch's sake only.

    `[N, C, ...]` to the same; mean, variance, weight and bias are `[C]`. `OptionError` without
    running statistics outside of training, `ShapeError` for one value per channel in training.

    >>> import retrograd as rg
    >>> rg.nn.functional.batch_norm([[1.0], [3.0]], None, None, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    x = _with_channels(input, "batch_norm", 2)
    axes = (0, *range(2, x.ndim))
    if training:
        if product([x.shape[i] for i in axes]) == 1:
            raise ShapeError(
                f"batch_norm{_at()}: in training there must be more than one value per channel, "
                f"the input is {x.shape}"
            )
        return _affine(_standardised(x, axes, eps), weight, bias, "batch_norm")
    if running_mean is None or running_var is None:
        raise OptionError(f"batch_norm{_at()}: running statistics are needed outside of training")
    mean, var = _per_channel(running_mean, x), _per_channel(running_var, x)
    return _affine((x - mean) * rg.rsqrt(var + eps), weight, bias, "batch_norm")


@located
def running_statistics(
    input: Any, running_mean: Any, running_var: Any, momentum: Any = 0.1
) -> tuple[Tensor, Tensor]:
    """The running mean and variance of `batch_norm` after a batch: `(1 - momentum) old + momentum
    new`, of the unbiased variance; without gradient.

    `[N, C, ...]` and `[C]` twice give `[C]` twice. `ShapeError` where they do not fit.

    >>> import retrograd as rg
    >>> mean, var = rg.nn.functional.running_statistics([[1.0], [3.0]], [0.0], [1.0])
    >>> mean.tolist(), var.tolist()
    ([0.2], [1.1])
    """
    x = rg.stop_gradient(_with_channels(input, "running_statistics", 2))
    axes = (0, *range(2, x.ndim))
    mean, var = x.mean(axis=axes), rg.var(x, axis=axes, correction=1)
    return (
        (1 - momentum) * rg.asarray(running_mean) + momentum * mean,
        (1 - momentum) * rg.asarray(running_var) + momentum * var,
    )


@composite
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Normalised over each group of channels of each sample (Wu, He, arXiv:1803.08494).

    `[N, C, ...]` to the same. `OptionError` for channels that are no equal groups.

    >>> import retrograd as rg
    >>> rg.nn.functional.group_norm(rg.ones((3, 6, 4)), 2).shape
    (3, 6, 4)
    """
    x = _with_channels(input, "group_norm", 2)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise OptionError(
            f"group_norm{_at()}: {x.shape[1]} channels do not make {num_groups} groups"
        )
    members = x.shape[1] // num_groups * product(x.shape[2:])
    grouped = x.reshape((x.shape[0], num_groups, members))
    y = _standardised(grouped, (2,), eps).reshape(x.shape)
    return _affine(y, weight, bias, "group_norm")


@composite
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalised over each channel of each sample (Ulyanov, Vedaldi, Lempitsky, arXiv:1607.08022);
    or by the running statistics, without `use_input_stats`.

    `[N, C, ...]` to the same. `OptionError` without statistics of either kind.

    >>> import retrograd as rg
    >>> rg.nn.functional.instance_norm(rg.ones((3, 6, 4))).shape
    (3, 6, 4)
    """
    x = _with_channels(input, "instance_norm", 3)
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    return _affine(_standardised(x, range(2, x.ndim), eps), weight, bias, "instance_norm")


@composite
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`x / (k + alpha mean(x**2))**beta`, the mean over `size` neighbouring channels, those outside
    counted as 0.

    `[N, C, ...]` to the same. `OptionError` for a size below 1.

    >>> import retrograd as rg
    >>> rg.nn.functional.local_response_norm(rg.ones((1, 3, 4)), 2).shape
    (1, 3, 4)
    """
    x = _with_channels(input, "local_response_norm", 3)
    if size < 1:
        raise OptionError(f"local_response_norm{_at()}: size is at least 1, not {size}")
    widths = [(0, 0)] * x.ndim
    widths[1] = (size // 2, (size - 1) // 2)
    squares = rg.pad(x * x, widths)
    total = squares[:, : x.shape[1]]
    for i in range(1, size):
        total = total + squares[:, i : i + x.shape[1]]
    return x / (total * (alpha / size) + k) ** beta


@composite
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """`x / max(norm(x), eps)`, the p-norm over an axis or several.

    The shape is that of the input. `AxisError` for an axis that it does not have.

    >>> import retrograd as rg
    >>> rg.nn.functional.normalize(rg.tensor([[3.0, 4.0]])).tolist()
    [[0.6, 0.8]]
    """
    x = floating(input)
    return x / rg.maximum(rg.vector_norm(x, axis=dim, ord=p, keepdims=True), eps)


# -- distances -----------------------------------------------------------------------------------
@composite
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """`x1 . x2 / (max(|x1|, eps) max(|x2|, eps))` along an axis; shapes broadcast.

    `[N, D]` twice to `[N]`. `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.nn.functional.cosine_similarity([[1.0, 1.0]], [[1.0, 0.0]]).tolist()
    [0.7071]
    """
    a, b = rg.broadcast_arrays(floating(x1), floating(x2))
    sizes = [rg.maximum(rg.vector_norm(x, axis=dim, keepdims=True), eps) for x in (a, b)]
    return ((a / sizes[0]) * (b / sizes[1])).sum(axis=dim)


@composite
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` over the last axis.

    `[N, D]` twice to `[N]`, or `[N, 1]` with `keepdim`. `ShapeError` where the shapes do not
    broadcast.

    >>> import retrograd as rg
    >>> rg.nn.functional.pairwise_distance(rg.ones((1, 4)), rg.zeros((1, 4))).tolist()
    [2.0]
    """
    return rg.vector_norm(floating(x1) - floating(x2) + eps, axis=-1, ord=p, keepdims=keepdim)


@composite
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all rows: `[..., P, M]` and `[..., R, M]` give
    `[..., P, R]`. The gradient where rows are equal is 0.

    `ShapeError` where the rows have not one length.

    >>> import retrograd as rg
    >>> rg.nn.functional.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
    [[5.0, 1.0]]
    """
    a, b = floating(x1), floating(x2)
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: rows of {a.shape} and {b.shape} must have one length")
    difference = rg.expand_dims(a, axis=-2) - rg.expand_dims(b, axis=-3)
    return rg.vector_norm(difference, axis=-1, ord=p)


def _pairs(n: int | Dim) -> tuple[Any, Any]:
    """The numbers i < j below n, in lexicographic order."""
    if not isinstance(n, Dim):
        return np.triu_indices(n, 1)
    # Behind the pairs that begin with a number below i there are i (2 n - i - 1) / 2.
    first = rg.arange(n) * (2 * n - 1 - rg.arange(n)) // 2
    k = rg.arange(n * (n - 1) // 2)
    i = rg.searchsorted(first, k, side="right") - 1
    return i, k - rg.take(first, i) + i + 1


@composite
def pdist(input: Any, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of rows i < j, in the order (0, 1), (0, 2), ..., (1, 2).

    `[N, D]` to `[N (N - 1) / 2]`. `ShapeError` for what is no matrix.

    >>> import retrograd as rg
    >>> rg.nn.functional.pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).tolist()
    [5.0, 1.0, 4.2426]
    """
    x = floating(input)
    if x.ndim != 2:
        raise ShapeError(f"pdist takes a matrix of rows, not the shape {x.shape}")
    i, j = _pairs(x.shape[0])
    return rg.vector_norm(rg.take(x, i, axis=0) - rg.take(x, j, axis=0), axis=-1, ord=p)
