"""Text from a trained model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.data import CharTokenizer
from retrograd.errors import OptionError
from retrograd.memory_limit import check_new
from retrograd.train.gpt.model import GPT


def sample(
    model: GPT,
    tokenizer: CharTokenizer,
    count: int = 20,
    *,
    temperature: float = 0.5,
    prompt: str = "",
    seed: int = 0,
    length: int | None = None,
) -> list[str]:
    """Texts that begin with `prompt`, each until the model ends it or it has `length` characters,
    by default as many as the model's context.

    Each next token is drawn with probabilities `softmax(logits / temperature)`; temperature 0 takes
    the most likely. All texts are made together; the same seed gives the same texts.
    """
    if not 0 <= temperature < float("inf"):
        raise OptionError(f"a temperature is 0 or a positive number, not {temperature}")
    context = model.config.context
    longest = context if length is None else length
    start = tokenizer.encode(prompt, end=False)
    check_new((count, context, model.config.width), 4, "the activations of all texts")
    texts = np.tile(np.array(start, np.int32), (count, 1))
    running = np.ones(count, bool)
    generator = rg.random.Generator(seed)
    choose = _chooser(temperature > 0)
    while texts.shape[1] <= longest and running.any():
        window = texts[:, -context:]
        used = window.shape[1]
        tokens = np.pad(window, ((0, 0), (0, context - used)))
        with rg.no_grad():
            chosen, generator = choose(model, tokens, used - 1, temperature, generator)
        new = np.where(running, chosen.numpy(), tokenizer.bos).astype(np.int32)
        running &= new != tokenizer.bos
        texts = np.concatenate([texts, new[:, None]], axis=1)
    return [tokenizer.decode(t) for t in texts]


@cache
def _chooser(random: bool) -> Callable[..., Any]:
    """The compiled choice of the token after a position, drawn at random or the most likely."""

    def choose(model: GPT, tokens: Any, position: Any, temperature: Any, generator: Any) -> Any:
        logits = rg.take(model(tokens), position, axis=1)
        if not random:
            return rg.argmax(logits, axis=-1), generator
        return generator.categorical(logits / temperature), generator

    return rg.jit(choose)
