"""Attention, alone and in several heads, as PyTorch has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import retrograd as rg
from retrograd.eager.dispatch import composite
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.activations import softmax_terms
from retrograd.functions.broadcasting import broadcast_shapes
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Shape
from retrograd.ir.source import located
from retrograd.nn.functional.affine import here, linear
from retrograd.nn.functional.dropouts import dropout

Window = int | tuple[int | None, int | None] | None


@located
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    generator: Generator | None = None,
    window_size: Window = None,
) -> Tensor:
    """`softmax(query key^T * scale) value` (Vaswani et al., arXiv:1706.03762).

    `[..., L, E]`, `[..., S, E]`, `[..., S, V]` give `[..., L, V]`; leading axes broadcast. `scale`
    is `1 / sqrt(E)` by default. `attn_mask` broadcasts to `[..., L, S]`: a boolean one is true
    where a query may look at a key, a floating one is added to the scores. With `is_causal` query
    i looks at keys 0 to i. A query that masks leave no key gives 0. Half precision is computed in
    float32.

    `window_size` is how many keys before its own position, and after it, a query looks at (a
    number for both; None for no limit): sliding windows (Beltagy et al., arXiv:2004.05150). With
    `is_causal` there are none after. What `is_causal` and `window_size` hide is not computed,
    forward and backward.

    With `enable_gqa` keys and values may have fewer heads (axis -3) than queries, by a whole
    factor: each of theirs serves that many heads of queries (Ainslie et al., arXiv:2305.13245).

    `ShapeError` where the shapes do not fit, `DTypeError` for a mask that is neither boolean nor
    floating, `OptionError` for a window of a negative size.

    >>> import retrograd as rg
    >>> x = rg.ones((2, 5, 4))
    >>> rg.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).shape
    (2, 5, 4)
    """
    if dropout_p:  # which draws
        drop = partial(dropout, p=dropout_p, generator=generator)
        options = is_causal, scale, enable_gqa, window_size, drop
        return _attention(query, key, value, attn_mask, *options)
    return _undropped(query, key, value, attn_mask, is_causal, scale, enable_gqa, window_size)


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float | None,
    enable_gqa: bool, window_size: Window, drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:  # fmt: skip
    """The same with a function that drops shares."""
    q, k, v = rg.asarray(query), rg.asarray(key), rg.asarray(value)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"attention{here()} of query {q.shape}, key {k.shape}, value {v.shape}: query and key "
            "must agree in the last axis, key and value in the last but one"
        )
    if enable_gqa and (shared := _queries_per_head(q, k, v)) > 1:
        q, k, v, attn_mask = _by_groups(q, k, v, attn_mask, shared)
        y = _attention(q, k, v, attn_mask, is_causal, scale, False, window_size, drop)
        return y.reshape((*y.shape[:-4], q.shape[-4] * shared, *y.shape[-2:]))
    dtype = rg.result_type(q, k, v)
    if dtype.is_half:
        q, k, v = (x.astype(rg.float32) for x in (q, k, v))
    width = q.shape[-1]
    scores = (q * (root_scale(width, q) if scale is None else scale)) @ k.mT
    rows, keys = scores.shape[-2:]
    allowed, empty = _in_window(rows, keys, window_size, is_causal), False
    if attn_mask is not None:
        mask, empty = rg.asarray(attn_mask), True
        _check_mask(mask, scores.shape)
        if mask.dtype.is_float:
            scores = scores + mask.astype(scores.dtype)
        else:
            allowed = mask if allowed is None else mask & allowed
    # The output is divided by the sum, not the share of each key, as in FlashAttention (Dao et al.,
    # arXiv:2205.14135): it has fewer elements, and its gradient needs no sum over the keys.
    shares, total = softmax_terms(scores, allowed, empty=empty or window_size is not None)
    y = (shares if drop is None else drop(shares)) @ v
    return (y / total).astype(dtype) if dtype.is_half else y / total


_undropped = composite(_attention)


def root_scale(width: int | Dim, x: Tensor) -> Any:
    """`1 / sqrt(width)`, a factor of x; of rows of no elements any will do."""
    if not isinstance(width, Dim):
        return 1 / math.sqrt(max(width, 1))
    return (1 / rg.sqrt(rg.asarray(width, dtype=rg.float64))).astype(x.dtype)


def _queries_per_head(q: Tensor, k: Tensor, v: Tensor) -> Any:
    """How many heads of queries share one of keys and values."""
    for x in (k, v):
        if min(x.ndim, q.ndim) < 3 or not x.shape[-3] or q.shape[-3] % x.shape[-3]:
            raise ShapeError(
                f"attention{here()} with enable_gqa: the heads of the query, {q.shape}, are a "
                f"multiple of those of key and value, {x.shape} (axis -3)"
            )
    if k.shape[-3] != v.shape[-3]:
        raise ShapeError(
            f"attention{here()} with enable_gqa: key {k.shape} and value {v.shape} have as many "
            "heads (axis -3)"
        )
    return q.shape[-3] // k.shape[-3]


def _by_groups(q: Tensor, k: Tensor, v: Tensor, attn_mask: Any, shared: Any) -> list[Any]:
    """Queries `[..., heads, shared, L, E]`, and the rest with an axis of size 1 in that place, so
    that keys and values are not copied for each head of queries."""
    heads: Any = k.shape[-3]
    mask: Any = attn_mask
    if attn_mask is not None:
        mask = rg.asarray(attn_mask)
        lead = broadcast_shapes(q.shape[:-3], k.shape[:-3])
        _check_mask(mask, (*lead, q.shape[-3], q.shape[-2], k.shape[-2]))
        if mask.ndim > 2:
            each = (1, 1) if mask.shape[-3] == 1 else (heads, shared)
            mask = mask.reshape((*mask.shape[:-3], *each, *mask.shape[-2:]))
    q = q.reshape((*q.shape[:-3], heads, shared, *q.shape[-2:]))
    return [q, rg.expand_dims(k, axis=-3), rg.expand_dims(v, axis=-3), mask]


def _in_window(rows: int | Dim, keys: int | Dim, size: Window, causal: bool) -> Tensor | None:
    """Which keys a query may look at by their positions; None for all."""
    everything = rg.ones((rows, keys), dtype=rg.bool)
    before, after = (size, size) if size is None or isinstance(size, int) else size
    if any(n is not None and n < 0 for n in (before, after)):
        raise OptionError(f"attention{here()}: the sizes of a window, {size}, are not negative")
    after = 0 if causal else after
    parts = [] if after is None else [rg.tril(everything, k=after)]
    parts += [] if before is None else [rg.triu(everything, k=-before)]
    return reduce(rg.logical_and, parts) if parts else None


def _check_mask(mask: Tensor, scores: Shape) -> None:
    if not (mask.dtype.is_float or mask.dtype is rg.bool):
        raise DTypeError(f"attention{here()}: a mask is boolean or floating, not {mask.dtype}")
    sizes = zip(reversed(mask.shape), reversed(scores), strict=False)
    if mask.ndim > len(scores) or any(m not in (1, n) for m, n in sizes):
        raise ShapeError(
            f"attention{here()}: the mask, {mask.shape}, does not broadcast to {scores}, "
            "(..., queries, keys)"
        )


@located
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    generator: Generator | None = None,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes, with PyTorch's arguments: (output, weights).

    query is `[L, N, E]` or `[L, E]`, key and value `[S, N, ...]` or `[S, ...]`. Masks that are
    boolean are true where a query must not look: `attn_mask` `[L, S]` or `[N num_heads, L, S]`,
    `key_padding_mask` `[N, S]` or `[S]`; floating ones are added to the scores. Weights are
    `[N, L, S]`, the mean of the heads, or `[N, num_heads, L, S]`. `is_causal` says of a mask that
    it is the causal one, which is used where none is given. Gradients go to everything.

    `ShapeError` where sizes or masks do not fit, `DTypeError` for a mask that is neither boolean
    nor floating.

    >>> import retrograd as rg
    >>> x, w, b = rg.ones((5, 2, 4)), rg.ones((12, 4)), rg.zeros((12,))
    >>> attend = rg.nn.functional.multi_head_attention_forward
    >>> y, weights = attend(
    ...     x, x, x, 4, 2, w, b, None, None, False, 0.0, rg.ones((4, 4)), rg.zeros((4,))
    ... )
    >>> y.shape, weights.shape
    ((5, 2, 4), (2, 5, 5))
    """
    q, k, v = (rg.asarray(x) for x in (query, key, value))
    alone = q.ndim == 2
    if alone:
        q, k, v = (rg.expand_dims(x, axis=1) for x in (q, k, v))
    _check(q, k, v, embed_dim_to_check, num_heads)
    length, batch = q.shape[:2]
    width = embed_dim_to_check // num_heads
    weights = (
        [q_proj_weight, k_proj_weight, v_proj_weight]
        if use_separate_proj_weight
        else _thirds(in_proj_weight, embed_dim_to_check)
    )
    biases = _thirds(in_proj_bias, embed_dim_to_check)
    maps = zip((q, k, v), weights, biases, strict=True)
    q, k, v = (linear(x, w, b) for x, w, b in maps)
    more = 0
    if bias_k is not None and bias_v is not None:
        shape = (1, batch, embed_dim_to_check)
        k = rg.concat([k, rg.broadcast_to(rg.asarray(bias_k), shape)], axis=0)
        v = rg.concat([v, rg.broadcast_to(rg.asarray(bias_v), shape)], axis=0)
        more += 1
    heads = (batch, num_heads)
    q, k, v = (_split(x, num_heads, width) for x in (q, k, v))
    k = k if static_k is None else rg.asarray(static_k).reshape((*heads, -1, width))
    v = v if static_v is None else rg.asarray(static_v).reshape((*heads, -1, width))
    if add_zero_attn:
        none = rg.zeros((*heads, 1, width), dtype=k.dtype)
        k, v = rg.concat([k, none], axis=-2), rg.concat([v, none], axis=-2)
        more += 1
    scores = (q * root_scale(width, q)) @ k.mT
    if is_causal and attn_mask is None:
        attn_mask = ~rg.tril(rg.ones((length, scores.shape[-1] - more), dtype=rg.bool))
    scores = _masked(scores, attn_mask, key_padding_mask, more, alone)
    shares = dropout(rg.softmax(scores), dropout_p, training and dropout_p > 0, generator=generator)
    y = rg.permute_dims(shares @ v, (2, 0, 1, 3)).reshape((length, batch, embed_dim_to_check))
    y = linear(y, out_proj_weight, out_proj_bias)
    shown = shares.mean(axis=1) if average_attn_weights else shares
    if alone:
        y, shown = y[:, 0], shown[0]
    return y, shown if need_weights else None


