"""GPT-2 (Radford et al., 2019, "Language Models are Unsupervised Multitask Learners")."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import retrograd as rg
from retrograd import nn
from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.models.activations import activations, need_activation
from retrograd.models.causal_lm import (
    Cache,
    CausalLM,
    Visible,
    cached_attention,
    layers_of,
    merge_heads,
    shared_dropout,
    split_heads,
)
from retrograd.models.config import Config
from retrograd.nn.module.parameter import Parameter


@dataclass(frozen=True)
class GPT2Config(Config):
    """The settings of GPT-2, with the names and defaults of `transformers.GPT2Config`.

    `OptionError` for sizes below 1, a width that the heads cannot share, and unknown activations.

    >>> from retrograd.models import GPT2Config
    >>> GPT2Config(n_layer=2, n_embd=64, n_head=4).n_positions
    1024
    """

    model_type = "gpt2"
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd", "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
    }  # fmt: skip
    ignored: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels",
             "summary_first_dropout", "predict_special_tokens", "n_special", "id2label",
             "label2id", "num_labels"),
            "of a head that is not here",
        ),
        "reorder_and_upcast_attn": "changes how it is computed, not what",
        "n_ctx": "an older name of n_positions, which is there as well",
        "type_vocab_size": "GPT-2 has no kinds of tokens",
    }  # fmt: skip

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    tie_word_embeddings: bool = True
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
        self._probabilities("resid_pdrop", "embd_pdrop", "attn_pdrop")
        self._shared("n_embd", "n_head")
        if self.n_inner is not None:
            self._positive("n_inner")
        inner = self.n_inner or 4 * self.n_embd
        each = self.n_embd * (4 * self.n_embd + 2 * inner)
        ends = self.vocab_size + self.n_positions
        self._count_weights(self.n_layer, each + self.n_embd * ends // self.n_layer)
        need_activation(self.activation_function, "activation_function")


class Conv1D(nn.Module):
    """`x @ weight + bias`: a linear map whose weight is `[in, out]`, as GPT-2's files have it."""

    def __init__(self, nf: int, nx: int) -> None:
        self.nf, self.nx = nf, nx
        self.weight = Parameter(nn.init.normal((nx, nf), 0.0, 0.02))
        self.bias = Parameter(nn.init.zeros((nf,)))

    def forward(self, x: Any) -> Tensor:
        return x @ self.weight + self.bias

    def extra_repr(self) -> str:
        return f"nf={self.nf}, nx={self.nx}"


class GPT2Attention(nn.Module):
    """Causal self-attention: query, key and value are thirds of one product."""

    def __init__(self, config: GPT2Config, layer: int, dropouts: tuple[nn.Module, nn.Module]):
        self.heads = config.n_head
        width = config.n_embd // config.n_head
        self.scale = 1 / math.sqrt(width) if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            self.scale /= layer + 1
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        self.attn_dropout, self.resid_dropout = dropouts

    def forward(self, x: Tensor, seen: Visible, past: nn.KVCache | None) -> Any:
        q, k, v = (split_heads(part, self.heads) for part in rg.split(self.c_attn(x), 3, axis=-1))
        y, kept = cached_attention(q, k, v, past, seen, self.attn_dropout, self.scale)
        return self.resid_dropout(self.c_proj(merge_heads(y))), kept


class GPT2MLP(nn.Module):
    """`c_proj(activation(c_fc(x)))`."""

    def __init__(self, config: GPT2Config, dropout: nn.Module) -> None:
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = Conv1D(inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, inner)
        self.activation = config.activation_function
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(activations()[self.activation](self.c_fc(x))))


