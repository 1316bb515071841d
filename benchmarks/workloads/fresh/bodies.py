"""A hundred bodies that attract each other: which velocities bring them where they are to go."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

BODIES, STEPS, TIME, SOFT = 100, 10, 0.05, 0.1


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "velocity": rng.normal(0, 0.1, (BODIES, 2)).astype(np.float32),
        "mass": np.zeros(BODIES, np.float32),
    }


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    start = rng.uniform(-1, 1, (BODIES, 2)).astype(np.float32)
    return [(start, 0.9 * start)]


def loss(lib: Any, p: Any, start: Any, goal: Any) -> Any:
    mass = lib.exp(p["mass"]) / BODIES

    def pull(x: Any) -> Any:
        apart = x[None] - x[:, None]
        square = (apart**2).sum(-1) + SOFT**2
        return (mass[None, :, None] * apart / (square * lib.sqrt(square))[..., None]).sum(1)

    x, v = start, p["velocity"]
    for _ in range(STEPS):
        v = v + TIME / 2 * pull(x)
        x = x + TIME * v
        v = v + TIME / 2 * pull(x)
    return ((x - goal) ** 2).sum(-1).mean()


WORKLOAD = Workload(
    "fresh-bodies",
    "100 bodies, 10 steps of leapfrog, gradient by velocities and masses, Adam",
    trained(weights, batches, loss, lr=1e-2),
)
