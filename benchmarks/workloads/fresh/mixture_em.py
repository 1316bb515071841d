"""A Gaussian mixture: some rounds of expectation and maximization, and a gradient through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

POINTS, FEATURES, PARTS, ROUNDS = 500, 2, 5, 5


def weights() -> dict[str, Any]:
    """Where the rounds begin."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 2, (PARTS, FEATURES)).astype(np.float32)
    return {"mean": means, "scale": np.zeros((PARTS, FEATURES), np.float32)}


def batches() -> list[tuple[Any]]:
    rng = np.random.default_rng(1)
    centre = rng.normal(0, 3, (PARTS, FEATURES))
    found = []
    for _ in range(4):
        part = rng.integers(0, PARTS, POINTS)
        found.append(((centre[part] + rng.normal(0, 1, (POINTS, FEATURES))).astype(np.float32),))
    return found


def joint(lib: Any, x: Any, share: Any, mean: Any, var: Any) -> Any:
    """Logarithms of the densities `[points, parts]`, up to a constant."""
    apart = (x[:, None] - mean) ** 2 / var
    return lib.log(share) - (apart.sum(-1) + lib.log(var).sum(-1)) / 2


def loss(lib: Any, p: Any, x: Any) -> Any:
    """How unlikely the points are after the rounds."""
    share, mean, var = lib.ones((PARTS,)) / PARTS, p["mean"], lib.exp(p["scale"])
    for _ in range(ROUNDS):
        r = lib.softmax(joint(lib, x, share, mean, var), -1)
        count = r.sum(0) + 1e-3
        share = count / count.sum()
        mean = (r.T @ x) / count[:, None]
        var = (r[..., None] * (x[:, None] - mean) ** 2).sum(0) / count[:, None] + 1e-2
    return -lib.logsumexp(joint(lib, x, share, mean, var), -1).mean()


WORKLOAD = Workload(
    "fresh-mixture-em",
    "5 rounds of EM, 5 Gaussians, 500 points, gradient by where they begin, Adam",
    trained(weights, batches, loss, lr=1e-2),
)