class GPT2Block(nn.Module):
    """Attention and MLP, each on the normalised input and added to the input."""

    def __init__(self, config: GPT2Config, layer: int, dropouts: tuple[nn.Module, nn.Module]):
        size, eps = config.n_embd, config.layer_norm_epsilon
        self.ln_1 = nn.LayerNorm(size, eps)
        self.attn = GPT2Attention(config, layer, dropouts)
        self.ln_2 = nn.LayerNorm(size, eps)
        self.mlp = GPT2MLP(config, dropouts[1])

    def forward(self, x: Tensor, seen: Visible, past: nn.KVCache | None) -> Any:
        y, kept = self.attn(self.ln_1(x), seen, past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), kept


class GPT2Model(nn.Module):
    """Embeddings, blocks, and the last normalisation."""

    def __init__(self, config: GPT2Config) -> None:
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = shared_dropout(config.embd_pdrop)
        dropouts = shared_dropout(config.attn_pdrop), shared_dropout(config.resid_pdrop)
        self.h = nn.ModuleList([GPT2Block(config, i, dropouts) for i in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)


class GPT2(CausalLM):
    """GPT-2 with its language-modelling head: `transformers.GPT2LMHeadModel`.

    `model(tokens)` of `[B, T]` integers gives the logits of each next token, `[B, T, vocab_size]`.
    `attention_mask` `[B, T]` is 0 at padding, `position_ids` `[T]` or `[B, T]` are by default
    0 ... T - 1, as in transformers also where there is padding on the left. With a `cache` of
    `new_cache` it returns (logits, cache). Parameters have the names of transformers. New weights
    are drawn as there; the model begins in training, `from_pretrained` gives it in evaluation.

    `ShapeError` for more tokens than positions, `IndexRangeError` for a token or position that
    there is not.

    >>> import retrograd as rg
    >>> from retrograd.models import GPT2, GPT2Config
    >>> config = GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=2, n_head=2)
    >>> model = GPT2(config, generator=rg.random.Generator(0)).eval()
    >>> model(rg.tensor([[1, 2, 3]])).shape
    (1, 3, 11)
    >>> model.generate([[1, 2, 3]], max_new_tokens=2, eos=()).shape
    (1, 5)
    """

    config_class = GPT2Config
    architecture = "GPT2LMHeadModel"
    prefix = "transformer"
    not_loaded = (
        r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)",  # the causal mask
        r"score\.weight|(multiple_choice_head|summary)\..*",  # other heads
    )

    def _build(self, config: GPT2Config) -> None:
        self.transformer = GPT2Model(config)
        self.lm_head = None
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def _initial(self, name: str, p: Tensor, generator: Generator | None) -> Tensor:
        x = super()._initial(name, p, generator)
        # What is added to the residual is smaller, the more layers add to it.
        return x / math.sqrt(2 * self.config.n_layer) if name.endswith("c_proj.weight") else x

    def _copies(self) -> dict[str, str]:
        return {} if self.lm_head is not None else {"lm_head.weight": "transformer.wte.weight"}

    def _states(
        self, tokens: Tensor, mask: Any, positions: Any, cache: Cache | None
    ) -> tuple[Tensor, list[Any]]:
        body, most = self.transformer, self.config.n_positions
        if isinstance(tokens.shape[1], int) and tokens.shape[1] > most:
            raise ShapeError(
                f"{tokens.shape[1]} tokens are more than the {most} positions (n_positions) of "
                f"this GPT2; give the last {most}, tokens[:, -{most}:]"
            )
        x = body.drop(body.wte(tokens) + body.wpe(positions))

        def call(block: Any, x: Any, i: int) -> Any:
            return block(x, Visible(mask), None if cache is None else cache[i])

        x, kept = layers_of(list(body.h), x, self.gradient_checkpointing, call)
        return body.ln_f(x), kept

    def _logits(self, states: Tensor) -> Tensor:
        if self.lm_head is not None:
            return self.lm_head(states)
        return nn.functional.linear(states, self.transformer.wte.weight)

    def _cache_shape(self) -> tuple[int, int, int]:
        config = self.config
        return config.n_layer, config.n_head, config.n_embd // config.n_head

    @property
    def _longest(self) -> int | None:
        return self.config.n_positions
