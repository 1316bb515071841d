"""Ray marching: spheres joined smoothly, seen by rays that walk by their distance to the surface;
normals are gradients of the distance, and the picture is fitted to another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

SIDE, SPHERES, MARCHES, SMOOTH = 32, 4, 16, 8.0


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "centre": rng.normal(0, 0.5, (SPHERES, 3)).astype(np.float32),
        "radius": np.full(SPHERES, 0.5, np.float32),
    }


def batches() -> list[tuple[Any, Any, Any]]:
    """Where rays begin and go, and how bright they are to be."""
    a, b = np.meshgrid(*[np.linspace(-1, 1, SIDE)] * 2)
    toward = np.stack([a, b, np.full_like(a, 2.0)], -1).reshape(-1, 3)
    toward /= np.linalg.norm(toward, axis=-1, keepdims=True)
    origin = np.broadcast_to([0.0, 0.0, -3.0], toward.shape)
    bright = np.exp(-(a**2 + b**2)).reshape(-1)
    origin, toward, bright = (v.astype(np.float32) for v in (origin, toward, bright))
    return [(origin, toward, bright)]


def loss(lib: Any, p: Any, origin: Any, toward: Any, bright: Any) -> Any:
    light = lib.tensor(np.array([0.5, 0.7, -0.5], np.float32))

    def distance(x: Any) -> Any:
        each = lib.sqrt(((x[:, None] - p["centre"]) ** 2).sum(-1) + 1e-6) - p["radius"]
        return -lib.logsumexp(-SMOOTH * each, -1) / SMOOTH

    along = lib.zeros((SIDE * SIDE,))
    for _ in range(MARCHES):
        along = along + distance(origin + along[:, None] * toward)
    x = origin + along[:, None] * toward
    if lib.__name__ == "torch":
        (normal,) = lib.autograd.grad(distance(x).sum(), x, create_graph=True)
    else:
        normal = lib.grad(lambda x: distance(x).sum())(x)
    hit = lib.sigmoid(-20 * (distance(x) - 0.05))
    return ((hit * lib.relu((normal * light).sum(-1)) - bright) ** 2).mean()


WORKLOAD = Workload(
    "fresh-ray-marching",
    "4 spheres, 32 x 32 rays of 16 marches, shaded by gradients, Adam",
    trained(weights, batches, loss, lr=1e-3),
)
