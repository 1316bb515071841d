"""Attention and rotary positions."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.interop.onnx.dtypes import dtype_of
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.nn import functional as F


def _heads(x: Any, count: int) -> Any:
    """[batch, time, heads x size] as [batch, heads, time, size]."""
    return rg.swapaxes(rg.reshape(x, (*x.shape[:2], count, -1)), 1, 2)


@rule("Attention")
def attention(
    call: NodeCall,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    past_k: Any = None,
    past_v: Any = None,
    lengths: Any = None,
) -> Any:
    """softmax(scale Q K^T + mask) V, with a cache before K and V, grouped queries, capped scores.

    The usual form is one fused operation; what else a model asks for is computed step by step.
    """
    is_flat = q.ndim == 3
    if is_flat:
        q = _heads(q, call.get("q_num_heads"))
        k, v = (_heads(x, call.get("kv_num_heads")) for x in (k, v))
    if past_k is not None:
        k, v = rg.concat([past_k, k], axis=2), rg.concat([past_v, v], axis=2)
    scale = call.get("scale", None)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    limit, causal = call.get("softcap", 0.0), bool(call.get("is_causal", 0))
    windows = {"left_window_size", "right_window_size", "softmax_precision"}
    plain = not limit and not windows & {*call.attributes} and not call.wants(3)
    if plain and mask is None and lengths is None and past_k is None and not (
        causal and q.shape[2] != k.shape[2]
    ) and q.dtype is rg.float32:  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)
        scores = None
    else:
        y, scores = _by_steps(call, (q, k, v), mask, lengths, scale, past_k)
    if is_flat:
        y = rg.swapaxes(y, 1, 2)
        y = rg.reshape(y, (*y.shape[:2], -1))
    return y, k, v, scores


def _by_steps(
    call: NodeCall, qkv: tuple[Any, Any, Any], mask: Any, lengths: Any, scale: float, past: Any
) -> tuple[Any, Any]:
    q, k, v = qkv
    if q.shape[1] != k.shape[1]:
        k, v = (rg.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    # Half of the scale on each side keeps the product in range, as the standard writes it.
    root = scale**0.5
    scores = rg.matmul((q * root).astype(q.dtype), rg.swapaxes((k * root).astype(k.dtype), -1, -2))
    mode = call.get("qk_matmul_output_mode", 0)
    kept = scores
    limit = call.get("softcap", 0.0)
    if limit:
        scores = limit * rg.tanh(scores / limit)
    kept = scores if mode == 1 else kept
    bias = _bias(call, q, k, mask, lengths, past)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    kept = scores if mode == 2 else kept
    weights = _softmax(scores, call)
    kept = weights if mode == 3 else kept
    return rg.matmul(weights, v).astype(q.dtype), kept


def _softmax(scores: Any, call: NodeCall) -> Any:
    """Rows that are masked throughout give 0."""
    number = call.get("softmax_precision", None)
    wide = scores if number is None else scores.astype(dtype_of(number, "softmax_precision"))
    top = rg.max(wide, axis=-1, keepdims=True)
    top = rg.stop_gradient(rg.where(rg.isfinite(top), top, 0))
    powers = rg.exp(wide - top)
    total = rg.sum(powers, axis=-1, keepdims=True)
    return (powers / rg.where(total == 0, 1, total)).astype(scores.dtype)


def _bias(call: NodeCall, q: Any, k: Any, mask: Any, lengths: Any, past: Any) -> Any:
    """What is added to scores: the mask, and minus infinity at what is hidden."""
    rows, columns = q.shape[2], k.shape[2]
    hidden: Any = None
    at: Any = rg.arange(rows)[:, None]
    if past is not None:
        at = at + past.shape[2]
    elif lengths is not None:  # the last queries belong to the last keys that are there
        at = at + rg.reshape(lengths - rows, (-1, 1, 1, 1))
    left, right = call.get("left_window_size", -1), call.get("right_window_size", -1)
    if call.get("is_causal", 0):
        hidden = rg.arange(columns) > at
    for ends in (
        rg.arange(columns) < at - left if left >= 0 else None,
        rg.arange(columns) > at + right if right >= 0 else None,
    ):
        hidden = ends if hidden is None else hidden if ends is None else hidden | ends
    if lengths is not None:
        beyond = rg.arange(columns) >= rg.reshape(lengths, (-1, 1, 1, 1))
        hidden = beyond if hidden is None else hidden | beyond
    if mask is not None and mask.shape[-1] != columns:  # what it does not reach is hidden
        short = columns - mask.shape[-1]
        fill: Any = False if mask.dtype is rg.bool else -float("inf")
        mask = rg.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, short)], value=fill)
    bias = mask
    if mask is not None and mask.dtype is rg.bool:
        hidden, bias = (~mask if hidden is None else hidden | ~mask), None
    if hidden is None:
        return bias
    base = rg.zeros((), dtype=q.dtype) if bias is None else bias
    return rg.where(hidden, -float("inf"), base)


@rule("RotaryEmbedding")
def rotary_embedding(call: NodeCall, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    """Pairs of elements turned by an angle of their position. Su et al., "RoFormer", 2021."""
    is_flat = x.ndim == 3
    if is_flat:
        x = rg.reshape(x, (*x.shape[:2], call.get("num_heads"), -1))
    else:
        x = rg.swapaxes(x, 1, 2)  # batch, time, heads, size
    size = call.get("rotary_embedding_dim", 0) or x.shape[-1]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos[..., : size // 2][:, :, None], sin[..., : size // 2][:, :, None]
    turned, rest = x[..., :size], x[..., size:]
    if call.get("interleaved", 0):
        a, b = turned[..., 0::2], turned[..., 1::2]
        y = rg.stack([cos * a - sin * b, sin * a + cos * b], axis=-1)
        y = rg.reshape(y, turned.shape)
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
        y = rg.concat([cos * a - sin * b, sin * a + cos * b], axis=-1)
    y = rg.concat([y, rest], axis=-1) if size != x.shape[-1] else y
    return rg.reshape(y, (*y.shape[:2], -1)) if is_flat else rg.swapaxes(y, 1, 2)
