"""Tokens one after the other: the loop of a language model, compiled as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.errors import IndexRangeError, OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.layers.kv_cache import KVCache
from retrograd.tuning import TUNING


class Choice(NamedTuple):
    """How tokens are chosen: greedily, or drawn with these restrictions."""

    drawn: bool
    top_k: int | None
    has_top_p: bool


def generate(
    model: Any, tokens: Any, max_new_tokens: int, temperature: float | None, top_k: int | None,
    top_p: float | None, seed: int | None, eos: int | Sequence[int] | None, attention_mask: Any,
    pad: int | None, cache_size: int | None,
) -> Tensor:  # fmt: skip
    """Tokens `[B, T]` with new ones behind them, `[B, T + new]`, int64.

    By default the most likely token is taken each time, as with transformers' `do_sample=False`.
    Where `temperature`, `top_k`, `top_p` or `seed` is given, tokens are drawn with probabilities
    `softmax(logits / temperature)`, of the `top_k` most likely ones and of the smallest set that
    has the probability `top_p`; the same seed gives the same tokens. Temperature 0 is greedy.

    A row ends with a token of `eos`, by default those of the folder's configuration, and goes on
    with `pad` (by default `pad_token_id`, or the first of `eos`); the result ends where all rows
    have, or after `max_new_tokens`. `attention_mask` `[B, T]` is 0 at padding, which may be on
    either side of a row: positions count tokens alone, and new tokens follow the last one.

    Keys and values are kept in a cache of `cache_size` slots, by default enough for the call,
    rounded up. The loop over tokens is one compiled program for each number of rows and slots, so
    that another call finds it.

    `ShapeError` where prompt and new tokens are more than the model has positions, or the cache has
    slots; `OptionError` for options that are no numbers of their kind.

    >>> import retrograd as rg
    >>> from retrograd.models import GPT2, GPT2Config
    >>> config = GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=1, n_head=2)
    >>> model = GPT2(config, generator=rg.random.Generator(0)).eval()
    >>> model.generate([[1, 2, 3]], max_new_tokens=3, top_k=5, seed=0, eos=()).shape
    (1, 6)
    """
    prompt, present = _prompt(tokens, attention_mask, model.config.vocab_size)
    count = _count("max_new_tokens", max_new_tokens, 0)
    choice, warmth, share, generator = _choice(temperature, top_k, top_p, seed, model)
    said = {**vars(model.config), **(model.generation or {})}
    ends = _ends(said["eos_token_id"] if eos is None else eos)
    filler = pad if pad is not None else said["pad_token_id"]
    filler = filler if filler is not None else ends[0] if ends else 0
    rows, length = prompt.shape
    slots = _slots(length + count, cache_size, model._longest)
    if not count or not rows:
        return Tensor.of(prompt)
    used, there = _left_padded(prompt, present)
    with rg.no_grad():
        ready, key = model._for_generation(), repr(model.config)
        state = _begin(choice, slots, key)(ready, used, there, warmth, share, generator)
        made, number = _loop(choice, ends, key)(
            ready, state, np.int64(length), count, warmth, share, filler
        )
        new = made.numpy()[:, : int(number.item())]
    return Tensor.of(np.concatenate([prompt, new], axis=1))


# -- what is asked for -----------------------------------------------------------------------------
def _prompt(tokens: Any, mask: Any, known: int) -> tuple[Any, Any]:
    """Tokens, and where they are, as arrays."""
    x = np.asarray(rg.asarray(tokens).numpy())
    if x.ndim != 2 or x.shape[1] == 0 or x.dtype.kind not in "iu":
        raise ShapeError(
            f"generate takes tokens [batch, length], integers and at least one in a row, not "
            f"{x.dtype} of the shape {x.shape}; a single sequence is a batch of one, [tokens]"
        )
    if x.size and not 0 <= x.min() <= x.max() < known:
        raise IndexRangeError(
            f"generate was given tokens from {x.min()} to {x.max()}; those of this model are 0 to "
            f"{known - 1}: is it the tokenizer of this model?"
        )
    there = np.ones(x.shape, bool) if mask is None else np.asarray(rg.asarray(mask).numpy()) != 0
    if there.shape != x.shape:
        raise ShapeError(
            f"attention_mask has the shape of the tokens, {x.shape}, not {there.shape}"
        )
    if not there.any(axis=1).all():
        raise ShapeError("a row of attention_mask has no token; give rows with at least one")
    return x.astype(np.int64), there


def _left_padded(prompt: Any, present: Any) -> tuple[Any, Any]:
    """The same tokens with all padding on the left, so that the next one of each row has the same
    place."""
    order = np.argsort(present, axis=1, kind="stable")
    return np.take_along_axis(prompt, order, axis=1), np.take_along_axis(present, order, axis=1)


def _count(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise OptionError(f"{name} is an integer of at least {least}, not {value!r}")
    return int(value)


def _choice(
    temperature: Any, top_k: Any, top_p: Any, seed: Any, model: Any
) -> tuple[Choice, float, float, Any]:
    given = any(x is not None for x in (temperature, top_k, top_p, seed))
    warmth = (1.0 if given else 0.0) if temperature is None else temperature
    if not isinstance(warmth, int | float) or not 0 <= warmth < float("inf"):
        raise OptionError(f"a temperature is 0 or a positive number, not {temperature!r}")
    if top_k is not None:
        top_k = min(_count("top_k", top_k, 1), model.config.vocab_size)
    if top_p is not None and not (isinstance(top_p, int | float) and 0 < top_p <= 1):
        raise OptionError(f"top_p is a probability above 0, not {top_p!r}")
    drawn = warmth > 0
    if drawn:
        generator = rg.random.Generator(0 if seed is None else _count("seed", seed, 0))
        return Choice(True, top_k, top_p is not None), float(warmth), float(top_p or 1), generator
    return Choice(False, None, False), 1.0, 1.0, None


def _ends(found: Any) -> tuple[int, ...]:
    """The tokens that end a row."""
    if found is None:
        return ()
    tokens = [found] if isinstance(found, int | np.integer) else list(found)
    return tuple(_count("eos", t, 0) for t in tokens)


def _slots(needed: int, given: int | None, most: int | None) -> int:
    """The size of the cache."""
    if most is not None and needed > most:
        raise ShapeError(
            f"prompt and new tokens, {needed}, are more than the {most} positions of this model; "
            "shorten the prompt, or ask for fewer tokens"
        )
    if given is not None:
        if _count("cache_size", given, 1) < needed:
            raise ShapeError(f"prompt and new tokens, {needed}, do not fit into {given} slots")
        return given
    step = TUNING.cache_slots
    slots = -(-needed // step) * step
    return slots if most is None else min(slots, most)


# -- what is compiled ------------------------------------------------------------------------------
# For each configuration by itself: programs of many models are none that are compiled again.
@cache
def _begin(choice: Choice, slots: int, config: str) -> Any:
    """The compiled reading of the prompt: caches, the mask and the number of tokens of each row,
    the first new token, the generator."""

    def begin(
        model: Any, tokens: Any, there: Any, warmth: Any, share: Any, generator: Any
    ) -> tuple[Any, ...]:
        length = there.astype(rg.int64).sum(axis=1, keepdims=True)
        positions = rg.maximum(rg.cumsum(there.astype(rg.int64), axis=1) - 1, 0)
        states, kept = model._states(tokens, rg.expand_dims(there, axis=(1, 2)), positions, None)
        token, generator = _chosen(model._logits(states[:, -1:]), choice, warmth, share, generator)
        free = slots - tokens.shape[1]
        mask = rg.pad(there, [(0, 0), (0, free)], value=True)
        wide = [(0, 0), (0, 0), (0, free), (0, 0)]
        caches = tuple((rg.pad(k, wide), rg.pad(v, wide)) for k, v in kept)
        return caches, rg.expand_dims(mask, axis=(1, 2)), length, token, generator

    return rg.jit(begin)


@cache
def _loop(choice: Choice, ends: tuple[int, ...], config: str) -> Any:
    """The compiled loop: from the first new token to all of them, and how many there are."""

    def loop(
        model: Any, start: Any, prompt: Any, count: Any, warmth: Any, share: Any, filler: Any
    ) -> tuple[Any, Any]:
        caches, mask, length, token, generator = start
        caches = tuple(KVCache(k, v, prompt) for k, v in caches)
        rows, slots = mask.shape[0], mask.shape[-1]
        made = rg.zeros((rows, slots), dtype=rg.int64).at[:, 0].set(token[:, 0])

        def unfinished(state: Any) -> Any:
            number, _, done, *_ = state
            return (number < count) & ~rg.all(done)

        def step(state: Any) -> Any:
            number, token, done, made, caches, generator = state
            states, new = model._states(token, mask, length + (number - 1), caches)
            token, generator = _chosen(model._logits(states), choice, warmth, share, generator)
            token = rg.where(done, filler, token)
            made = made.at[:, number].set(token[:, 0])
            return number + 1, token, done | _is_end(token, ends), made, tuple(new), generator

        first = rg.asarray(1), token, _is_end(token, ends), made, caches, generator
        number, _, _, made, *_ = rg.while_loop(unfinished, step, first)
        return made, number

    return rg.jit(loop)


def _is_end(token: Tensor, ends: tuple[int, ...]) -> Tensor:
    found = rg.zeros(token.shape, dtype=rg.bool)
    for end in ends:
        found = found | (token == end)
    return found


def _chosen(
    logits: Tensor, choice: Choice, warmth: Any, share: Any, generator: Any
) -> tuple[Tensor, Any]:
    """The next token `[B, 1]` for logits `[B, 1, vocab]`, and the generator."""
    x = logits[:, 0]
    if not choice.drawn:
        return rg.argmax(x, axis=-1, keepdims=True), generator
    x = (x if x.dtype is rg.float64 else x.astype(rg.float32)) / warmth
    if choice.top_k is not None:
        least = rg.topk(x, choice.top_k)[0][:, -1:]
        x = rg.where(x < least, -float("inf"), x)
    if choice.has_top_p:
        x = _within_share(x, share)
    return rg.expand_dims(generator.categorical(x), axis=1), generator


def _within_share(x: Tensor, share: Any) -> Tensor:
    """Logits without those of the least likely tokens that have the probability `1 - share`
    together (Holtzman et al., arXiv:1904.09751)."""
    order = rg.argsort(x, axis=-1)
    total = rg.cumsum(rg.softmax(rg.take_along_axis(x, order, axis=-1)), axis=-1)
    last = rg.arange(x.shape[-1]) == x.shape[-1] - 1
    kept = (total > 1 - share) | last
    back = rg.argsort(order, axis=-1)
    return rg.where(rg.take_along_axis(kept, back, axis=-1), x, -float("inf"))
