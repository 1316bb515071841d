"""A U-Net of three levels on 64x64 images: convolutions, pooling, transposed convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

BATCH, SIDE, WIDTHS = 4, 64, (16, 32, 64)


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p: dict[str, Any] = {}
    before = 3
    for i, width in enumerate(WIDTHS):
        p[f"down{i}"], before = normal(rng, width, before, 3, 3), width
    for i, width in reversed(list(enumerate(WIDTHS[:-1]))):
        p[f"turn{i}"] = normal(rng, before, width, 2, 2)
        p[f"up{i}"], before = normal(rng, width, 2 * width, 3, 3), width
    return {**p, "last": normal(rng, 1, before, 1, 1)}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, 3, SIDE, SIDE)).astype(np.float32)
    return list(zip(x, x.mean(2, keepdims=True), strict=True))


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional
    h, kept = x, []
    for i in range(len(WIDTHS)):
        h = F.max_pool2d(h, 2) if i else h
        h = F.relu(F.conv2d(h, p[f"down{i}"], padding=1))
        kept.append(h)
    for i in reversed(range(len(WIDTHS) - 1)):
        h = F.conv_transpose2d(h, p[f"turn{i}"], stride=2)
        h = F.relu(F.conv2d(lib.concat([kept[i], h], axis=1), p[f"up{i}"], padding=1))
    return F.mse_loss(F.conv2d(h, p["last"]), y)


WORKLOAD = Workload(
    "held-unet",
    "U-Net, 3 levels of 16 to 64 channels, 64x64, batch 4, Adam",
    trained(weights, batches, loss, jax=False),
    checks=5,
    tolerance=1e-3,  # ReLU and pooling choose, as in W5
)
