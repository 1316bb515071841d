"""Llama (Touvron et al., arXiv:2302.13971) and its like: Mistral, Qwen2 and 3, Phi-3, Gemma."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError
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
from retrograd.models.config import NOTHING, Config
from retrograd.models.rotary import TRAINED, rope_settings, turned, turns
from retrograd.nn.module.parameter import Parameter

FULL, SLIDING = "full_attention", "sliding_attention"
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "gemma": "GemmaForCausalLM",
}
# What the types leave to their defaults, where these are not Llama's.
DEFAULTS: dict[str, dict[str, Any]] = {
    "mistral": {
        "sliding_window": 4096, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    },
    "qwen2": {"max_position_embeddings": 32768},
    "qwen3": {"max_position_embeddings": 32768, "head_dim": 128},
    "phi3": {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
    "gemma": {
        "max_position_embeddings": 8192, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
        "tie_word_embeddings": True, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
    },
}  # fmt: skip
WITHOUT_WINDOW = "llama", "gemma"


@dataclass(frozen=True)
class LlamaConfig(Config):
    """The settings of Llama and its like, with the names and defaults of
    `transformers.LlamaConfig`; `kind` is "llama", "mistral", "qwen2", "qwen3" (whose queries and
    keys are normalised), "phi3" (whose matrices are fused) or "gemma" (whose embeddings are scaled,
    and whose norms multiply by 1 + weight).

    `sliding_window` is how many tokens back the layers look that `layer_types` calls
    "sliding_attention" (all of them by default); `rope_parameters` how positions turn:
    `{"rope_type": ..., "rope_theta": ...}` of the types default, linear, dynamic, llama3, yarn
    and longrope with their options; older files have `rope_theta` and `rope_scaling`.

    `OptionError` for sizes below 1 or that do not go together, and for what is not known.

    >>> from retrograd.models import LlamaConfig
    >>> LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2).head_dim
    16
    """

    model_type = "llama"
    accepted_types = ("mistral", "qwen2", "qwen3", "phi3", "gemma")
    ignored: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("id2label", "label2id", "num_labels"), "of a head that is not here"
    ) | {
        "max_window_layers": "layer_types says which layers look how far back",
        "embd_pdrop": "Phi-3 of transformers has no dropout there",
    }

    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "rope_interleaved": NOTHING,
        "use_mrope": NOTHING,
        "resid_pdrop": NOTHING,
        "use_bidirectional_attention": NOTHING,
    }

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    initializer_range: float = 0.02
    rms_norm_eps: float = 1e-6
    rope_parameters: Mapping[str, Any] | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    attention_dropout: float = 0.0
    sliding_window: int | None = None
    layer_types: tuple[str, ...] | None = None
    tie_word_embeddings: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    pad_token_id: int | None = None
    kind: str = "llama"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive(
            "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
            "num_attention_heads", "max_position_embeddings",
        )  # fmt: skip
        self._probabilities("attention_dropout")
        heads = self.num_attention_heads
        self._default("num_key_value_heads", heads)
        if self.head_dim is None:
            self._shared("hidden_size", "num_attention_heads")
            self._default("head_dim", self.hidden_size // heads)
        self._positive("num_key_value_heads", "head_dim")
        self._shared("num_attention_heads", "num_key_value_heads")
        if self.kind not in ARCHITECTURES:
            raise OptionError(f"kind is one of {', '.join(ARCHITECTURES)}, not {self.kind!r}")
        if self.sliding_window is not None:
            self._positive("sliding_window")
            if self.kind in WITHOUT_WINDOW:
                raise OptionError(
                    f"{self.kind.title()} has no sliding_window; with one it is of kind 'mistral'"
                )
        if self._width % 2:
            raise OptionError(f"rotary positions turn pairs: head_dim is even, not {self.head_dim}")
        need_activation(self.hidden_act, "hidden_act")
        settings = rope_settings(self.rope_parameters, self.max_position_embeddings)
        object.__setattr__(self, "rope_parameters", settings)
        each = self.hidden_size * (2 * heads * self._width + 3 * self.intermediate_size)
        ends = self.hidden_size * self.vocab_size * (1 if self.tie_word_embeddings else 2)
        self._count_weights(self.num_hidden_layers, each + ends // self.num_hidden_layers)
        self._check_layer_types()

    @property
    def _width(self) -> int:
        """The width of a head."""
        assert self.head_dim is not None
        return self.head_dim

    def _default(self, name: str, value: Any) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    def _check_layer_types(self) -> None:
        if self.layer_types is not None:
            object.__setattr__(self, "layer_types", tuple(self.layer_types))
        types = self._types
        if len(types) != self.num_hidden_layers or {*types} - {FULL, SLIDING}:
            raise OptionError(
                f"layer_types has {FULL!r} or {SLIDING!r} for each of {self.num_hidden_layers} "
                f"layers, not {types}"
            )
        if SLIDING in types and self.sliding_window is None:
            raise OptionError(f"layer_types has {SLIDING!r}, but there is no sliding_window")

    @property
    def _types(self) -> tuple[str, ...]:
        """What kind of attention each layer has."""
        if self.layer_types is not None:
            return self.layer_types
        return (FULL if self.sliding_window is None else SLIDING,) * self.num_hidden_layers

    def window(self, layer: int) -> int | None:
        """How many positions a layer looks at, or None for all."""
        return self.sliding_window if self._types[layer] == SLIDING else None

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], ignore: Iterable[str] = ()) -> Self:
        """See `Config.from_dict`. What a type leaves to its defaults is filled in."""
        found = dict(settings)
        kind = found.get("model_type", cls.model_type)
        theta, scaling = found.pop("rope_theta", None), found.pop("rope_scaling", None)
        given = found.get("rope_parameters") or scaling
        if theta is not None and isinstance(given, Mapping | None):
            given = {"rope_theta": theta, **(given or {})}
        found["rope_parameters"] = given
        found = {**DEFAULTS.get(str(kind), {}), **found}
        if kind in ("qwen2", "qwen3"):
            _fill_windows(found)
        elif kind == "phi3":
            _fill_trained(found)
        elif kind == "gemma" and (activation := found.pop("hidden_activation", None)):
            found["hidden_act"] = activation
        found.pop("use_sliding_window", None)
        return super().from_dict({**found, "kind": kind}, ignore)

    def to_dict(self) -> dict[str, Any]:
        """The settings as `config.json` has them, for the class of `kind`."""
        found = super().to_dict()
        kind = found["model_type"] = found.pop("kind")
        for name in _not_written(kind):
            del found[name]
        if kind in ("qwen2", "qwen3"):
            found["layer_types"] = list(self._types)
            found["use_sliding_window"] = self.sliding_window is not None
        if kind == "phi3":
            assert self.rope_parameters is not None
            if trained := self.rope_parameters.get(TRAINED):
                found[TRAINED] = trained
        return found


def _not_written(kind: str) -> list[str]:
    """The settings that a type of transformers does not have."""
    found = [] if kind in ("llama", "qwen3", "gemma") else ["attention_bias"]
    found += [] if kind == "llama" else ["mlp_bias"]
    found += ["sliding_window"] if kind in WITHOUT_WINDOW else []
    return found + ([] if kind in ("qwen2", "qwen3") else ["layer_types"])


def _fill_trained(found: dict[str, Any]) -> None:
    """Phi-3 says apart from the scaling of positions how many it was trained with."""
    trained, scaling = found.pop(TRAINED, None), found["rope_parameters"]
    if trained is None or not isinstance(scaling, Mapping):
        return
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind not in (None, "default"):
        found["rope_parameters"] = {TRAINED: trained, **scaling}


def _fill_windows(found: dict[str, Any]) -> None:
    """The defaults of Qwen: a window only where it says so, in the layers from the one it says."""
    count = found.get("num_hidden_layers", 32)
    if not found.get("use_sliding_window", False):
        found["sliding_window"] = None
    else:
        found.setdefault("sliding_window", 4096)
    first = found.pop("max_window_layers", 28)
    if found.get("layer_types") is None:
        slides = found["sliding_window"] is not None
        found["layer_types"] = [SLIDING if slides and i >= first else FULL for i in range(count)]


class LlamaAttention(nn.Module):
    """Causal self-attention with rotary positions; several heads of queries share one of keys."""

    def __init__(self, config: LlamaConfig, layer: int, dropout: nn.Module) -> None:
        width = config._width
        self.heads, self.shared = config.num_attention_heads, config.num_key_value_heads or 0
        self.window = config.window(layer)
        self.scale = 1 / math.sqrt(width)
        of_qkv = config.attention_bias or config.kind == "qwen2"
        size, count, shared = config.hidden_size, self.heads * width, self.shared * width
        self.sizes = count, count + shared
        if config.kind == "phi3":
            self.qkv_proj = nn.Linear(size, count + 2 * shared, of_qkv)
        else:
            self.q_proj = nn.Linear(size, count, of_qkv)
            self.k_proj = nn.Linear(size, shared, of_qkv)
            self.v_proj = nn.Linear(size, shared, of_qkv)
        self.o_proj = nn.Linear(count, size, config.attention_bias)
        self.q_norm = self.k_norm = None
        if config.kind == "qwen3":
            self.q_norm, self.k_norm = (nn.RMSNorm(width, config.rms_norm_eps) for _ in range(2))
        self.fused = config.kind == "phi3"
        self.dropout = dropout

    def _projected(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, `[B, heads, T, width]` each."""
        if self.fused:
            y, (a, b) = self.qkv_proj(x), self.sizes
            parts = [y[..., :a], y[..., a:b], y[..., b:]]
        else:
            parts = [self.q_proj(x), self.k_proj(x), self.v_proj(x)]
        counts = self.heads, self.shared, self.shared
        return [split_heads(y, count) for y, count in zip(parts, counts, strict=True)]

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Any, past: Any) -> Any:
        q, k, v = self._projected(x)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        seen = Visible(mask, self.window)
        y, kept = cached_attention(q, k, v, past, seen, self.dropout, self.scale)
        return self.o_proj(merge_heads(y)), kept


