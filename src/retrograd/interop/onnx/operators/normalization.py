"""Normalizations."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.interop.onnx.dtypes import dtype_of
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import number
from retrograd.nn import functional as F


def _along_channels(v: Any, rank: int) -> Any:
    return rg.reshape(v, (1, -1, *(1,) * (rank - 2)))


@rule("BatchNormalization")
def batch_normalization(call: NodeCall, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    """By the given statistics; by those of the batch, which move the given ones, in training."""
    eps = call.get("epsilon", 1e-5)
    if not call.get("training_mode", 0):
        return _normalized(x, mean, var, scale, bias, eps)
    axes = (0, *range(2, x.ndim))
    m = call.get("momentum", 0.9)
    here, spread = rg.mean(x, axis=axes), rg.var(x, axis=axes)
    y = _normalized(x, here, spread, scale, bias, eps)
    return y, m * mean + (1 - m) * here, m * var + (1 - m) * spread


def _normalized(x: Any, mean: Any, var: Any, scale: Any, bias: Any, eps: float) -> Any:
    mean, var, scale, bias = (_along_channels(v, x.ndim) for v in (mean, var, scale, bias))
    return ((x - mean) * (scale * rg.rsqrt(var + eps)) + bias).astype(x.dtype)


@rule("InstanceNormalization")
def instance_normalization(call: NodeCall, x: Any, scale: Any, bias: Any) -> Any:
    axes = tuple(range(2, x.ndim))
    mean, var = rg.mean(x, axis=axes, keepdims=True), rg.var(x, axis=axes, keepdims=True)
    scale, bias = _along_channels(scale, x.ndim), _along_channels(bias, x.ndim)
    return (x - mean) * (scale * rg.rsqrt(var + call.get("epsilon", 1e-5))) + bias


@rule("LayerNormalization")
def layer_normalization(call: NodeCall, x: Any, scale: Any, bias: Any = None) -> Any:
    """Over the axes from `axis` on; also the mean and the inverse deviation."""
    axis, eps = call.get("axis", -1) % max(x.ndim, 1), call.get("epsilon", 1e-5)
    alone = not (call.wants(1) or call.wants(2)) and x.dtype is rg.float32
    fits = scale.shape == x.shape[-1:] and (bias is None or bias.shape == scale.shape)
    if alone and fits and axis == x.ndim - 1:
        return F.layer_norm(x, x.shape[-1:], scale, bias, eps=eps)
    stash = dtype_of(call.get("stash_type", 1), "stash_type")
    wide = x.astype(stash) if x.dtype is not rg.float64 else x
    axes = tuple(range(axis, x.ndim))
    mean = rg.mean(wide, axis=axes, keepdims=True)
    inverse = rg.rsqrt(rg.var(wide, axis=axes, keepdims=True) + eps)
    y = ((wide - mean) * inverse).astype(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@rule("RMSNormalization")
def rms_normalization(call: NodeCall, x: Any, scale: Any) -> Any:
    axis, eps = call.get("axis", -1) % max(x.ndim, 1), call.get("epsilon", 1e-5)
    stash = dtype_of(call.get("stash_type", 1), "stash_type")
    wide = x.astype(stash) if x.dtype is not rg.float64 else x
    square = rg.mean(rg.square(wide), axis=tuple(range(axis, x.ndim)), keepdims=True)
    return (wide * rg.rsqrt(square + eps)).astype(x.dtype) * scale


@rule("GroupNormalization")
def group_normalization(call: NodeCall, x: Any, scale: Any, bias: Any) -> Any:
    """Scale and bias by channels from opset 21 on, by groups before."""
    groups, eps = call.get("num_groups"), call.get("epsilon", 1e-5)
    n, _c = x.shape[:2]
    parts = rg.reshape(x, (n, groups, -1))
    mean, var = rg.mean(parts, axis=2, keepdims=True), rg.var(parts, axis=2, keepdims=True)
    normal = (parts - mean) * rg.rsqrt(var + eps)
    if call.opset < 21:
        normal = normal * rg.reshape(scale, (1, -1, 1)) + rg.reshape(bias, (1, -1, 1))
        return rg.reshape(normal, x.shape)
    normal = rg.reshape(normal, x.shape)
    return normal * _along_channels(scale, x.ndim) + _along_channels(bias, x.ndim)


@rule("LRN")
def local_response_normalization(call: NodeCall, x: Any) -> Any:
    """x / (bias + alpha / size * the sum of squares in neighbouring channels) ** beta."""
    size = call.get("size")
    low = (size - 1) // 2
    widths = [(0, 0), (low, size - 1 - low), *[(0, 0)] * (x.ndim - 2)]
    squares = rg.pad(rg.square(x), widths)
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    scaled = call.get("bias", 1.0) + call.get("alpha", 1e-4) / size * total
    return x / scaled ** call.get("beta", 0.75)


@rule("Dropout")
def dropout(call: NodeCall, x: Any, ratio: Any = None, training: Any = None) -> Any:
    """Nothing but in training, which a model seldom asks for: then elements are dropped by a key
    made of `seed`."""
    on = training is not None and bool(number(training, "the training mode of Dropout"))
    share = 0.5 if ratio is None or not on else float(number(ratio, "the ratio of Dropout"))
    if not on or share == 0:
        return x, rg.ones(x.shape, dtype=rg.bool)
    generator = rg.random.Generator(call.get("seed", 0))
    kept = generator.uniform(x.shape) >= share
    return rg.where(kept, x / (1 - share), 0), kept
