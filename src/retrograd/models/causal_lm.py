"""What decoder-only language models share: attention with a cache of keys and values, the head,
`generate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import retrograd as rg
from retrograd import nn, pytree
from retrograd.errors import DTypeError, ShapeError
from retrograd.files import StrPath, write_atomically
from retrograd.functions.tensor.tensor import Tensor
from retrograd.models.config import read_json
from retrograd.models.generation import generate
from retrograd.models.pretrained import Pretrained
from retrograd.nn import functional as F

GENERATION = "generation_config.json"
TOKENS = ("eos_token_id", "pad_token_id")
Cache = tuple[nn.KVCache, ...]  # one for each layer


class Visible(NamedTuple):
    """Which keys queries look at beside the causal order: `mask`, as for
    `scaled_dot_product_attention`, and at most `window` positions back, their own one included."""

    mask: Any = None
    window: int | None = None


def cached_attention(
    q: Tensor, k: Tensor, v: Tensor, past: nn.KVCache | None, seen: Visible, dropout: nn.Module,
    scale: float | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Causal attention of `[B, heads, T, width]`, and what is to be kept: with `past` that with the
    keys and values given, without them a pair of these."""
    options: dict[str, Any] = {"scale": scale, "enable_gqa": True}
    if dropout.training and isinstance(dropout, nn.Dropout):
        options |= {"dropout_p": dropout.p, "generator": dropout.generator}
    if past is None:
        options["window_size"] = None if seen.window is None else (seen.window - 1, 0)
        y = F.scaled_dot_product_attention(q, k, v, seen.mask, is_causal=True, **options)
        return y, (k, v)
    new = past.update(k, v, None if seen.window is None else seen.window - 1)
    visible = new.mask
    if seen.mask is not None and seen.mask.dtype is rg.bool:
        visible = visible & seen.mask
    elif seen.mask is not None:
        visible = rg.where(visible, seen.mask, -float("inf"))
    return F.scaled_dot_product_attention(q, new.keys, new.values, visible, **options), new.cache


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`[B, T, heads * width]` as `[B, heads, T, width]`."""
    batch, length, size = x.shape
    return rg.swapaxes(x.reshape((batch, length, heads, size // heads)), 1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """`[B, heads, T, width]` as `[B, T, heads * width]`."""
    batch, heads, length, width = x.shape
    return rg.swapaxes(x, 1, 2).reshape((batch, length, heads * width))


def shared_dropout(p: float) -> nn.Module:
    """A dropout layer for all layers of a model, so that it has one stream of random numbers."""
    return nn.Dropout(p) if p else nn.Identity()


def need_tokens(tokens: Any, what: str) -> Tensor:
    """Tokens `[B, T]`."""
    x = rg.asarray(tokens)
    if x.ndim != 2 or not x.dtype.is_integer:
        raise (ShapeError if x.dtype.is_integer else DTypeError)(
            f"{what} takes tokens [batch, length], integers, not {x.dtype} of the shape {x.shape}; "
            "a single sequence is a batch of one, tokens[None]"
        )
    return x


def need_mask(mask: Any, keys: Any, what: str) -> Tensor | None:
    """A mask for attention: of padding `[B, S]`, true or 1 at tokens, as `[B, 1, 1, S]`; one with
    four axes, `[B, 1, T, S]`, as it is."""
    if mask is None:
        return None
    x = rg.asarray(mask)
    if x.ndim == 4 and (x.dtype is rg.bool or x.dtype.is_float):
        return x
    if x.ndim != 2 or x.shape[1] != keys:
        raise ShapeError(
            f"the attention_mask of {what} is [batch, {keys}], 1 where a token is and 0 where "
            f"padding is, or boolean or floating [batch, 1, length, {keys}]; not {x.dtype} of the "
            f"shape {x.shape}"
        )
    return rg.expand_dims(x != 0, axis=(1, 2))


def layers_of(
    layers: Sequence[nn.Module], x: Any, checkpointed: bool, call: Callable[[Any, Any, int], Any]
) -> tuple[Tensor, list[Any]]:
    """Layers one after the other, `x, more = call(layer, x, i)`, with activations computed again
    for the gradient if `checkpointed`."""
    found = []
    for i, layer in enumerate(layers):

        def step(x: Any, layer: nn.Module = layer, i: int = i) -> Any:
            return call(layer, x, i)

        x, more = (rg.checkpoint(step) if checkpointed else step)(x)
        found.append(more)
    return x, found


class CausalLM(Pretrained):
    """Base of decoder-only language models. A subclass has `_states`, and how large a cache is."""

    gradient_checkpointing = False
    # What `generation_config.json` says of the tokens that end a text, and those behind it.
    generation: Mapping[str, Any] | None = None

    @classmethod
    def from_pretrained(cls, folder: StrPath, **options: Any) -> Self:
        """See `Pretrained.from_pretrained`. Where there is a `generation_config.json`, its
        `eos_token_id` and `pad_token_id` are those of `generate`."""
        model = super().from_pretrained(folder, **options)
        path = Path(folder) / GENERATION
        found = read_json(path) if path.exists() else {}
        model.generation = {k: v for k, v in found.items() if k in TOKENS and v is not None}
        return model

    def save_pretrained(self, folder: StrPath, max_shard_size: int | str = "50GB") -> None:
        """See `Pretrained.save_pretrained`."""
        super().save_pretrained(folder, max_shard_size)
        if self.generation:
            text = json.dumps(self.generation, indent=2, sort_keys=True) + "\n"
            write_atomically(Path(folder) / GENERATION, text.encode(), "configuration")

    def _states(
        self, tokens: Tensor, mask: Any, positions: Any, cache: Cache | None
    ) -> tuple[Tensor, list[Any]]:
        """The last hidden states `[B, T, hidden]`, and what each layer keeps."""
        raise NotImplementedError

    def _logits(self, states: Tensor) -> Tensor:
        """The head."""
        raise NotImplementedError

    def _cache_shape(self) -> tuple[int, int, int]:
        """The numbers of layers and of heads of keys, and the width of a head."""
        raise NotImplementedError

    @property
    def _longest(self) -> int | None:
        """How many positions there are; None for no limit."""
        return None

    def _for_generation(self) -> Self:
        """A model in evaluation of the same weights; this one stays as it is, also for other
        threads."""
        leaves, structure = pytree.flatten(self)
        return pytree.unflatten(structure, leaves).eval()

    def forward(
        self, tokens: Any, attention_mask: Any = None, position_ids: Any = None,
        cache: Cache | None = None,
    ) -> Any:  # fmt: skip
        """Logits of the next token, `[B, T, vocab_size]`; with a cache (logits, cache)."""
        what = type(self).__name__
        ids = need_tokens(tokens, what)
        keys = ids.shape[1] if cache is None else cache[0].keys.shape[2]
        mask = need_mask(attention_mask, keys, what)
        start = 0 if cache is None else cache[0].length
        positions = rg.arange(ids.shape[1]) + start if position_ids is None else position_ids
        states, kept = self._states(ids, mask, rg.asarray(positions), cache)
        logits = self._logits(states)
        if cache is None:
            return logits
        return logits, tuple(kept)

    def new_cache(self, batch: int, slots: int) -> Cache:
        """An empty cache for so many sequences of at most `slots` tokens, an `nn.KVCache` for each
        layer.

        Called with it, the model returns logits and the cache with the tokens added, and its
        `attention_mask` is `[batch, slots]`. `ShapeError` for sizes below 1.
        """
        layers, heads, width = self._cache_shape()
        dtype = next(self.parameters()).dtype
        return tuple(nn.KVCache.zeros(batch, heads, slots, width, dtype) for _ in range(layers))

    def generate(
        self,
        tokens: Any,
        max_new_tokens: int = 20,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        eos: int | Sequence[int] | None = None,
        *,
        attention_mask: Any = None,
        pad: int | None = None,
        cache_size: int | None = None,
    ) -> Tensor:
        """Tokens `[B, T]` with new ones behind them, `[B, T + new]`, int64: see
        `rg.models.generation.generate`."""
        return generate(
            self, tokens, max_new_tokens, temperature, top_k, top_p, seed, eos, attention_mask,
            pad, cache_size,
        )  # fmt: skip

    def gradient_checkpointing_enable(self) -> None:
        """Compute the activations inside each layer again for the gradient, instead of keeping
        them: memory for time."""
        self.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep activations, as at first."""
        self.gradient_checkpointing = False
