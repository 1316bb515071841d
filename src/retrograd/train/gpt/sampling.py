"""Text from a trained model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError
from retrograd.memory_limit import check_new
from retrograd.train.gpt.model import GPT
from retrograd.train.gpt.windows import Tokenizer

Array = np.ndarray[Any, Any]

CHUNK = 32  # tokens of each text that are made in one call
TEXT_LENGTH = 500  # tokens of a running text where nothing is said


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn: with probabilities `softmax(logits / temperature)`; temperature
    0 takes the most likely. With `top_k` only so many of the most likely are drawn from, then, with
    `top_p`, only the fewest whose probabilities reach this sum (nucleus sampling, A. Holtzman et
    al., arXiv:1904.09751). The temperature is by default 0.5, of running texts 0.8."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def check(self) -> None:
        """`OptionError` for numbers out of range."""
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise OptionError(f"a temperature is 0 or a positive number, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise OptionError(
                f"top_k is at least 1, not {self.top_k}; leave it out to draw from all tokens"
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise OptionError(f"top_p is above 0 and at most 1, not {self.top_p}")

    def of(self, model: GPT) -> Sampling:
        """The same with the temperature that a model has by default."""
        if self.temperature is not None:
            return self
        return replace(self, temperature=0.5 if model.config.documents else 0.8)


def sample(
    model: GPT,
    tokenizer: Tokenizer,
    count: int = 20,
    sampling: Sampling | None = None,
    *,
    prompt: str = "",
    seed: int = 0,
    length: int | None = None,
    **options: Any,
) -> list[str]:
    """Texts that begin with `prompt`, each until the model ends it or it has `length` tokens, by
    default as many as the model's context, or 500 of a running text, which has no end.

    How tokens are drawn says `sampling`, or its fields as `options`: `temperature`, `top_k`,
    `top_p`. All texts are made together; the same seed gives the same texts.

    Keys and values of earlier positions are kept, so the time grows with the length. When there are
    `context` of them, the last half is gone on from.

    `OptionError` for numbers out of range, `FormatError` for a prompt with characters that the
    tokenizer does not know.
    """
    chosen = sampling or Sampling(**options)
    start, longest = _begin(model, tokenizer, prompt, length)
    check_new((count, model.config.context, model.config.width), 4, "the activations of all texts")
    texts = np.tile(start, (count, 1))
    for new in _tokens(model, tokenizer, texts, longest, seed, chosen):
        texts = np.concatenate([texts, new], axis=1)
        if model.config.documents and (texts[:, len(start) :] == tokenizer.bos).any(axis=1).all():
            break
    hidden = 0 if prompt or model.config.documents else len(start)
    return [tokenizer.decode(_ended(t[hidden:], tokenizer.bos)) for t in texts]


def stream(
    model: GPT,
    tokenizer: Tokenizer,
    sampling: Sampling | None = None,
    *,
    prompt: str = "",
    seed: int = 0,
    length: int | None = None,
    **options: Any,
) -> Iterator[str]:
    """The text that `sample` with a count of 1 makes, in parts, as it is made."""
    chosen = sampling or Sampling(**options)
    start, longest = _begin(model, tokenizer, prompt, length)
    rest: list[int] = []
    yield prompt
    texts = start[None]
    for new in _tokens(model, tokenizer, texts, longest, seed, chosen):
        found = new[0].tolist()
        ended = model.config.documents and tokenizer.bos in found
        rest += found[: found.index(tokenizer.bos)] if ended else found
        text = tokenizer.decode(rest)
        if not text.endswith("\N{REPLACEMENT CHARACTER}") or ended:  # the end of a cut character
            yield text
            rest = []
        if ended:
            return
    if rest:
        yield tokenizer.decode(rest)


def _begin(model: GPT, tokenizer: Tokenizer, prompt: str, length: int | None) -> tuple[Array, int]:
    """The tokens that a text begins with, and how many it has at most."""
    if length is not None and length < 1:
        raise OptionError(f"a text has at least 1 token, not {length}")
    if model.config.documents:
        start = tokenizer.encode(prompt, end=False)
        return np.array(start, np.int32), 1 + (model.config.context if length is None else length)
    if not prompt:  # as if a line before it had ended
        known = not hasattr(tokenizer, "characters") or "\n" in tokenizer.characters
        start = tokenizer.encode("\n", begin=False, end=False) if known else [0]
    else:
        start = tokenizer.encode(prompt, begin=False, end=False)
    more = TEXT_LENGTH if length is None else length
    return np.array(start, np.int32), more + (0 if prompt else len(start))


def _ended(tokens: Array, bos: int) -> list[int]:
    """A document as far as the mark that ends it, behind the one it may begin with."""
    ends = np.flatnonzero(tokens[1:] == bos)
    return (tokens[: ends[0] + 1] if len(ends) else tokens).tolist()


def _tokens(
    model: GPT,
    tokenizer: Tokenizer,
    texts: Array,
    longest: int,
    seed: int,
    chosen: Sampling,
) -> Iterator[Array]:
    """The next tokens of all texts `[texts, tokens]`, several at a time, until they have so
    many."""
    chosen.check()
    temperature = chosen.of(model).temperature or 0.0
    top_k, top_p = chosen.top_k or model.config.vocab_size, chosen.top_p
    context, batch = model.config.context, len(texts)
    unmade = -1 if model.config.documents else tokenizer.bos
    top_k = min(top_k, model.config.vocab_size)
    make = _maker(temperature > 0, top_k, top_p is not None, unmade)
    numbers = (np.float64(temperature or 1.0), np.float64(1.0 if top_p is None else top_p))
    generator = rg.random.Generator(seed)
    last = rg.tensor(np.zeros(batch, np.int32))
    model = rg.tree.map(lambda x: x, model).eval()  # a copy: the caller's may be in training
    caches, used = model.empty_caches(batch), 0
    given = texts[:, -context:]  # what is read before the next token is made
    while texts.shape[1] < longest:
        if used + given.shape[1] > context or used == context:
            given, used = texts[:, -max(context // 2, 1) :], 0
            caches = model.empty_caches(batch)
        n = min(max(given.shape[1], CHUNK), context - used)
        n = min(n, max(given.shape[1], 1) + longest - texts.shape[1] - 1)
        fixed = np.full((n, batch), -1, np.int32)
        fixed[: given.shape[1]] = given.T
        with rg.no_grad():
            last, caches, generator, made = make(model, last, caches, generator, fixed, *numbers)
        new = made.numpy()[max(given.shape[1] - 1, 0) :].T
        texts, used = np.concatenate([texts, new], axis=1), used + n
        given = texts[:, :0]
        yield new


@lru_cache(maxsize=16)
def _maker(random: bool, top_k: int, nucleus: bool, unmade: int) -> Callable[..., Any]:
    """The compiled loop over tokens: each is given, or the one that was drawn before it. `unmade`
    is never drawn."""

    def make(
        model: GPT,
        last: rg.Tensor,
        caches: list[nn.KVCache],
        generator: rg.random.Generator,
        fixed: rg.Tensor,
        temperature: rg.Tensor,
        top_p: rg.Tensor,
    ) -> Any:
        def one(carry: Any, given: rg.Tensor) -> Any:
            last, caches, generator = carry
            logits, caches = model.next(rg.where(given >= 0, given, last), caches)
            if unmade >= 0:
                logits = rg.where(rg.arange(logits.shape[1]) == unmade, -rg.inf, logits)
            if not random:
                drawn = rg.argmax(logits, axis=-1)
            else:
                scaled = logits / temperature.astype(logits.dtype)
                drawn = generator.categorical(likely(scaled, top_k, top_p if nucleus else None))
            drawn = drawn.astype(given.dtype)
            return (drawn, caches, generator), drawn

        (last, caches, generator), made = rg.scan(one, (last, caches, generator), fixed)
        return last, caches, generator, made

    return rg.jit(make, donate=("caches",), shapes={"fixed": "n _"})


def likely(logits: rg.Tensor, top_k: int, top_p: rg.Tensor | None) -> rg.Tensor:
    """Logits `[batch, tokens]` with -inf in place of all but the `top_k` highest, and of those all
    but the fewest whose probabilities reach `top_p`. What equals one that stays, stays.

    >>> likely(rg.tensor([[1.0, 3.0, 2.0]]), 2, None).tolist()
    [[-inf, 3.0, 2.0]]
    """
    size = logits.shape[-1]
    if top_k >= size and top_p is None:
        return logits
    ordered = rg.sort(logits, axis=-1, descending=True)
    if top_k < size:
        logits = rg.where(logits < ordered[:, top_k - 1 : top_k], -rg.inf, logits)
        ordered = rg.where(rg.arange(size) < top_k, ordered, -rg.inf)
    if top_p is None:
        return logits
    p = rg.softmax(ordered, axis=-1)
    before = rg.cumsum(p, axis=-1) - p
    lowest = rg.where(before < top_p.astype(p.dtype), ordered, rg.inf).min(axis=-1, keepdims=True)
    return rg.where(logits < lowest, -rg.inf, logits)
