"""Random numbers of data: functions of a seed, the epoch, and the index of a sample.

They come from Philox counters (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
2011): the seed makes the key, epoch and index are parts of the counter. So a sample that is made
again, in another process or after a resume, is the same to the bit.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any

import numpy as np

from retrograd.errors import OptionError
from retrograd.functions.random.generator import Generator

Array = np.ndarray[Any, Any]
ORDER, SAMPLE, SPLIT, STREAM, OWN, GLOBALS = range(
    6
)  # what numbers are for: each has streams of its own


def checked_seed(seed: Any, what: str) -> int:
    """A seed as an int. `OptionError` for what is no non-negative integer."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or int(seed) < 0:
        raise OptionError(f"{what}: a seed is a non-negative integer, not {seed!r}")
    return int(seed)


def given_seed(seed: Any, source: Any, what: str) -> Any:
    """The seed of an option `seed`, None included; or one drawn from a generator, of retrograd or
    of NumPy, or that of a generator of PyTorch."""
    if source is None:
        return None if seed is None else checked_seed(seed, what)
    if isinstance(source, Generator):
        return int(source.randint(0, 2**62, ()).item())
    if isinstance(source, np.random.Generator):
        return int(source.integers(2**62))
    if callable(initial := getattr(source, "initial_seed", None)):
        return int(initial())
    raise OptionError(
        f"{what}: generator is an rg.random.Generator, not {type(source).__name__}; of a number: "
        "seed=..."
    )


@functools.lru_cache(64)
def _key(seed: int, purpose: int) -> Array:
    made: Array = np.random.SeedSequence(seed, spawn_key=(purpose,)).generate_state(2, np.uint64)
    return made


def generator(seed: int, purpose: int, epoch: int = 0, index: int = 0) -> np.random.Generator:
    """The random numbers of a sample, or of an epoch."""
    counter = [0, 0, index % 2**64, epoch % 2**64]
    return np.random.Generator(np.random.Philox(key=_key(seed, purpose), counter=counter))


class SampleContext:
    """What is being fetched: the sample `index` in an epoch, of a batch of samples `indices`."""

    __slots__ = ("_drawn_for", "_generator", "epoch", "index", "indices", "seed")

    def __init__(self, seed: int, epoch: int, index: int = 0) -> None:
        self.seed = seed
        self.epoch = epoch
        self.index = index
        self.indices: Any = None
        self._drawn_for = -1
        self._generator: np.random.Generator | None = None

    def generator(self) -> np.random.Generator:
        """The random numbers of this sample, which its transforms draw from one after the other."""
        if self._generator is None or self._drawn_for != self.index:
            self._generator = generator(self.seed, SAMPLE, self.epoch, self.index)
            self._drawn_for = self.index
        return self._generator

    def named(self, position: int) -> str:
        """How an error calls the sample at a position of the batch."""
        if self.indices is None or position >= len(self.indices):
            return f"sample {position} of the batch"
        return f"sample {self.indices[position]}"


CURRENT: ContextVar[SampleContext | None] = ContextVar("sample", default=None)


def sample_generator() -> np.random.Generator:
    """The random numbers of the sample that is being made: for datasets and functions of your own
    that draw some. Inside of a `DataLoader` they are a function of its seed, the epoch, and the
    index of the sample; elsewhere of nothing, so that they are the same at every call.

    >>> from retrograd.data import sample_generator
    >>> bool(sample_generator().random() == sample_generator().random())
    True
    """
    context = CURRENT.get()
    return generator(0, SAMPLE) if context is None else context.generator()
