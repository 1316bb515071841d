"""Deep sets: points of sets of other sizes at every step, summed up by set."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, segment_sum, trained

SETS, MOST, FEATURES, WIDTH, STEPS = 64, 50, 8, 64, 300


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = {"in": (WIDTH, FEATURES), "point": (WIDTH, WIDTH), "set": (WIDTH, WIDTH)}
    return {k: normal(rng, *shape) for k, shape in {**sizes, "out": (1, WIDTH)}.items()}


def batches() -> list[tuple[Any, Any, Any]]:
    """Points, the set of each, and of each set the mean of the largest coordinates."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(STEPS):
        counts = rng.integers(1, MOST + 1, SETS)
        x = rng.normal(0, 1, (counts.sum(), FEATURES)).astype(np.float32)
        ids = np.repeat(np.arange(SETS), counts)
        y = np.bincount(ids, x.max(1)) / counts
        found.append((x, ids, y.astype(np.float32)))
    return found


def loss(lib: Any, p: Any, x: Any, ids: Any, y: Any) -> Any:
    F = lib.nn.functional
    h = F.relu(F.linear(F.relu(F.linear(x, p["in"])), p["point"]))
    h = F.relu(F.linear(segment_sum(lib, h, ids, SETS) / MOST, p["set"]))
    return F.mse_loss(F.linear(h, p["out"])[:, 0], y)


WORKLOAD = Workload(
    "unseen-deep-sets",
    "deep sets of width 64 on 64 sets of 1 to 50 points, new sizes at every step, Adam",
    trained(weights, batches, loss, jax=False, named=("N _", "N", "_")),
)
