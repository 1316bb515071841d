"""Random graphs of all kinds, and networks on them written op by op for PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def shapes(rng: np.random.Generator) -> Iterator[tuple[str, int, Array]]:
    """Graphs of every special kind, and their number of nodes."""
    none = np.zeros((2, 0), np.int64)
    yield "empty", 0, none
    yield "one node", 1, none
    yield "one loop", 1, np.zeros((2, 1), np.int64)
    yield "no edges", 5, none
    yield "parallel edges", 3, np.array([[0, 0, 0, 1, 1], [1, 1, 1, 2, 2]])
    yield "disconnected", 6, np.array([[0, 1, 3, 4], [1, 0, 4, 3]])
    yield "deep chain", 40, np.stack([np.arange(39), np.arange(1, 40)])
    yield "star in", 30, np.stack([np.arange(1, 30), np.zeros(29, np.int64)])
    yield "star out", 30, np.stack([np.zeros(29, np.int64), np.arange(1, 30)])
    yield "loops", 4, np.stack([np.arange(4), np.arange(4)])


def any_graph(rng: np.random.Generator) -> tuple[int, Array]:
    n = int(rng.integers(1, 12))
    return n, rng.integers(0, n, (2, int(rng.integers(0, 30))))


def any_dag(rng: np.random.Generator, most: int = 14) -> tuple[int, Array]:
    """Edges lead forward in a random order of nodes; some are parallel."""
    n = int(rng.integers(1, most))
    if n == 1:
        return n, np.zeros((2, 0), np.int64)
    pairs = np.sort(rng.integers(0, n, (2, int(rng.integers(0, 3 * n)))), axis=0)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return n, rng.permutation(n)[pairs]