class LlamaMLP(nn.Module):
    """SwiGLU (Shazeer, arXiv:2002.05202): `down(activation(gate(x)) * up(x))`."""

    def __init__(self, config: LlamaConfig) -> None:
        size, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.fused = config.kind == "phi3"
        if self.fused:
            self.gate_up_proj = nn.Linear(size, 2 * inner, bias)
        else:
            self.gate_proj = nn.Linear(size, inner, bias)
            self.up_proj = nn.Linear(size, inner, bias)
        self.down_proj = nn.Linear(inner, size, bias)
        self.activation = config.hidden_act

    def forward(self, x: Tensor) -> Tensor:
        if self.fused:
            gate, up = rg.split(self.gate_up_proj(x), 2, axis=-1)
        else:
            gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj(activations()[self.activation](gate) * up)


class GemmaNorm(nn.Module):
    """`x / sqrt(mean(x²) + eps) * (1 + weight)`, in float32 where x is of half precision."""

    def __init__(self, size: int, eps: float) -> None:
        self.weight, self.eps = Parameter(nn.init.zeros((size,))), eps

    def forward(self, x: Tensor) -> Tensor:
        kind = rg.float64 if x.dtype is rg.float64 else rg.float32
        weight = self.weight.astype(kind) + 1
        return nn.functional.rms_norm(x.astype(kind), weight.shape, weight, self.eps).astype(
            x.dtype
        )


