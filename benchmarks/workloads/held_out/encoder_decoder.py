"""An encoder and a decoder with attention, `nn.Transformer` as it is, 32 words to 32 words."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 2, 128, 4, 32, 16, 500


def model(lib: Any) -> Any:
    class Translation(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = lib.nn.Embedding(VOCABULARY, WIDTH)
            self.places = lib.nn.Embedding(LENGTH, WIDTH)
            self.transformer = lib.nn.Transformer(
                WIDTH, HEADS, LAYERS, LAYERS, 4 * WIDTH, dropout=0.0, batch_first=True
            )
            self.head = lib.nn.Linear(WIDTH, VOCABULARY)

        def forward(self, source: Any, target: Any, mask: Any) -> Any:
            place = self.places.weight
            a, b = self.words(source) + place, self.words(target) + place
            return self.head(self.transformer(a, b, tgt_mask=mask))

    return Translation()


def batches() -> list[tuple[Any, ...]]:
    """What is read, what was written before, what is to be written, and a mask: -inf where a word
    would see a later one."""
    rng = np.random.default_rng(1)
    mask = np.triu(np.full((LENGTH, LENGTH), -np.inf, np.float32), 1)
    found = []
    for _ in range(4):
        source = rng.integers(0, VOCABULARY, (BATCH, LENGTH))
        target = rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1))
        found.append((source, target[:, :-1].copy(), target[:, 1:].copy(), mask))
    return found


def loss(lib: Any, model: Any, source: Any, before: Any, target: Any, mask: Any) -> Any:
    scores = model(source, before, mask).reshape((-1, VOCABULARY))
    return lib.nn.functional.cross_entropy(scores, target.reshape((-1,)))


WORKLOAD = Workload(
    "held-encoder-decoder",
    "nn.Transformer, 2 and 2 layers, 128 wide, 32 words, batch 16, Adam",
    trained_module(model, loss, batches),
    checks=5,
)
