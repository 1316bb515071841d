"""Attention in several heads: `MultiheadAttention`, a shorter form of it, and grouped queries."""

from __future__ import annotations

from functools import reduce
from typing import Any

import retrograd as rg
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.functional.attention import check_heads
from retrograd.nn.functional.dropouts import check_probability
from retrograd.nn.layers.kv_cache import KVCache, SlidingKVCache
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module, shown
from retrograd.nn.module.parameter import Parameter


class MultiheadAttention(Module):
    """Attention in `num_heads` subspaces (Vaswani et al., arXiv:1706.03762): PyTorch's layer of
    that name, with its arguments, masks, results and parameters.

    `forward(query, key, value)` of `[L, N, E]`, `[S, N, K]`, `[S, N, V]`, with `batch_first` of
    `[N, L, E]` and so on, or without a batch `[L, E]`, returns (output, weights), the output in the
    shape of the query and the weights `[N, L, S]`. Masks are as in
    `functional.multi_head_attention_forward`: boolean ones are true where a query must **not**
    look, `attn_mask` (`[L, S]` or `[N num_heads, L, S]`) for pairs, `key_padding_mask` (`[N, S]`)
    for keys that are padding; floating ones are added to the scores. Parameters:
    `in_proj_weight` `[3 E, E]` for query, key and value in this order, `in_proj_bias` `[3 E]`,
    `out_proj`.

    `ShapeError` where `embed_dim` is no multiple of `num_heads`, or shapes do not fit one another;
    `DTypeError` for a mask that is neither boolean nor floating; `OptionError` for a `dropout`
    that is no probability.

    >>> import retrograd as rg
    >>> x = rg.ones((5, 2, 8))
    >>> y, weights = rg.nn.MultiheadAttention(8, 4)(x, x, x)
    >>> y.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_heads(embed_dim, num_heads)
        check_probability(dropout)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.add_zero_attn = add_zero_attn
        self.batch_first = batch_first
        options: Any = {"generator": generator, "dtype": dtype}
        k, v = kdim or embed_dim, vdim or embed_dim
        self.separate = k != embed_dim or v != embed_dim
        self.in_proj_weight: Any = None
        self.q_proj_weight: Any = None
        self.k_proj_weight: Any = None
        self.v_proj_weight: Any = None
        if self.separate:
            for name, size in zip("qkv", (embed_dim, k, v), strict=True):
                drawn = init.xavier_uniform((embed_dim, size), **options)
                setattr(self, f"{name}_proj_weight", Parameter(drawn))
        else:
            drawn = init.xavier_uniform((3 * embed_dim, embed_dim), **options)
            self.in_proj_weight = Parameter(drawn)
        self.in_proj_bias = Parameter(init.zeros((3 * embed_dim,), dtype=dtype)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, **options)
        if bias:
            self.out_proj.bias = Parameter(init.zeros((embed_dim,), dtype=dtype))
        self.bias_k: Any = None
        self.bias_v: Any = None
        if add_bias_kv:
            shape = (1, 1, embed_dim)
            self.bias_k = Parameter(init.xavier_normal(shape, **options))
            self.bias_v = Parameter(init.xavier_normal(shape, **options))
        self.generator = (generator or init.default_generator()).split() if dropout else None

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        q, k, v = (rg.asarray(x) for x in (query, key, value))
        turned = self.batch_first and q.ndim == 3
        if turned:
            q, k, v = (rg.swapaxes(x, 0, 1) for x in (q, k, v))
        y, weights = functional.multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight,
            self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            self.separate, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
            generator=self.generator,
        )  # fmt: skip
        return rg.swapaxes(y, 0, 1) if turned else y, weights

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"


class MultiHeadAttention(MultiheadAttention):
    """`MultiheadAttention` with the batch first, that returns its output alone; called with one
    argument it is self-attention.

    `[..., L, E]` to the same; key and value may be other sequences `[..., S, E]`. Parameters and
    the meaning of the masks are those of `MultiheadAttention`: boolean ones are true where a query
    must **not** look, `key_padding_mask` (`[..., S]`) for keys that are padding, `attn_mask`
    (`[L, S]`, or anything that broadcasts to `[..., num_heads, L, S]`) for pairs, or it is floating
    and added to the scores. With `causal`, position i looks at 0 to i. A query that boolean masks
    leave no key gives 0 before the last linear map. The dropout is that of the attention weights.

    `ShapeError` where `embed_dim` is no multiple of `num_heads`, or shapes do not fit one another;
    `DTypeError` for a mask that is neither boolean nor floating; `OptionError` for a `dropout`
    that is no probability.

    >>> import retrograd as rg
    >>> attention = rg.nn.MultiHeadAttention(8, 2, causal=True)
    >>> attention(rg.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        causal: bool = False,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            embed_dim, num_heads, dropout, bias, batch_first=True, generator=generator, dtype=dtype
        )
        self.causal = causal

    def forward(  # type: ignore[override]  # what is optional, and what it returns, differ
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        attn_mask: Any = None,
        key_padding_mask: Any = None,
    ) -> Tensor:
        q, k, v = (self._split(x) for x in self._projected(query, key, value))
        y = functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=_seen(attn_mask, key_padding_mask),
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal,
            generator=self.generator,
        )
        y = rg.swapaxes(y, -3, -2)
        return self.out_proj(y.reshape((*y.shape[:-2], self.embed_dim)))

    def _projected(self, query: Any, key: Any, value: Any) -> list[Tensor]:
        """Query, key and value after their linear maps."""
        e = self.embed_dim
        if key is None and value is None:
            y = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
            return [y[..., i * e : (i + 1) * e] for i in range(3)]
        key = query if key is None else key
        value = key if value is None else value
        parts = [slice(i * e, (i + 1) * e) for i in range(3)]
        bias = self.in_proj_bias
        return [
            functional.linear(x, self.in_proj_weight[s], None if bias is None else bias[s])
            for x, s in zip((query, key, value), parts, strict=True)
        ]

    def _split(self, x: Tensor) -> Tensor:
        """`[..., L, heads * width]` as `[..., heads, L, width]`."""
        width = self.embed_dim // self.num_heads
        return rg.swapaxes(x.reshape((*x.shape[:-1], self.num_heads, width)), -3, -2)

    def extra_repr(self) -> str:
        return (
            f"{self.embed_dim}, {self.num_heads}, dropout={self.dropout}, "
            f"bias={self.in_proj_bias is not None}, causal={self.causal}"
        )