def _norm(config: LlamaConfig) -> nn.Module:
    kind = GemmaNorm if config.kind == "gemma" else nn.RMSNorm
    return kind(config.hidden_size, config.rms_norm_eps)


class LlamaLayer(nn.Module):
    """Attention and MLP, each on the normalised input and added to the input."""

    def __init__(self, config: LlamaConfig, layer: int, dropout: nn.Module) -> None:
        self.self_attn = LlamaAttention(config, layer, dropout)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = _norm(config)
        self.post_attention_layernorm = _norm(config)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Any, past: nn.KVCache | None
    ) -> Any:
        y, kept = self.self_attn(self.input_layernorm(x), cos, sin, mask, past)
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x)), kept


class LlamaModel(nn.Module):
    """Embeddings, layers, and the last normalisation."""

    def __init__(self, config: LlamaConfig) -> None:
        size = config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, size, config.pad_token_id)
        dropout = shared_dropout(config.attention_dropout)
        count = config.num_hidden_layers
        self.layers = nn.ModuleList([LlamaLayer(config, i, dropout) for i in range(count)])
        self.norm = _norm(config)


class Llama(CausalLM):
    """Llama, Mistral, Qwen2, Qwen3, Phi-3 or Gemma with the language-modelling head:
    `transformers.LlamaForCausalLM` and so on.

    `model(tokens)` of `[B, T]` integers gives the logits of each next token, `[B, T, vocab_size]`.
    `attention_mask` `[B, T]` is 0 at padding, `position_ids` `[T]` or `[B, T]` are by default
    0 ... T - 1. With a `cache` of `new_cache` it returns (logits, cache). Parameters have the names
    of transformers. There is no longest sequence: rotary positions go on, which need not make sense
    beyond `max_position_embeddings`. In float64 all is computed in float64, where transformers
    computes angles and norms in float32.

    `IndexRangeError` for a token that there is not.

    >>> import retrograd as rg
    >>> from retrograd.models import Llama, LlamaConfig
    >>> config = LlamaConfig(
    ...     vocab_size=11,
    ...     hidden_size=16,
    ...     intermediate_size=24,
    ...     num_hidden_layers=1,
    ...     num_attention_heads=4,
    ...     num_key_value_heads=2,
    ... )
    >>> model = Llama(config, generator=rg.random.Generator(0)).eval()
    >>> model(rg.tensor([[1, 2, 3]])).shape
    (1, 3, 11)
    """

    config_class = LlamaConfig
    prefix = "model"
    not_loaded = (r".*rotary_emb\.inv_freq", r"score\.weight")

    def _build(self, config: LlamaConfig) -> None:
        self.model = LlamaModel(config)
        self.lm_head = None
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    @property
    def architecture(self) -> str:  # type: ignore[override]  # it depends on the configuration
        """The class of transformers that loads what is saved."""
        return ARCHITECTURES[self.config.kind]

    def _initial(self, name: str, p: Tensor, generator: Generator | None) -> Tensor:
        if self.config.kind == "gemma" and name.endswith("norm.weight"):
            return nn.init.zeros(p.shape)
        return super()._initial(name, p, generator)

    def _copies(self) -> dict[str, str]:
        return {} if self.lm_head is not None else {"lm_head.weight": "model.embed_tokens.weight"}

    def _states(
        self, tokens: Tensor, mask: Any, positions: Any, cache: Cache | None
    ) -> tuple[Tensor, list[Any]]:
        body, config = self.model, self.config
        x = body.embed_tokens(tokens)
        if config.kind == "gemma":
            x = x * rg.asarray(math.sqrt(config.hidden_size), dtype=x.dtype)
        cos, sin = turns(config.rope_parameters, config.head_dim, positions, x.dtype)
        if cos.ndim == 3:  # positions of each row, the same in all heads
            cos, sin = rg.expand_dims(cos, axis=1), rg.expand_dims(sin, axis=1)

        def call(layer: Any, x: Any, i: int) -> Any:
            return layer(x, cos, sin, mask, None if cache is None else cache[i])

        x, kept = layers_of(list(body.layers), x, self.gradient_checkpointing, call)
        return body.norm(x), kept

    def _logits(self, states: Tensor) -> Tensor:
        if self.lm_head is not None:
            return self.lm_head(states)
        return nn.functional.linear(states, self.model.embed_tokens.weight)

    def _cache_shape(self) -> tuple[int, int, int]:
        config = self.config
        return config.num_hidden_layers, config.num_key_value_heads, config.head_dim
