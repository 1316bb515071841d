"""Sequence to sequence: GRU cells in Python loops, attention, and teacher forcing by chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

BATCH, LENGTH, WIDTH, VOCABULARY = 16, 12, 64, 60


def translator(lib: Any) -> Any:
    nn = lib.nn

    class Translator(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.source = nn.Embedding(VOCABULARY, WIDTH)
            self.target = nn.Embedding(VOCABULARY, WIDTH)
            self.encoder = nn.GRUCell(WIDTH, WIDTH)
            self.decoder = nn.GRUCell(2 * WIDTH, WIDTH)
            self.head = nn.Linear(2 * WIDTH, VOCABULARY)

        def forward(self, x: Any, y: Any, forced: list[bool]) -> Any:
            h, words = lib.zeros((BATCH, WIDTH)), self.source(x)
            memory = []
            for t in range(LENGTH):
                h = self.encoder(words[:, t], h)
                memory.append(h)
            memory = lib.stack(memory, 1)
            seen = lib.zeros((BATCH, WIDTH))
            word, found = y[:, 0], []
            for t in range(LENGTH):
                h = self.decoder(lib.cat([self.target(word), seen], 1), h)
                weights = lib.softmax((memory @ h.unsqueeze(2)).squeeze(2), 1)
                seen = (weights.unsqueeze(1) @ memory).squeeze(1)
                scores = self.head(lib.cat([h, seen], 1))
                found.append(scores)
                word = y[:, t + 1] if forced[t] else scores.argmax(1)
            return lib.stack(found, 1)

    return Translator()


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.integers(1, VOCABULARY, (4, BATCH, LENGTH))
    y = np.concatenate([np.zeros((4, BATCH, 1), np.int64), x[:, :, ::-1]], 2)
    return list(zip(x, y, strict=True))


def loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    scores = model(x, y, [t % 4 != 3 for t in range(LENGTH)])
    return lib.nn.functional.cross_entropy(
        scores.reshape((BATCH * LENGTH, VOCABULARY)), y[:, 1:].reshape((BATCH * LENGTH,))
    )


WORKLOAD = Workload(
    "fresh-translation",
    "GRU cells with attention, 16 sentences of 12 words, width 64, Adam",
    trained_module(translator, loss, batches),
)
