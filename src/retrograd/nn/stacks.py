"""Transformers: stacks of their layers, as PyTorch has them."""

from __future__ import annotations

import copy
from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.nn import init
from retrograd.nn.containers import ModuleList
from retrograd.nn.module import Module
from retrograd.nn.normalization import LayerNorm
from retrograd.nn.transformer import Activation, TransformerDecoderLayer, TransformerEncoderLayer


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
    """Copies of an encoder layer, one after the other, and a norm at the end if given."""

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
    """Copies of a decoder layer, one after the other, and a norm at the end if given."""

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
        return rg.where(ahead, rg.asarray(float("-inf"), dtype=dtype or rg.float32), 0.0)
