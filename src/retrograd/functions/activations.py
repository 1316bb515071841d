"""Activations and normalisations: compositions whose gradients follow from their parts."""

from __future__ import annotations

import math
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.broadcasting import (
    as_node,
    broadcast,
    broadcast_to,
    normal_axis,
    one_axis,
    promote_to_float,
    rounded,
)
from retrograd.functions.reductions import mean_over, widened
from retrograd.ir import Node, TensorType, as_dtype, float32, float64, full
from retrograd.ops import elementwise as el
from retrograd.ops.identity import StopGradient
from retrograd.ops.reduce import ReduceMax, ReduceSum
from retrograd.ops.shape import expand, reshape
from retrograd.ops.special import functions


@op_function
def softmax(x: ArrayLike, /, axis: int = -1, *, dim: int | None = None, dtype: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along an axis, without overflow.

    The largest element is subtracted first. A row of -inf throughout gives NaN, as 0/0 must.

    The shape and, if floating, the dtype of x; integers are taken as float32. The vjp of a
    cotangent g is `y (g - sum(g y))`. `AxisError` for an axis that x does not have, `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.softmax([0.0, 1.0]).tolist()
    [0.2689, 0.7311]
    """
    axis = one_axis(axis, dim, -1)
    x = promote_to_float(x if dtype is None else el.cast(as_node(x), as_dtype(dtype)))
    axes, dtype = (normal_axis(axis, x.type.rank, "softmax"),), x.dtype
    if x.shape[axes[0]] == 0:
        return x
    x = widened(x)
    top = StopGradient()(ReduceMax(axes)(x))
    e = el.exp(x - expand(top, x.shape, axes))
    return el.cast(e / expand(ReduceSum(axes)(e), x.shape, axes), dtype)


@op_function
def softmax_terms(x: ArrayLike, allowed: ArrayLike | None, /, empty: bool) -> Any:
    """`exp(x - max(x))` along the last axis, and its sum, of which that axis is kept with size 1.

    Where `allowed`, which broadcasts to x, is false the term is 0, whatever x is, and does not
    count for the maximum. If rows may be `empty`, all of them hidden or -inf, those have terms of 0
    and the sum 1; otherwise they give NaN. Nothing flows back through the maximum.
    """
    x = as_node(x)
    axes = (x.type.rank - 1,)
    kept = (*x.shape[:-1], 1)
    if x.shape[-1] == 0:
        return x, full(1, TensorType(x.dtype, kept))
    lowest = full(-math.inf, x.type)
    if allowed is not None:
        allowed = broadcast_to(as_node(allowed), x.shape)
    top = ReduceMax(axes)(x if allowed is None else el.select(allowed, x, lowest))
    if empty:
        none = el.eq(top, full(-math.inf, top.type))
        top = el.select(none, full(0, top.type), top)
    above = x - expand(StopGradient()(top), x.shape, axes)
    terms = el.exp(above if allowed is None else el.select(allowed, above, lowest))
    total = ReduceSum(axes)(terms)
    if empty:
        total = el.select(el.eq(total, full(0, total.type)), full(1, total.type), total)
    return terms, reshape(total, kept)


@op_function
def log_softmax(
    x: ArrayLike, /, axis: int = -1, *, dim: int | None = None, dtype: Any = None
) -> Any:
    """`x - logsumexp(x)` along an axis.

    The largest element is subtracted first, so that digits are not lost beside large ones.

    The shape and, if floating, the dtype of x; integers are taken as float32. `AxisError` for an
    axis that x does not have, `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.log_softmax([0.0, 1.0]).tolist()
    [-1.3133, -0.3133]
    """
    axis = one_axis(axis, dim, -1)
    x = promote_to_float(x if dtype is None else el.cast(as_node(x), as_dtype(dtype)))
    axes = (normal_axis(axis, x.type.rank, "log_softmax"),)
    if x.shape[axes[0]] == 0:
        return x
    wide = el.cast(x, float32) if x.dtype.is_half else x
    top = StopGradient()(ReduceMax(axes)(wide))
    shifted = wide - expand(el.keep_if(el.isfinite(top), top), x.shape, axes)
    total = ReduceSum(axes)(el.exp(shifted))
    return el.cast(shifted - expand(el.log(total), x.shape, axes), x.dtype)


@op_function
def gelu(x: ArrayLike, /, approximate: str = "none") -> Any:
    """`x * Phi(x)`, Phi the normal distribution function (Hendrycks, Gimpel, arXiv:1606.08415).

    `approximate="tanh"` computes `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3)))` instead.

    Elementwise: the result has the shape of x; integers are taken as float32. `OptionError` for
    another `approximate`, `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.gelu([-1.0, 1.0]).tolist()
    [-0.1587, 0.8413]
    """
    x = promote_to_float(x)
    if approximate == "none":
        return el.cast(_times_normal(x), x.dtype)
    if approximate != "tanh":
        raise OptionError(f"gelu's approximate is 'none' or 'tanh', not {approximate!r}")
    return 0.5 * x * (1 + el.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def _times_normal(x: Node) -> Node:
    """`x Phi(x)`. In single precision by `erfc(t)` of `t = -x / sqrt(2)`, which changes by a factor
    of `1 - 2 t e` where t, rounded, lacks e: of numbers with half of the digits products are exact,
    so that is found."""
    if x.dtype is float64:
        return x * functions.ndtr(x)
    x = el.cast(x, float32)
    root = -math.sqrt(0.5)
    high = round(root * 2**12) / 2**12
    a = el.clamp(StopGradient()(x), full(-32, x.type), full(32, x.type))
    t = a * root
    h = el.round(a * 2.0**6) * 2.0**-6
    lacks = (h * high - t) + (h * (root - high) + (a - h) * root)
    return x * (0.5 * el.erfc(x * root) * (1 - 2 * (el.relu(t) * lacks)))


@op_function
def silu(x: ArrayLike, /) -> Any:
    """`x * sigmoid(x)`.

    Elementwise: the result has the shape of x; integers are taken as float32. Derivative: `s (1 + x
    (1 - s))` with `s = sigmoid(x)`. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.silu([-1.0, 1.0]).tolist()
    [-0.2689, 0.7311]
    """
    x = promote_to_float(x)
    return x * el.sigmoid(x)


@op_function
def log_sigmoid(x: ArrayLike, /) -> Any:
    """`log(sigmoid(x))`, accurate in both tails.

    Elementwise: the result has the shape of x; integers are taken as float32. Derivative:
    `sigmoid(-x)`. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.log_sigmoid([-1000.0, 0.0]).tolist()
    [-1000.0, -0.6931]
    """
    return -el.softplus(-promote_to_float(x))


@op_function
def leaky_relu(x: ArrayLike, /, negative_slope: ArrayLike = 0.01) -> Any:
    """`x` where positive, `negative_slope * x` elsewhere.

    Elementwise: the shapes of x and `negative_slope` broadcast. Derivative: 1 above 0,
    `negative_slope` elsewhere. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.leaky_relu([-1.0, 2.0], 0.1).tolist()
    [-0.1, 2.0]
    """
    x, slope = broadcast(x, negative_slope, floating=True)
    return el.select(x > 0, x, slope * x)


@op_function
def elu(x: ArrayLike, /, alpha: ArrayLike = 1.0) -> Any:
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere; the second derivative at 0, of which
    there are two, is 0.

    Elementwise: the shapes of x and `alpha` broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.elu([-1.0, 2.0]).tolist()
    [-0.6321, 2.0]
    """
    x, scale = broadcast(x, alpha, floating=True)
    line = x * el.select(x > 0, full(1, x.type), scale)
    return el.select(x < 0, scale * el.expm1(x), line)


@op_function
def rms_norm(x: ArrayLike, weight: ArrayLike | None = None, /, eps: ArrayLike = 1e-5) -> Any:
    """`x / sqrt(mean(x**2) + eps)` over the last axis, times `weight` if given (Zhang, Sennrich,
    arXiv:1910.07467).

    `[..., n]` to the same, with `weight` `[n]`; integers are taken as float32. `ShapeError` where
    the weight does not broadcast, or x has no axis.

    >>> import retrograd as rg
    >>> rg.rms_norm([3.0, 4.0], eps=0.0).tolist()
    [0.8485, 1.1314]
    """
    x = promote_to_float(x)
    last, wide = (normal_axis(-1, x.type.rank, "rms_norm"),), widened(x)
    mean_square = mean_over(wide * wide, last)
    y = el.cast(wide * expand(el.rsqrt(_plus(mean_square, eps)), x.shape, last), x.dtype)
    return y if weight is None else y * _along_last(weight, x)


@op_function
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    /,
    eps: ArrayLike = 1e-5,
) -> Any:
    """`(x - mean) / sqrt(var + eps)` over the last axis, times `weight`, plus `bias`, if given (Ba,
    Kiros, Hinton, arXiv:1607.06450).

    `[..., n]` to the same, with `weight` and `bias` `[n]`; integers are taken as float32.
    `ShapeError` where they do not broadcast, or x has no axis.

    >>> import retrograd as rg
    >>> rg.layer_norm([1.0, 3.0], eps=0.0).tolist()
    [-1.0, 1.0]
    """
    x = promote_to_float(x)
    last, wide = (normal_axis(-1, x.type.rank, "layer_norm"),), widened(x)
    centred = wide - expand(mean_over(wide, last), x.shape, last)
    variance = mean_over(centred * centred, last)
    y = el.cast(centred * expand(el.rsqrt(_plus(variance, eps)), x.shape, last), x.dtype)
    y = y if weight is None else y * _along_last(weight, x)
    return y if bias is None else y + _along_last(bias, x)


def _along_last(w: ArrayLike, x: Node) -> Node:
    w = el.cast(as_node(w), x.dtype)
    if w.shape != x.shape[-1:]:
        raise ShapeError(f"a weight of shape {w.shape} for the last axis of {x.shape}")
    return expand(w, x.shape, tuple(range(x.type.rank - 1)))


def _plus(x: Node, eps: Any) -> Node:
    return x + (broadcast_to(rounded(eps, x.dtype), x.shape) if isinstance(eps, Node) else eps)
