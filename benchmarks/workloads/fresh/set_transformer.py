"""A Set Transformer: attention through inducing points, pooling by attention, on sets of points."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

SETS, POINTS, WIDTH, HEADS, INDUCING, CLASSES = 16, 100, 64, 4, 16, 10


def set_transformer(lib: Any) -> Any:
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        """Attention of `x` to `y`, and a layer for each row."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.rows = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())

        def forward(self, x: Any, y: Any) -> Any:
            h = self.first(x + self.attention(x, y, y, need_weights=False)[0])
            return self.second(h + self.rows(h))

    class Induced(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.points = nn.Parameter(lib.zeros((1, INDUCING, WIDTH)))
            self.write, self.read = Block(), Block()

        def forward(self, x: Any) -> Any:
            points = self.points.expand(x.shape[0], INDUCING, WIDTH)
            return self.read(x, self.write(points, x))

    class SetTransformer(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.Linear(3, WIDTH)
            self.encoder = nn.Sequential(Induced(), Induced())
            self.seed = nn.Parameter(lib.zeros((1, 1, WIDTH)))
            self.pool = Block()
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, x: Any) -> Any:
            h = self.encoder(self.rows(x))
            seed = self.seed.expand(x.shape[0], 1, WIDTH)
            return self.head(self.pool(seed, h)[:, 0])

    return SetTransformer()


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, SETS, POINTS, 3)).astype(np.float32)
    return list(zip(x, rng.integers(0, CLASSES, (4, SETS)), strict=True))


def loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    return lib.nn.functional.cross_entropy(model(x), y)


WORKLOAD = Workload(
    "fresh-set-transformer",
    "Set Transformer, width 64, 16 inducing points, 16 sets of 100 points, Adam",
    trained_module(set_transformer, loss, batches),
)
