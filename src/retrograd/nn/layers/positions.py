"""Positions in a sequence as layers: rotary, sinusoidal, learned, and the biases of ALiBi."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.functional.dropouts import check_probability
from retrograd.nn.module.functional_module import FunctionalModule
from retrograd.nn.module.module import Module, shown
from retrograd.nn.module.parameter import Parameter


class RotaryEmbedding(FunctionalModule):
    """`functional.rotary_embedding` with these options: queries and keys turned by their position
    (Su et al., arXiv:2104.09864). `scaling` is the `rope_scaling` of configurations of Hugging
    Face, such as Llama 3's; see `functional.rotary_frequencies`. It has no parameters.

    `[..., L, E]` with `positions` `[L]`, or what broadcasts to `[..., L]`, by default from 0 on, to
    the same. `ShapeError` where the shapes do not fit, `OptionError` for an odd `dim` and a
    `scaling` that there is not.

    >>> import retrograd as rg
    >>> rotary = rg.nn.RotaryEmbedding(8)
    >>> rotary(rg.ones((2, 4, 5, 8))).shape
    (2, 4, 5, 8)
    """

    function = staticmethod(functional.rotary_embedding)

    def __init__(
        self,
        dim: int | None = None,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        scaling: Mapping[str, Any] | None = None,
    ) -> None:
        chosen = None if scaling is None else dict(scaling)
        functional.rotary_frequencies(dim or 2, base, chosen, 1)  # which checks them
        super().__init__(dim=dim, base=base, interleaved=interleaved, scaling=chosen)

    def forward(self, input: Any, positions: Any = None) -> Tensor:
        return super().forward(input, positions=positions)


class _Added(Module):
    """Positions that are added to the input, then dropout."""

    def __init__(self, max_len: int, dim: int, dropout: float, generator: Generator | None) -> None:
        super().__init__()
        name = type(self).__name__
        if max_len < 1 or dim < 1:
            raise ShapeError(f"{name}({max_len}, {dim}): sizes are at least 1")
        check_probability(dropout)
        self.max_len = max_len
        self.dim = dim
        self.dropout = dropout
        self.generator = (generator or init.default_generator()).split() if dropout else None

    def _rows(self, positions: Any, length: Any) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Any, positions: Any = None) -> Tensor:
        x = rg.asarray(input)
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ShapeError(f"{type(self).__name__}: [..., L, {self.dim}] expected, not {x.shape}")
        length = x.shape[-2]
        if positions is None and isinstance(length, int) and length > self.max_len:
            raise ShapeError(
                f"{type(self).__name__}: {length} positions of {self.max_len}; make it with a "
                "larger max_len"
            )
        y = x + self._rows(positions, length).astype(x.dtype)
        return functional.dropout(y, self.dropout, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return shown(self, "max_len", "dim", "dropout")


class SinusoidalPositionalEncoding(_Added):
    """Adds `functional.sinusoidal_positions` to the input (Vaswani et al., arXiv:1706.03762), then
    drops out. It has no parameters and nothing in its state but the dropout's.

    `[..., L, dim]` with `positions` `[L]`, or what broadcasts to `[..., L]`, by default from 0 on,
    to the same. `ShapeError` for more than `max_len` positions and other sizes.

    >>> import retrograd as rg
    >>> rg.nn.SinusoidalPositionalEncoding(16, 2)(rg.zeros((1, 2, 2))).tolist()
    [[[0.0, 1.0], [0.8415, 0.5403]]]
    """

    def __init__(
        self,
        max_len: int,
        dim: int,
        dropout: float = 0.0,
        base: float = 10000.0,
        *,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(max_len, dim, dropout, generator)
        if not base > 0:
            raise OptionError(f"SinusoidalPositionalEncoding: base is positive, not {base}")
        self.base = base

    def _rows(self, positions: Any, length: Any) -> Tensor:
        where = length if positions is None else positions
        return functional.sinusoidal_positions(where, self.dim, self.base, dtype=rg.float64)


class LearnedPositionalEncoding(_Added):
    """Adds a learned vector for each position, `weight` `[max_len, dim]`, normal with the standard
    deviation 0.02 at first as in GPT-2, then drops out.

    `[..., L, dim]` with `positions` `[L]`, or what broadcasts to `[..., L]`, by default from 0 on,
    to the same. `ShapeError` for more than `max_len` positions and other sizes, `IndexRangeError`
    for a position that there is not.

    >>> import retrograd as rg
    >>> rg.nn.LearnedPositionalEncoding(16, 4)(rg.zeros((2, 5, 4))).shape
    (2, 5, 4)
    """

    def __init__(
        self,
        max_len: int,
        dim: int,
        dropout: float = 0.0,
        std: float = 0.02,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(max_len, dim, dropout, generator)
        drawn = init.normal((max_len, dim), 0.0, std, generator=generator, dtype=dtype)
        self.weight = Parameter(drawn)

    def _rows(self, positions: Any, length: Any) -> Tensor:
        if positions is not None:
            return functional.embedding(positions, self.weight)
        return self.weight[:length]


class ALiBi(Module):
    """`functional.alibi_bias` for a number of heads, to be an `attn_mask` (Press et al.,
    arXiv:2108.12409). It has no parameters.

    Called with the numbers of queries and keys it gives `[num_heads, L, S]`. `OptionError` for less
    than one head.

    >>> import retrograd as rg
    >>> rg.nn.ALiBi(8)(2).shape
    (8, 2, 2)
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        functional.alibi_slopes(num_heads)  # which checks it
        self.num_heads = num_heads

    def forward(self, query_length: Any, key_length: Any = None) -> Tensor:
        return functional.alibi_bias(self.num_heads, query_length, key_length)

    def extra_repr(self) -> str:
        return f"{self.num_heads}"
