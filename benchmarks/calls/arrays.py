"""The arrays that calls are made on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import retrograd as rg

SEED = 3
Call = Callable[[], Any]


class Arrays:
    """Arrays of a size that calls are made on; those of numbers may want gradients."""

    def __init__(self, n: int, requires_grad: bool = False) -> None:
        self.requires_grad = requires_grad
        self.made: list[rg.Tensor] = []
        self._again: Iterator[rg.Tensor] = iter(())
        rng = np.random.default_rng(SEED)
        self.rng, self.n = rng, n
        self.x = self.uniform(n, n + 2)
        self.y = self.uniform(n, n + 2)
        self.row = self.uniform(n + 2)
        square = rng.uniform(-0.5, 0.5, (n, n)) + 2 * np.eye(n)
        self.m = self.given(square)
        self.spd = self.given(square @ square.T + np.eye(n))
        self.i = rg.tensor(rng.integers(0, n, (n, n + 2)))
        self.rows = rg.tensor(rng.integers(0, n, n + 1))
        self.mask = rg.tensor(rng.random((n, n + 2)) < 0.5)
        self.z = self.given(rng.normal(size=(n, n + 2)) + 0.5j, np.complex64)
        self.sequence = self.uniform(2, 3, 2 * n + 2)
        self.image = self.uniform(2, 3, 2 * n, 2 * n + 2)
        self.volume = self.uniform(1, 2, n + 1, n + 2, n + 3)

    def given(self, array: np.ndarray[Any, Any], dtype: Any = np.float32) -> rg.Tensor:
        return self._next(lambda: array.astype(dtype))

    def uniform(self, *shape: int) -> rg.Tensor:
        return self._next(lambda: self.rng.uniform(0.1, 0.9, shape).astype(np.float32))

    def again(self, start: int) -> None:
        """Give what was made from here on, before making anything."""
        self._again = iter(self.made[start:])

    def _next(self, make: Callable[[], np.ndarray[Any, Any]]) -> rg.Tensor:
        if (x := next(self._again, None)) is not None:
            return x
        x = rg.tensor(make(), requires_grad=self.requires_grad)
        self.made.append(x)
        return x

    def gradients(self) -> list[np.ndarray[Any, Any]]:
        """The gradients that there are, which are forgotten."""
        found = [x.grad.numpy() for x in self.made if x.grad is not None]
        for x in self.made:
            x.grad = None
        return found
