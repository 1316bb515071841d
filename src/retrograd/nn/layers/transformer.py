"""The layers of transformers, as PyTorch has them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.containers import ModuleList
from retrograd.nn.layers.attention import MultiheadAttention
from retrograd.nn.layers.dropout import Dropout
from retrograd.nn.layers.linear import Linear
from retrograd.nn.layers.normalization import LayerNorm
from retrograd.nn.module.module import Module

Activation = str | Callable[[Any], Tensor]


def _activation(given: Activation) -> Callable[[Any], Tensor]:
    if isinstance(given, str):
        if given not in ("relu", "gelu"):
            raise OptionError(f"the activation is 'relu', 'gelu' or a function, not {given!r}")
        return functional.relu if given == "relu" else functional.gelu
    return given


class _Layer(Module):
    """What encoder and decoder layers share."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: Any = {"generator": generator, "dtype": dtype}
        self.norm_first = norm_first
        self.activation = _activation(activation)
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **options
        )
        self._cross(d_model, nhead, dropout, bias, batch_first, options)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout, generator=generator)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout, generator=generator)
        self.dropout2 = Dropout(dropout, generator=generator)

    def _cross(self, *args: Any) -> None:
        """What a decoder has besides, between both."""

    def _fed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _attended(self, x: Tensor, mask: Any, padding: Any, causal: bool) -> Tensor:
        return self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal
        )[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward net, each with a residual and a norm after it, or before it
    with `norm_first` (Vaswani et al., arXiv:1706.03762). PyTorch's arguments, parameters and masks:
    boolean ones are true where a query must not look.

    `[L, N, E]` to the same shape, with `batch_first` `[N, L, E]`. `ShapeError` where `d_model` is
    no multiple of `nhead` or shapes do not fit, `OptionError` for an unknown activation.

    >>> import retrograd as rg
    >>> rg.nn.TransformerEncoderLayer(8, 2, 16)(rg.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = rg.asarray(src)
        options = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self.dropout1(self._attended(self.norm1(x), *options))
            return x + self.dropout2(self._fed(self.norm2(x)))
        x = self.norm1(x + self.dropout1(self._attended(x, *options)))
        return self.norm2(x + self.dropout2(self._fed(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory, and a feed-forward net, each with a residual and a
    norm, as in `TransformerEncoderLayer`.

    Targets `[T, N, E]` and a memory `[S, N, E]` give `[T, N, E]`. `ShapeError` where `d_model` is
    no multiple of `nhead` or shapes do not fit, `OptionError` for an unknown activation.

    >>> import retrograd as rg
    >>> rg.nn.TransformerDecoderLayer(8, 2, 16)(rg.ones((4, 3, 8)), rg.ones((5, 3, 8))).shape
    (4, 3, 8)
    """

    def _cross(
        self, d_model: int, nhead: int, dropout: float, bias: bool, first: bool, options: Any
    ) -> None:
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=first, **options
        )

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, generator=generator, dtype=dtype,
        )  # fmt: skip
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout3 = Dropout(dropout, generator=generator)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = rg.asarray(tgt)

        def look(x: Tensor) -> Tensor:
            found = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask,
                is_causal=memory_is_causal,
            )  # fmt: skip
            return self.dropout2(found[0])

        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        if self.norm_first:
            x = x + self.dropout1(self._attended(self.norm1(x), *own))
            x = x + look(self.norm2(x))
            return x + self.dropout3(self._fed(self.norm3(x)))
        x = self.norm1(x + self.dropout1(self._attended(x, *own)))
        x = self.norm2(x + look(x))
        return self.norm3(x + self.dropout3(self._fed(x)))


def _copies(layer: Module, count: int) -> ModuleList:
    """Layers that begin equal, each with random numbers of its own."""
    if count < 1:
        raise ShapeError(f"a stack of {count} layers: there is at least one")
    made = [copy.deepcopy(layer) for _ in range(count)]
    for m in [m for one in made for m in one.modules()]:
        if getattr(m, "generator", None) is not None:
            m.generator = init.default_generator().split()
    return ModuleList(made)


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other, and a norm at the end if given.

    `[L, N, E]` to the same shape. `ShapeError` for less than one layer.

    >>> import retrograd as rg
    >>> layer = rg.nn.TransformerEncoderLayer(8, 2, 16)
    >>> rg.nn.TransformerEncoder(layer, 2)(rg.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other, and a norm at the end if given.

    Targets `[T, N, E]` and a memory `[S, N, E]` give `[T, N, E]`. `ShapeError` for less than one
    layer.

    >>> import retrograd as rg
    >>> layer = rg.nn.TransformerDecoderLayer(8, 2, 16)
    >>> rg.nn.TransformerDecoder(layer, 2)(rg.ones((4, 3, 8)), rg.ones((5, 3, 8))).shape
    (4, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                bool(tgt_is_causal), memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al., arXiv:1706.03762), with PyTorch's arguments and
    parameters; weights of matrices are drawn by `init.xavier_uniform`.

    Sources `[S, N, E]` and targets `[T, N, E]` give `[T, N, E]`. `ShapeError` where `d_model` is no
    multiple of `nhead` or shapes do not fit, `OptionError` for an unknown activation.

    >>> import retrograd as rg
    >>> model = rg.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(rg.ones((5, 3, 8)), rg.ones((4, 3, 8))).shape
    (4, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        form = (batch_first, norm_first, bias)
        options: Any = {"generator": generator, "dtype": dtype}

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, *form, **options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, *form, **options), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for p in self.parameters():
            if p.ndim > 1:
                p.replace(init.xavier_uniform(p.shape, **options).numpy())

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: Any = None) -> Tensor:
        """A mask to add to scores: -inf where a query would look ahead, 0 elsewhere."""
        ahead = ~rg.tril(rg.ones((sz, sz), dtype=rg.bool))
        return rg.where(
            ahead, rg.asarray(float("-inf"), dtype=dtype or rg.get_default_dtype()), 0.0
        )
