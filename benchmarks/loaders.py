"""Batches of `rg.data.DataLoader` beside the bare gather of their rows, and PyTorch's.

    python -m benchmarks.loaders

Microseconds of the processor for a batch of 32, the least of alternating turns.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd.data import ArrayDataset, DataLoader

BATCH, COUNT, TURNS = 32, 500, 7
X, Y = np.ones((BATCH * COUNT, 32), np.float32), np.arange(BATCH * COUNT)
SAMPLES = list(zip(X, Y, strict=True))


class Gather:
    """The rows of each batch, and nothing else."""

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(0).permutation(len(Y))
        for k in range(COUNT):
            at = order[BATCH * k : BATCH * (k + 1)]
            yield X.take(at, 0), Y.take(at, 0)


def loaders() -> dict[str, Any]:
    found: dict[str, Any] = {
        "gather alone": Gather(),
        "arrays": DataLoader(ArrayDataset(X, Y), BATCH, shuffle=True),
        "list of samples": DataLoader(SAMPLES, BATCH, shuffle=True),
    }
    if importlib.util.find_spec("torch"):
        import torch
        from torch.utils import data

        arrays = data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
        found["arrays, PyTorch"] = data.DataLoader(arrays, BATCH, shuffle=True)
        found["list of samples, PyTorch"] = data.DataLoader(SAMPLES, BATCH, shuffle=True)
    return found


def main() -> None:
    every = loaders()
    least = dict.fromkeys(every, float("inf"))
    for _ in range(TURNS):
        for name, loader in every.items():
            start = time.process_time()
            for _ in loader:
                pass
            least[name] = min(least[name], time.process_time() - start)
    for name, seconds in least.items():
        print(f"{name:26} {seconds / COUNT * 1e6:8.1f} us")


if __name__ == "__main__":
    main()
