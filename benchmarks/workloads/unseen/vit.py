"""A vision transformer: patches of 4x4 of 32x32 images, four `nn.TransformerEncoderLayer`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

BATCH, SIDE, PATCH, WIDTH, HEADS, LAYERS, CLASSES = 16, 32, 4, 96, 4, 4, 10


def model(lib: Any) -> Any:
    nn = lib.nn

    class ViT(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            options: Any = {"activation": "gelu", "batch_first": True, "norm_first": True}
            layers = [
                nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, **options)
                for _ in range(LAYERS)
            ]
            self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
            self.places = nn.Embedding((SIDE // PATCH) ** 2, WIDTH)
            self.encoder = nn.Sequential(*layers)
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

        def forward(self, x: Any) -> Any:
            h = self.patches(x).reshape((x.shape[0], WIDTH, -1)).swapaxes(1, 2)
            h = self.encoder(h + self.places.weight)
            return self.head(self.norm(h.mean(1)))

    return ViT()


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, 3, SIDE, SIDE)).astype(np.float32)
    return list(zip(x, rng.integers(0, CLASSES, (4, BATCH)), strict=True))


def loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    return lib.nn.functional.cross_entropy(model(x), y)


WORKLOAD = Workload(
    "unseen-vit",
    "ViT, 4 layers, 96 wide, 64 patches, batch 16, Adam",
    trained_module(model, loss, batches),
    checks=5,
)
