"""Layers as functions, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from typing import Any

from ml_dtypes import finfo

import retrograd as rg
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.ir import as_shape, provenance
from retrograd.nn import init
from retrograd.nn.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    from_front,
    hinge_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from retrograd.nn.spatial import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

__all__ = [
    # losses
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "hinge_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
    # activations
    "elu",
    "gelu",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
    # convolution and pooling
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    # layers
    "dropout",
    "embedding",
    "layer_norm",
    "linear",
    "one_hot",
    "rms_norm",
    "scaled_dot_product_attention",
]


def _at() -> str:
    """Where we are, for messages: the scope of the layer."""
    scope = provenance().scope
    return f" in {scope}" if scope else ""


# -- activations ---------------------------------------------------------------------------------
def relu(input: Any) -> Tensor:
    """`max(x, 0)`."""
    return rg.relu(input)


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Tensor:
    """`x` where positive, `negative_slope * x` elsewhere."""
    return rg.leaky_relu(input, negative_slope)


def elu(input: Any, alpha: float = 1.0) -> Tensor:
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere."""
    return rg.elu(input, alpha)


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """`x Phi(x)`; with `approximate="tanh"` the formula with tanh."""
    return rg.gelu(input, approximate)


def silu(input: Any) -> Tensor:
    """`x sigmoid(x)`."""
    return rg.silu(input)


def sigmoid(input: Any) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return rg.sigmoid(input)


def logsigmoid(input: Any) -> Tensor:
    """`log(sigmoid(x))`, accurate in both tails."""
    return rg.log_sigmoid(input)


