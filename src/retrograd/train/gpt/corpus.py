"""The training text as arrays of tokens, in an order that depends on the seed only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.data import CharTokenizer, split_documents
from retrograd.data.text import shuffled

Array = np.ndarray[Any, Any]

IGNORED = -100  # the target of positions that are only padding


class Corpus:
    """Documents as samples of tokens and, one further, targets.

    A document longer than `context` is cut into samples of that length. Epoch after epoch, the
    samples are shuffled anew; the batch of a step depends on nothing but the step and the seed, so
    training can go on at any step.
    """

    def __init__(
        self, documents: Sequence[str], context: int, seed: int = 0, held_out: float = 0.1
    ) -> None:
        self.tokenizer = CharTokenizer.of(documents)
        self.seed = seed
        self.documents = len(documents)
        self.checksum = hashlib.sha256("\n".join(documents).encode()).hexdigest()
        training, validation = split_documents(documents, seed, held_out)
        self.training = self._samples(training, context)
        self.validation = self._samples(validation, context)
        self._order: tuple[int, list[int]] = (-1, [])

    def _samples(self, documents: Sequence[str], context: int) -> list[Array]:
        tokens = [np.array(self.tokenizer.encode(d), np.int32) for d in documents]
        return [t[i : i + context + 1] for t in tokens for i in range(0, len(t) - 1, context)]

    def batch(self, step: int, size: int) -> tuple[Array, Array]:
        """`(tokens, targets)` of a step, both `[size, length]`, padded to the longest sample."""
        return padded([self._sample(step * size + i) for i in range(size)])

    def _sample(self, number: int) -> Array:
        epoch, place = divmod(number, len(self.training))
        if self._order[0] != epoch:
            # Seeds of 64 bits and more are the user's seed and the number of the epoch.
            self._order = epoch, shuffled(len(self.training), self.seed + ((epoch + 1) << 64))
        return self.training[self._order[1][place]]


def padded(samples: Sequence[Array], length: int | None = None) -> tuple[Array, Array]:
    """Samples of n + 1 tokens as `(tokens, targets)` of equal length.

    >>> [a.tolist() for a in padded([np.array([2, 0, 1]), np.array([2, 0])])]
    [[[2, 0], [2, 0]], [[0, 1], [0, -100]]]
    """
    n = max(len(s) for s in samples) - 1 if length is None else length
    tokens = np.zeros((len(samples), n), np.int32)
    targets = np.full((len(samples), n), IGNORED, np.int32)
    for i, s in enumerate(samples):
        tokens[i, : len(s) - 1] = s[:-1]
        targets[i, : len(s) - 1] = s[1:]
    return tokens, targets
