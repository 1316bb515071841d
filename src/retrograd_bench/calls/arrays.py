"""The arrays that calls are made on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg

SEED = 3
Call = Callable[[], Any]


class Arrays:
    """Arrays of a size that calls are made on."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(SEED)
        self.rng, self.n = rng, n
        self.x = self.uniform(n, n + 2)
        self.y = self.uniform(n, n + 2)
        self.row = self.uniform(n + 2)
        square = rng.uniform(-0.5, 0.5, (n, n)) + 2 * np.eye(n)
        self.m = rg.tensor(square.astype(np.float32))
        self.spd = rg.tensor((square @ square.T + np.eye(n)).astype(np.float32))
        self.i = rg.tensor(rng.integers(0, n, (n, n + 2)))
        self.rows = rg.tensor(rng.integers(0, n, n + 1))
        self.mask = rg.tensor(rng.random((n, n + 2)) < 0.5)
        self.z = rg.tensor((rng.normal(size=(n, n + 2)) + 0.5j).astype(np.complex64))
        self.sequence = self.uniform(2, 3, 2 * n + 2)
        self.image = self.uniform(2, 3, 2 * n, 2 * n + 2)
        self.volume = self.uniform(1, 2, n + 1, n + 2, n + 3)

    def uniform(self, *shape: int) -> rg.Tensor:
        return rg.tensor(self.rng.uniform(0.1, 0.9, shape).astype(np.float32))
