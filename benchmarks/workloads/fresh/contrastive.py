"""Contrastive learning: two towers on bags of words, every other pair of the batch a negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

BATCH, WORDS, WIDTH, VOCABULARY = 64, 20, 64, 1000


def towers(lib: Any) -> Any:
    nn = lib.nn
    F = nn.functional

    class Tower(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
            self.layers = nn.Sequential(
                nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)
            )

        def forward(self, words: Any) -> Any:
            mask = (words != 0).float().unsqueeze(-1)
            mean = (self.words(words) * mask).sum(1) / mask.sum(1).clamp(min=1)
            return F.normalize(self.layers(mean), dim=-1)

    class Towers(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.document = Tower(), Tower()
            self.scale = nn.Parameter(lib.tensor(np.array([2.0], np.float32)))

        def forward(self, query: Any, document: Any) -> Any:
            return self.scale.exp() * self.query(query) @ self.document(document).T

    return Towers()


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(8):
        words = rng.integers(1, VOCABULARY, (2, BATCH, WORDS))
        lengths = rng.integers(1, WORDS + 1, (2, BATCH, 1))
        words *= np.arange(WORDS) < lengths
        found.append((words[0], words[1]))
    return found


def loss(lib: Any, model: Any, query: Any, document: Any) -> Any:
    scores = model(query, document)
    own = lib.arange(BATCH)
    cross_entropy = lib.nn.functional.cross_entropy
    return (cross_entropy(scores, own) + cross_entropy(scores.T, own)) / 2


WORKLOAD = Workload(
    "fresh-contrastive",
    "two towers of width 64, 64 pairs, negatives from the batch, Adam",
    trained_module(towers, loss, batches),
)