def _check(q: Tensor, k: Tensor, v: Tensor, size: int, heads: int) -> None:
    if size % heads or q.ndim != 3 or q.shape[-1] != size:
        raise ShapeError(
            f"multi-head attention of {heads} heads takes queries [L, N, {size}] or [L, {size}], "
            f"the size a multiple of the number of heads, not the shape {q.shape}"
        )
    if k.ndim != 3 or v.ndim != 3 or k.shape[:2] != v.shape[:2] or k.shape[1] != q.shape[1]:
        raise ShapeError(
            f"multi-head attention: query {q.shape}, key {k.shape}, value {v.shape} are [L, N, E], "
            "[S, N, K], [S, N, V] of the same N, and key and value of the same S"
        )


def _thirds(x: Any, size: int) -> list[Any]:
    return [None if x is None else x[i * size : (i + 1) * size] for i in range(3)]


def _split(x: Tensor, heads: int, width: int) -> Tensor:
    """`[L, N, heads * width]` as `[N, heads, L, width]`."""
    return rg.permute_dims(x.reshape((*x.shape[:2], heads, width)), (1, 2, 0, 3))


def _masked(scores: Tensor, mask: Any, padding: Any, more: int, alone: bool) -> Tensor:
    """Scores `[N, heads, L, S + more]` with both masks; all see what was added to the keys."""
    batch, heads, length, keys = scores.shape
    inner: Any = keys - more if isinstance(keys, int) else keys
    if mask is not None:
        given = rg.asarray(mask)
        if given.ndim == 3:
            given = given.reshape((batch, heads, length, inner))
        if given.shape[-2:] != (length, inner) or given.ndim not in (2, 4):
            raise ShapeError(
                f"attn_mask is [{length}, {inner}] or [{batch} * {heads}, {length}, {inner}], not "
                f"{rg.asarray(mask).shape}"
            )
        scores = scores + _added(given, scores, more, "attn_mask")
    if padding is not None:
        given = rg.asarray(padding)
        given = rg.expand_dims(given, axis=0) if alone else given
        if given.shape != (batch, inner):
            raise ShapeError(f"key_padding_mask is [{batch}, {inner}], not {given.shape}")
        wide = given.reshape((batch, 1, 1, inner))
        scores = scores + _added(wide, scores, more, "key_padding_mask")
    return scores


def _added(mask: Tensor, scores: Tensor, more: int, what: str) -> Tensor:
    """What a mask adds to scores."""
    if mask.dtype is rg.bool:
        mask = rg.where(mask, rg.asarray(-math.inf, dtype=scores.dtype), 0.0)
    elif not mask.dtype.is_float:
        raise DTypeError(f"{what} is boolean or floating, not {mask.dtype}")
    if more:
        mask = rg.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, more)])
    return mask.astype(scores.dtype)


def check_heads(embed_dim: int, num_heads: int) -> None:
    """Refuse sizes that do not fit."""
    if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
        raise ShapeError(f"embed_dim {embed_dim} is no multiple of {num_heads} heads")
