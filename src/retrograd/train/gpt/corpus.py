"""Documents as arrays of tokens, in an order that depends on the seed only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.data import CharTokenizer, split_documents
from retrograd.train.gpt.epochs import Epochs

Array = np.ndarray[Any, Any]

IGNORED = -100  # the target of positions that are only padding
USUAL = 0.75  # of steps are of the usual length, about
ROUNDING = 4  # lengths of steps that are padded alike are multiples of it


class Corpus:
    """Documents as samples of tokens and, one further, targets.

    A document longer than `context` is cut into samples of that length. Epoch after epoch, the
    samples are shuffled anew; the batch of a step depends on nothing but the step and the seed, so
    training can go on at any step.
    """

    def __init__(
        self,
        documents: Sequence[str],
        context: int,
        seed: int = 0,
        held_out: float = 0.1,
        tokenizer: Any = None,
    ) -> None:
        self.tokenizer = CharTokenizer.of(documents) if tokenizer is None else tokenizer
        self.context = context
        self.documents = len(documents)
        self.checksum = checksum_of(documents)
        training, validation = split_documents(documents, seed, held_out)
        self.training = self._samples(training, context)
        self.validation = self._samples(validation, context)
        self._counts = len(training), len(validation)  # documents
        self._epochs = Epochs(len(self.training), seed)
        self._lengths = np.array([len(s) - 1 for s in self.training])
        self._starts = np.cumsum(self._lengths + 1) - self._lengths - 1
        end = np.zeros(context + 1, np.int32)  # so that there is a window at every start
        self._flat = np.concatenate([*self.training, end])

    @property
    def samples(self) -> int:
        """Windows in an epoch."""
        return len(self.training)

    def summary(self, most: int) -> str:
        """What there is to learn from and what is held out, for people. A validation looks at all
        of it, however many tokens it takes at a time."""
        del most
        rows = zip(self._counts, (self.training, self.validation), strict=True)
        parts = [
            f"{counted(documents, 'document')} in {counted(len(samples), 'window')} of at most "
            f"{self.context:,} tokens, {counted(sum(len(s) - 1 for s in samples), 'token')}"
            for documents, samples in rows
        ]
        held = parts[1] if self._counts[1] else "nothing"
        return f"To learn from: {parts[0]}\nHeld out for validation: {held}"

    def _samples(self, documents: Sequence[str], context: int) -> list[Array]:
        tokens = [np.array(self.tokenizer.encode(d), np.int32) for d in documents]
        return [t[i : i + context + 1] for t in tokens for i in range(0, len(t) - 1, context)]

    def batch(self, step: int, size: int, block: int = 1) -> tuple[Array, Array]:
        """`(tokens, targets)` of a step, both `[size, length]`, padded to the longest sample of
        the `block` steps that it is one of."""
        tokens, targets = self.batches(step, 1, size, block)
        return tokens[0], targets[0]

    def batches(
        self, step: int, most: int, size: int, block: int = 1, rows: Array | None = None
    ) -> tuple[Array, Array]:
        """`(tokens, targets)` of the steps from `step` on, `[steps, size, length]`: of at most so
        many, and of no more than are padded to the same length. With `rows` only these samples of
        each batch, `[steps, len(rows), length]`."""
        length, steps = self._length(step // block, size, block), block - step % block
        while steps < most and self._length((step + steps) // block, size, block) == length:
            steps += block
        steps = min(steps, most)
        chosen = chosen_rows(self._epochs.numbers(step * size, steps * size), size, rows)
        windows = np.lib.stride_tricks.sliding_window_view(self._flat, length + 1)
        samples = windows[self._starts[chosen]]
        learned = np.arange(length) < self._lengths[chosen][:, None]
        tokens = np.where(learned, samples[:, :-1], 0)
        targets = np.where(learned, samples[:, 1:], IGNORED)
        shape = (steps, -1, length)
        return tokens.reshape(shape), targets.reshape(shape)

    def learned(self, step: int, steps: int, size: int) -> int:
        """How many tokens so many steps learn from, on all devices."""
        return int(self._lengths[self._epochs.numbers(step * size, steps * size)].sum())

    def _length(self, number: int, size: int, block: int) -> int:
        """What samples of a block of steps are padded to."""
        chosen = self._epochs.numbers(number * block * size, block * size)
        longest = int(self._lengths[chosen].max())
        return longest if block == 1 else min(-(-longest // ROUNDING) * ROUNDING, self.context)

    def usual_length(self, size: int) -> int:
        """What the samples of three quarters of steps are no longer than."""
        share = USUAL ** (1 / size)
        length = int(np.quantile(self._lengths, share, method="higher"))
        return -(-length // ROUNDING) * ROUNDING

    def held_out(self, most: int) -> tuple[Array, Array]:
        """`(tokens, targets)` of the samples held out, `[chunks, size, length]`, in as few chunks
        as there are with at most `most` tokens each."""
        samples = self.validation
        length = max(map(len, samples), default=1) - 1
        chunks = -(-len(samples) * length // most) if samples else 0
        size = -(-len(samples) // chunks) if chunks else 0
        missing = chunks * size - len(samples)
        samples = [*samples, *[np.zeros(1, np.int32)] * missing]  # a lone token has no target
        tokens, targets = padded(samples, length)
        shape = (chunks, size, length)
        return tokens.reshape(shape), targets.reshape(shape)


def chosen_rows(numbers: Array, size: int, rows: Array | None) -> Array:
    """Of the samples of several batches of `size` those that stand in these rows of each.

    >>> chosen_rows(np.arange(8), 4, np.array([1, 2])).tolist()
    [1, 2, 5, 6]
    """
    return numbers if rows is None else numbers.reshape(-1, size)[:, rows].reshape(-1)


def counted(n: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "window"), counted(2000, "token")
    ('1 window', '2,000 tokens')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def checksum_of(documents: Sequence[str]) -> str:
    """What tells documents from others."""
    return hashlib.sha256("\n".join(documents).encode()).hexdigest()


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
