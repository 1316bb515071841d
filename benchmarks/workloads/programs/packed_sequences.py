"""A GRU that classifies sequences of other lengths at every step, as packed sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.adam import eager
from benchmarks.workloads.libraries import both, filled, item

BATCH, LENGTH, WIDTH, VOCABULARY, CLASSES, STEPS, LR = 16, 40, 64, 100, 5, 200, 2e-3


def batches() -> list[tuple[Any, Any]]:
    """Sequences of 5 to LENGTH words, and their classes."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(STEPS):
        sequences = [rng.integers(0, VOCABULARY, n) for n in rng.integers(5, LENGTH + 1, BATCH)]
        found.append((sequences, rng.integers(0, CLASSES, BATCH)))
    return found


def program(lib: Any) -> Session:
    nn, rnn = lib.nn, lib.nn.utils.rnn

    class Classifier(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, padded: Any, lengths: list[int]) -> Any:
            packed = rnn.pack_padded_sequence(
                self.embedding(padded), lengths, batch_first=True, enforce_sorted=False
            )
            return self.head(self.gru(packed)[1][-1])

    model = filled(lib, Classifier())
    optimizer = lib.optim.Adam(model.parameters(), lr=LR)

    def loss(model: Any, sequences: list[Any], y: Any) -> Any:
        padded = rnn.pad_sequence(sequences, batch_first=True)
        return nn.functional.cross_entropy(model(padded, [len(s) for s in sequences]), y)

    given = [([lib.tensor(s) for s in sequences], lib.tensor(y)) for sequences, y in batches()]
    return loop(eager(loss, model, optimizer), None, given, item)


WORKLOAD = Workload(
    "program-packed-gru",
    "GRU on packed sequences, 16 of 5 to 40 words, new lengths at every step, Adam",
    both(program),
)
