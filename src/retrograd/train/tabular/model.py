"""A network for rows of a table: embeddings of categories beside numbers, and layers on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import retrograd as rg
from retrograd import nn
from retrograd.functions.random.generator import Generator
from retrograd.nn import functional as F

WIDEST = 50  # numbers that stand for a category, at most


class TabularNetwork(nn.Module):
    """`[N, outputs]` for numbers `[N, F]` and places of values `[N, C]`: each category has an
    embedding, and layers with batch norm, SiLU and dropout follow one another."""

    def __init__(
        self, numbers: int, sizes: Sequence[int], outputs: int, width: int, depth: int,
        dropout: float, generator: Generator,
    ) -> None:  # fmt: skip
        widths = [min(WIDEST, (n + 1) // 2 + 1) for n in sizes]
        self.embeddings = nn.ModuleList(
            [nn.Embedding(n, w, generator=generator) for n, w in zip(sizes, widths, strict=True)]
        )
        layers: list[Any] = []
        before = numbers + sum(widths)
        for _ in range(depth):
            layers += [
                nn.Linear(before, width, generator=generator),
                nn.BatchNorm1d(width),
                nn.SiLU(),
                nn.Dropout(dropout, generator=generator),
            ]
            before = width
        self.layers = nn.Sequential(*layers, nn.Linear(before, outputs, generator=generator))

    def forward(self, numbers: Any, places: Any) -> Any:
        parts = [numbers, *[e(places[:, i]) for i, e in enumerate(self.embeddings)]]
        return self.layers(rg.concat(parts, axis=1))


def loss_of(model: TabularNetwork, batch: Any, classes: bool) -> Any:
    """Cross entropy of classes; of numbers, in standard deviations, the smooth absolute error."""
    numbers, places, target = batch
    scores = model(numbers, places)
    if classes:
        return F.cross_entropy(scores, target)
    return F.smooth_l1_loss(scores[:, 0], target)