class GroupedQueryAttention(Module):
    """Self-attention in which several heads of queries share a head of keys and values (Ainslie et
    al., arXiv:2305.13245): `num_kv_heads` of them, a divisor of `num_heads`; with one it is
    multi-query attention (Shazeer, arXiv:1911.02150), with `num_heads`, the default, attention as
    usual. It is causal unless `causal=False`; `window_size` is how many keys before its own
    position a query looks at, as in `functional.scaled_dot_product_attention`.

    `rotary` is applied to queries and keys, such as `nn.RotaryEmbedding(scaling=...)`. `forward(x,
    positions=None, attn_mask=None, cache=None)`: `[N, L, embed_dim]` to the same; `attn_mask`
    broadcasts to `[N, num_heads, L, S]`: boolean ones are true where a query **may** look, as in
    `scaled_dot_product_attention`, floating ones are added to the scores. With a `cache`
    (`nn.KVCache` of `num_kv_heads` heads, `make_cache`), x are the next positions, and the result
    is (output, cache). Parameters, as in Llama: `q_proj`, `k_proj`, `v_proj`, `o_proj`.

    `ShapeError` where heads do not divide or shapes do not fit, `OptionError` for a `dropout` that
    is no probability, and for a cache without `causal`.

    >>> import retrograd as rg
    >>> attention = rg.nn.GroupedQueryAttention(8, 4, 2, rotary=rg.nn.RotaryEmbedding())
    >>> x = rg.ones((1, 3, 8))
    >>> cache = attention.make_cache(1, 16)
    >>> y, cache = attention(x[:, :2], cache=cache)
    >>> y, cache = attention(x[:, 2:], cache=cache)
    >>> y.shape, bool((y - attention(x)[:, 2:]).abs().max() < 1e-6)
    ((1, 1, 8), True)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        causal: bool = True,
        window_size: int | None = None,
        rotary: Any = None,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        groups = num_heads if num_kv_heads is None else num_kv_heads
        if head_dim is None:
            check_heads(embed_dim, num_heads)
            head_dim = embed_dim // num_heads
        if min(groups, num_heads, head_dim) < 1 or num_heads % groups:
            raise ShapeError(
                f"GroupedQueryAttention: num_heads, {num_heads}, is a multiple of num_kv_heads, "
                f"{groups}"
            )
        check_probability(dropout)
        self.embed_dim, self.head_dim = embed_dim, head_dim
        self.num_heads, self.num_kv_heads = num_heads, groups
        self.dropout, self.causal, self.window_size = dropout, causal, window_size
        self.rotary = rotary
        options: Any = {"bias": bias, "generator": generator, "dtype": dtype}
        self.q_proj = Linear(embed_dim, num_heads * head_dim, **options)
        self.k_proj = Linear(embed_dim, groups * head_dim, **options)
        self.v_proj = Linear(embed_dim, groups * head_dim, **options)
        self.o_proj = Linear(num_heads * head_dim, embed_dim, **options)
        self.generator = (generator or init.default_generator()).split() if dropout else None

    def make_cache(self, batch: int, size: int, dtype: Any = None) -> KVCache | SlidingKVCache:
        """An empty cache for `size` positions; with a `window_size`, of the window alone."""
        kind: type[KVCache | SlidingKVCache] = KVCache
        if self.window_size is not None and self.window_size + 1 < size:
            kind, size = SlidingKVCache, self.window_size + 1
        dtype = self.k_proj.weight.dtype if dtype is None else dtype
        return kind.zeros(batch, self.num_kv_heads, size, self.head_dim, dtype)

    def forward(
        self, input: Any, positions: Any = None, attn_mask: Any = None, cache: Any = None
    ) -> Any:
        x = rg.asarray(input)
        if cache is not None and not self.causal:
            raise OptionError("GroupedQueryAttention: a cache is for causal attention")
        if positions is not None:
            positions = rg.asarray(positions)
            # One for each sample is one for all heads of it.
            positions = positions if positions.ndim < 2 else rg.expand_dims(positions, axis=-2)
        elif cache is not None:
            positions = cache.positions(x.shape[-2])
        q, k, v = (self._heads(f(x)) for f in (self.q_proj, self.k_proj, self.v_proj))
        if self.rotary is not None:
            q, k = self.rotary(q, positions), self.rotary(k, positions)
        causal, window = self.causal, self.window_size
        if cache is not None:
            cache, k, v, seen = cache.update(k, v, window)
            attn_mask, causal, window = _both(attn_mask, seen), False, None
        y = functional.scaled_dot_product_attention(
            q, k.astype(q.dtype), v.astype(q.dtype), attn_mask=attn_mask,
            dropout_p=self.dropout if self.training else 0.0, is_causal=causal,
            enable_gqa=self.num_heads != self.num_kv_heads, generator=self.generator,
            window_size=window,
        )  # fmt: skip
        y = rg.swapaxes(y, -3, -2)
        y = self.o_proj(y.reshape((*y.shape[:-2], self.num_heads * self.head_dim)))
        return y if cache is None else (y, cache)

    def _heads(self, x: Tensor) -> Tensor:
        """`[..., L, heads * width]` as `[..., heads, L, width]`."""
        heads: Any = x.shape[-1] // self.head_dim
        return rg.swapaxes(x.reshape((*x.shape[:-1], heads, self.head_dim)), -3, -2)

    def extra_repr(self) -> str:
        return shown(
            self, "embed_dim", "num_heads", "num_kv_heads", "head_dim", "causal", "window_size"
        )


def _both(mask: Any, seen: Tensor) -> Tensor:
    """A mask of `scaled_dot_product_attention`, if any, where a boolean one is true as well."""
    if mask is None:
        return seen
    mask = rg.asarray(mask)
    return mask & seen if mask.dtype is rg.bool else rg.where(seen, mask, float("-inf"))


def _seen(mask: Any, padding: Any) -> Any:
    """Both masks as one of `scaled_dot_product_attention`, whose boolean ones are true where a
    query may look."""
    mask, padding = (None if m is None else rg.asarray(m) for m in (mask, padding))
    if padding is not None:
        padding = rg.expand_dims(rg.expand_dims(padding, axis=-2), axis=-2)
    masks = [m for m in (mask, padding) if m is not None]
    for m in masks:
        if m.dtype is not rg.bool and not m.dtype.is_float:
            raise DTypeError(f"a mask of attention is boolean or floating, not {m.dtype}")
    hidden = [m for m in masks if m.dtype is rg.bool]
    added = [m for m in masks if m.dtype is not rg.bool]
    if not added:
        return ~reduce(rg.logical_or, hidden) if hidden else None
    total = reduce(rg.add, added)
    return reduce(lambda m, h: rg.where(h, float("-inf"), m), hidden, total)
