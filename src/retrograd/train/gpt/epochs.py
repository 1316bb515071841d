"""The order of samples: every epoch has each once, in an order that depends on the seed only."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from retrograd.functions.random.generator import Generator

Array = np.ndarray[Any, Any]


class Epochs:
    """The samples below `count`, epoch after epoch in a new order.

    >>> order = Epochs(3, seed=0)
    >>> order.numbers(0, 3).tolist() == order.numbers(0, 2).tolist() + order.numbers(2, 1).tolist()
    True
    """

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed
        self._order = lru_cache(maxsize=2)(self._shuffled)

    def _shuffled(self, epoch: int) -> Array:
        # Seeds of 64 bits and more are the user's seed and the number of the epoch.
        order = Generator(self.seed + ((epoch + 1) << 64)).permutation(self.count)
        return np.asarray(order.numpy())

    def numbers(self, first: int, count: int) -> Array:
        """Which samples come from the `first`-th on."""
        parts = []
        while count > 0:
            epoch, place = divmod(first, self.count)
            part = self._order(epoch)[place : place + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
