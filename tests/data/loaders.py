"""Loaders of every kind, for tests of what all of them do."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.data import (
    ArrayDataset,
    BatchSampler,
    ConcatDataset,
    DataLoader,
    IterableDataset,
    LengthGroupedSampler,
    MapDataset,
    MapIterableDataset,
    RandomSampler,
    ShuffleBuffer,
    Subset,
    WeightedRandomSampler,
    sample_generator,
)

N = 11
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.arange(N)


def plain(batch):
    """A batch as Python's data."""
    if isinstance(batch, rg.Tensor):
        return batch.tolist()
    if isinstance(batch, dict):
        return {k: plain(v) for k, v in batch.items()}
    return [plain(b) for b in batch] if isinstance(batch, tuple | list) else batch


def everything(loader):
    return [plain(b) for b in loader]


def noisy(sample, rng):
    return sample, rng.random(), sample_generator().integers(100)


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(N):
            yield i, sample_generator().random()

    def __len__(self):
        return N


class Parity:
    """A sampler without a seed, as people write them: it remembers its epoch."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        yield from range(self.epoch % 2, N, 2)

    def __len__(self):
        return len(range(self.epoch % 2, N, 2))


LOADERS: dict[str, Any] = {
    "arrays": lambda **k: DataLoader(ArrayDataset(X, Y), 3, shuffle=True, **k),
    "in order": lambda **k: DataLoader(ArrayDataset(X, Y), 3, drop_last=True, **k),
    "subset": lambda **k: DataLoader(Subset(ArrayDataset(X), [4, 1, 7, 7]), 2, shuffle=True, **k),
    "random": lambda **k: DataLoader(MapDataset(range(N), noisy), 3, shuffle=True, **k),
    "weighted": lambda **k: DataLoader(
        MapDataset(ArrayDataset(Y), noisy), 2, sampler=WeightedRandomSampler(1 + Y, 7), **k
    ),
    "replaced": lambda **k: DataLoader(
        range(N), 2, sampler=RandomSampler(range(N), True, 9, seed=4), **k
    ),
    "grouped": lambda **k: DataLoader(
        [[i] * (i % 4) for i in range(N)],
        3,
        sampler=LengthGroupedSampler(Y % 4, 3, pool=2),
        pad=-1,
        **k,
    ),
    "batches": lambda **k: DataLoader(
        MapDataset(range(N), noisy), batch_sampler=BatchSampler(RandomSampler(range(N)), 4), **k
    ),
    "own sampler": lambda **k: DataLoader(MapDataset(range(N), noisy), 2, sampler=Parity(), **k),
    "own batches": lambda **k: DataLoader(
        MapDataset(range(N), noisy), batch_sampler=[[0, 1], [5], [2, 9, 3]], **k
    ),
    "stream": lambda **k: DataLoader(Stream(), 3, **k),
    "shuffled stream": lambda **k: DataLoader(
        MapIterableDataset(ShuffleBuffer(Stream(), 4), noisy), 3, **k
    ),
    "one by one": lambda **k: DataLoader(MapDataset(range(N), noisy), None, shuffle=True, **k),
    "stream one by one": lambda **k: DataLoader(Stream(), None, **k),
    "concatenated": lambda **k: DataLoader(ConcatDataset([range(4), range(5)]), 2, True, **k),
    "concatenated in order": lambda **k: DataLoader(ConcatDataset([range(4), range(5)]), 2, **k),
}
