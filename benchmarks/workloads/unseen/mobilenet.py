"""A block of MobileNet, repeated: expand by 1x1, depthwise 3x3, shrink by 1x1, with batch norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

BATCH, SIDE, WIDTH, EXPANDED, BLOCKS = 16, 28, 32, 128, 3


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p: dict[str, Any] = {"first": normal(rng, WIDTH, 3, 3, 3), "last": normal(rng, 10, WIDTH)}
    for i in range(BLOCKS):
        p[f"{i}.wide"] = normal(rng, EXPANDED, WIDTH, 1, 1)
        p[f"{i}.depth"] = normal(rng, EXPANDED, 1, 3, 3)
        p[f"{i}.narrow"] = normal(rng, WIDTH, EXPANDED, 1, 1)
        for part, width in (("wide", EXPANDED), ("depth", EXPANDED), ("narrow", WIDTH)):
            p[f"{i}.{part}.w"] = np.ones(width, np.float32)
            p[f"{i}.{part}.b"] = np.zeros(width, np.float32)
    return p


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, 3, SIDE, SIDE)).astype(np.float32)
    return list(zip(x, rng.integers(0, 10, (4, BATCH)), strict=True))


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional

    def convolved(x: Any, name: str, groups: int = 1) -> Any:
        w = p[name]
        h = F.conv2d(x, w, padding=w.shape[-1] // 2, groups=groups)
        return F.batch_norm(h, None, None, p[f"{name}.w"], p[f"{name}.b"], training=True)

    h = F.conv2d(x, p["first"], padding=1)
    for i in range(BLOCKS):
        a = F.relu6(convolved(h, f"{i}.wide"))
        a = F.relu6(convolved(a, f"{i}.depth", EXPANDED))
        h = h + convolved(a, f"{i}.narrow")
    return F.cross_entropy(F.linear(h.mean((2, 3)), p["last"]), y)


WORKLOAD = Workload(
    "unseen-mobilenet",
    "3 blocks of MobileNet, 32 channels widened to 128, 28x28, batch 16, Adam",
    trained(weights, batches, loss, jax=False),
    checks=5,
    tolerance=1e-3,  # ReLU6 chooses and Adam divides by small numbers, as in W5
)
