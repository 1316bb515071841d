"""Attention."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.functional.dropout import check_probability
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


class MultiHeadAttention(Module):
    """Attention in `num_heads` subspaces (Vaswani et al., arXiv:1706.03762).

    `[batch, L, embed_dim]`, or without a batch `[L, embed_dim]`, to the same. Called with one
    argument it is self-attention; key and value may be other sequences. The parameters have the
    names and shapes of PyTorch's `MultiheadAttention`: `in_proj_weight` `[3 embed_dim, embed_dim]`
    for query, key and value in this order, `in_proj_bias`, `out_proj`.

    With `causal`, position i looks at 0 to i. `attn_mask` (`[L, S]`, or anything that broadcasts to
    `[batch, heads, L, S]`) is true where a query may look at a key, as in
    `functional.scaled_dot_product_attention`, or is added to the scores; `key_padding_mask`
    (`[batch, S]`) is true for the keys that are there. `dropout` is that of the attention weights.

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
        super().__init__()
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ShapeError(
                f"MultiHeadAttention: embed_dim {embed_dim} is no multiple of {num_heads} heads"
            )
        check_probability(dropout)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.causal = causal
        options: Any = {"generator": generator, "dtype": dtype}
        self.in_proj_weight = Parameter(init.xavier_uniform((3 * embed_dim, embed_dim), **options))
        self.in_proj_bias = Parameter(init.zeros((3 * embed_dim,), dtype=dtype)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, **options)
        if bias:
            self.out_proj.bias = Parameter(init.zeros((embed_dim,), dtype=dtype))
        self.generator = (generator or init.default_generator()).split() if dropout else None

    def forward(
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
            attn_mask=self._mask(attn_mask, key_padding_mask),
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

    def _mask(self, mask: Any, padding: Any) -> Any:
        if padding is None:
            return mask
        there = rg.expand_dims(rg.expand_dims(rg.asarray(padding), axis=-2), axis=-2)
        if mask is None:
            return there
        mask = rg.asarray(mask)
        return rg.where(there, mask, float("-inf")) if mask.dtype.is_float else mask & there

    def extra_repr(self) -> str:
        return (
            f"{self.embed_dim}, {self.num_heads}, dropout={self.dropout}, "
            f"bias={self.in_proj_bias is not None}, causal={self.causal}"
        )