def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent."""
    return rg.tanh(input)


def softplus(input: Any) -> Tensor:
    """`log(1 + exp(x))`, accurate in both tails."""
    return rg.softplus(input)


def softmax(input: Any, dim: int = -1) -> Tensor:
    """`exp(x) / sum(exp(x))` along an axis."""
    return rg.softmax(input, axis=dim)


def log_softmax(input: Any, dim: int = -1) -> Tensor:
    """`x - logsumexp(x)` along an axis."""
    return rg.log_softmax(input, axis=dim)


def one_hot(tensor: Any, num_classes: int) -> Tensor:
    """1 at each index along a new last axis, 0 elsewhere; int64."""
    return rg.one_hot(tensor, num_classes, dtype=rg.int64)


# -- layers --------------------------------------------------------------------------------------
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """`x @ weight.T + bias`: `[..., in]`, weight `[out, in]`, bias `[out]` give `[..., out]`."""
    x, weight = rg.asarray(input), rg.asarray(weight)
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear{_at()}: the last axis of the input, {x.shape}, must have the size that the "
            f"weight, {weight.shape}, has on its last: the weight is (out_features, in_features)"
        )
    y = x @ weight.mT
    return y if bias is None else y + bias


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """Rows of `weight` (`[num, dim]`) at the given indices: `[...]` gives `[..., dim]`.

    Indices out of range, negative ones too, are an `IndexRangeError`. The row `padding_idx` gets
    no gradient.
    """
    index, weight = rg.asarray(input), rg.asarray(weight)
    if not index.dtype.is_integer:
        raise DTypeError(f"embedding{_at()} takes integer indices, not {index.dtype}")
    if weight.ndim != 2:
        raise ShapeError(f"embedding{_at()}: the weight is a matrix, not of shape {weight.shape}")
    y = rg.take(weight, from_front(index, weight.shape[0]), axis=0)
    if padding_idx is None:
        return y
    row = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
    return rg.where(rg.expand_dims(index == row, axis=-1), rg.stop_gradient(y), y)


def _last_axes(x: Tensor, normalized_shape: Any, what: str) -> tuple[int, ...]:
    size = as_shape(normalized_shape)
    if not size or x.shape[-len(size) :] != size:
        raise ShapeError(
            f"{what}{_at()}: the input, {x.shape}, must end with the normalized shape {size}"
        )
    return tuple(range(x.ndim - len(size), x.ndim))


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias`, mean and variance over the last axes, whose
    sizes are `normalized_shape` (Ba, Kiros, Hinton, arXiv:1607.06450)."""
    x = rg.asarray(input)
    axes = _last_axes(x, normalized_shape, "layer_norm")
    if len(axes) == 1:
        return rg.layer_norm(x, weight, bias, eps)
    centred = x - x.mean(axis=axes, keepdims=True)
    y = centred * rg.rsqrt((centred * centred).mean(axis=axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """`x / sqrt(mean(x**2) + eps) * weight`, the mean over the last axes, whose sizes are
    `normalized_shape` (Zhang, Sennrich, arXiv:1910.07467). `eps` is by default the distance from
    1 to the next number of the dtype."""
    x = rg.asarray(input)
    axes = _last_axes(x, normalized_shape, "rms_norm")
    small = float(finfo(x.dtype.dtype).eps) if eps is None else eps
    if len(axes) == 1:
        return rg.rms_norm(x, weight, small)
    y = x * rg.rsqrt((x * x).mean(axis=axes, keepdims=True) + small)
    return y if weight is None else y * weight


def dropout(
    input: Any, p: float = 0.5, training: bool = True, generator: Generator | None = None
) -> Tensor:
    """Each element 0 with probability p, else divided by `1 - p`, so that the mean is kept.

    Draws from `generator`, or from the default one of `nn.init`. Not training, or with p = 0, it
    is the identity and draws nothing; with p = 1 the result is 0.
    """
    check_probability(p)
    x = rg.asarray(input)
    if not training or p == 0:
        return x
    if p == 1:
        return rg.where(False, x, 0.0)
    keep = (generator or init.default_generator()).bernoulli(1 - p, x.shape)
    return rg.where(keep, x * (1 / (1 - p)), 0.0)


def check_probability(p: float) -> None:
    """Raise unless p is a probability."""
    if not 0 <= p <= 1:
        raise OptionError(f"dropout{_at()}: p is a probability between 0 and 1, not {p}")


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """`softmax(query key^T * scale) value` (Vaswani et al., arXiv:1706.03762).

    `[..., L, E]`, `[..., S, E]`, `[..., S, V]` give `[..., L, V]`; leading axes broadcast. `scale`
    is `1 / sqrt(E)` by default. `attn_mask` broadcasts to `[..., L, S]`: a boolean one is true
    where a query may look at a key, a floating one is added to the scores. With `is_causal` query
    i looks at keys 0 to i. A query that a boolean mask leaves no key gives 0.
    """
    q, k, v = rg.asarray(query), rg.asarray(key), rg.asarray(value)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"attention{_at()} of query {q.shape}, key {k.shape}, value {v.shape}: query and key "
            "must agree in the last axis, key and value in the last but one"
        )
    width = q.shape[-1]
    scores = (q * (1 / math.sqrt(width) if scale is None else scale)) @ k.mT
    probabilities = _attention_weights(scores, attn_mask, is_causal)
    return dropout(probabilities, dropout_p, dropout_p > 0, generator) @ v


def _attention_weights(scores: Tensor, mask: Any, causal: bool) -> Tensor:
    lowest = float(finfo(scores.dtype.dtype).min)
    allowed = None
    if causal:
        allowed = rg.tril(rg.ones(scores.shape[-2:], dtype=rg.bool))
    if mask is None:
        return rg.softmax(scores if allowed is None else rg.where(allowed, scores, lowest))
    mask = rg.asarray(mask)
    _check_mask(mask, scores)
    if mask.dtype.is_float:
        scores = scores + mask.astype(scores.dtype)
        return rg.softmax(scores if allowed is None else rg.where(allowed, scores, lowest))
    allowed = mask if allowed is None else mask & allowed
    # The second where makes rows without any key 0 and keeps their gradient finite.
    return rg.where(allowed, rg.softmax(rg.where(allowed, scores, lowest)), 0.0)


def _check_mask(mask: Tensor, scores: Tensor) -> None:
    if not (mask.dtype.is_float or mask.dtype is rg.bool):
        raise DTypeError(f"attention{_at()}: a mask is boolean or floating, not {mask.dtype}")
    sizes = zip(reversed(mask.shape), reversed(scores.shape), strict=False)
    if mask.ndim > scores.ndim or any(m not in (1, n) for m, n in sizes):
        raise ShapeError(
            f"attention{_at()}: the mask, {mask.shape}, does not broadcast to {scores.shape}, "
            "(..., queries, keys)"
        )
