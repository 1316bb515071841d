"""Transforms of transforms, and what all random ones have in common."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.data.dataset import draws
from retrograd.data.randomness import CURRENT, OWN, checked_seed, generator
from retrograd.errors import ArgumentError, OptionError


class RandomTransform:
    """A transform that draws random numbers. Subclasses have `apply(x, rng)`.

    `rng`, a `numpy.random.Generator`, is the one that the transform is called with; else, while a
    `DataLoader` or a `MapDataset` makes a sample, that of the sample, which is a function of the
    loader's seed, the epoch and the index; else one of `seed`, which goes on from call to call.

    >>> import numpy as np
    >>> from retrograd.data.transforms import RandomTransform
    >>> class Jitter(RandomTransform):
    ...     def apply(self, x, rng):
    ...         return x + rng.integers(10)
    >>> Jitter()(0, rng=np.random.default_rng(1)) == Jitter()(0, rng=np.random.default_rng(1))
    np.True_
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = checked_seed(seed, type(self).__name__)
        self._own: np.random.Generator | None = None

    def apply(self, x: Any, rng: np.random.Generator) -> Any:
        """The transformed x."""
        raise NotImplementedError(f"{type(self).__name__} has no apply; write one")

    def __call__(self, x: Any, rng: np.random.Generator | None = None) -> Any:
        return self.apply(x, self._numbers(rng))

    def _numbers(self, rng: np.random.Generator | None) -> np.random.Generator:
        if rng is not None:
            return rng
        if (context := CURRENT.get()) is not None:
            return context.generator()
        if getattr(self, "_own", None) is None:
            name = zlib.crc32(type(self).__name__.encode())  # so that two in a row differ
            self._own = generator(getattr(self, "seed", 0), OWN, index=name)
        assert self._own is not None
        return self._own


class Compose(RandomTransform):
    """Transforms one after another. `ArgumentError` for one that is no function.

    >>> from retrograd.data.transforms import Compose, OneHot
    >>> Compose([int, OneHot(3)])("1").tolist()
    [0.0, 1.0, 0.0]
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], seed: int = 0) -> None:
        super().__init__(seed)
        self.transforms = list(transforms)
        for i, t in enumerate(self.transforms):
            if not callable(t):
                raise ArgumentError(f"Compose: transform {i} is a function, not {t!r}")
        self._draws = [draws(t) for t in self.transforms]

    def apply(self, x: Any, rng: np.random.Generator) -> Any:
        for t, is_random in zip(self.transforms, self._draws, strict=True):
            x = t(x, rng=rng) if is_random else t(x)
        return x


class RandomApply(RandomTransform):
    """A transform, with probability `p`; `OptionError` where that is none.

    >>> from retrograd.data.transforms import RandomApply
    >>> RandomApply(str, p=0.0)(5)
    5
    """

    def __init__(self, transform: Callable[..., Any], p: float = 0.5, seed: int = 0) -> None:
        super().__init__(seed)
        self.transform = transform
        self.p = probability(p, "RandomApply")
        self._draws = draws(transform)

    def apply(self, x: Any, rng: np.random.Generator) -> Any:
        if rng.random() >= self.p:
            return x
        return self.transform(x, rng=rng) if self._draws else self.transform(x)


def probability(p: float, what: str) -> float:
    """A number from 0 to 1; `OptionError` for another."""
    if not 0 <= p <= 1:
        raise OptionError(f"{what}: p is a probability, from 0 to 1, not {p}")
    return float(p)
