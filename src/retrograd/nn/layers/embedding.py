"""Vectors for indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


class Embedding(Module):
    """A learned vector for each of `num_embeddings` indices: `[...]` to `[..., embedding_dim]`.

    weight is `[num_embeddings, embedding_dim]`, normal with standard deviation 1. The vector of
    `padding_idx` begins as 0 and is not trained. With `sparse` the gradient of weight is a
    `RowSparse`; for this, `max_norm`, `norm_type` and `scale_grad_by_freq` see
    `functional.embedding`.

    `IndexRangeError` for an index outside of 0 to `num_embeddings - 1`, `DTypeError` for one that
    is no integer, `ShapeError` for sizes below 1, `OptionError` for a `padding_idx` that is no row.

    >>> import retrograd as rg
    >>> rg.nn.Embedding(10, 4)([[1, 2, 3]]).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_embeddings < 1 or embedding_dim < 1:
            raise ShapeError(f"Embedding({num_embeddings}, {embedding_dim}): sizes are at least 1")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise OptionError(
                f"padding_idx is an index of the {num_embeddings} rows of an Embedding, not "
                f"{padding_idx}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        weight = init.normal((num_embeddings, embedding_dim), generator=generator, dtype=dtype)
        if padding_idx is not None:
            array = np.array(weight.numpy())
            array[padding_idx] = 0
            weight = Tensor.of(array)
        self.weight = Parameter(weight)

    def forward(self, input: Any) -> Tensor:
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class EmbeddingBag(Embedding):
    """The sum, mean or maximum of the vectors of bags of indices; see `functional.embedding_bag`.

    `[N, B]` to `[N, embedding_dim]`, or `[M]` with the `offsets` `[N]` of the bags in it.
    `OptionError` for another mode, `IndexRangeError` for an index that there is not, `ShapeError`
    for indices of other shapes.

    >>> import retrograd as rg
    >>> rg.nn.EmbeddingBag(10, 4, mode="sum")([1, 2, 3, 4], [0, 3]).shape
    (2, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
            sparse, generator=generator, dtype=dtype,
        )  # fmt: skip
        if mode not in ("sum", "mean", "max"):
            raise OptionError(f"EmbeddingBag: mode is 'sum', 'mean' or 'max', not {mode!r}")
        if scale_grad_by_freq and mode == "max":
            raise OptionError("EmbeddingBag: scale_grad_by_freq is not for mode 'max'")
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        return functional.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
