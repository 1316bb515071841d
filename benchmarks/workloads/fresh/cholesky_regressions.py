"""Many small Gaussian processes at once: likelihoods by batched Cholesky factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

TASKS, POINTS, FEATURES = 32, 40, 2


def weights() -> dict[str, Any]:
    zeros = np.zeros
    return {
        "length": zeros((TASKS, 1, FEATURES), np.float32),
        "height": zeros((TASKS, 1, 1), np.float32),
        "noise": np.full((TASKS, 1, 1), -2.0, np.float32),
    }


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (4, TASKS, POINTS, FEATURES))
    y = np.sin(x.sum(-1, keepdims=True)) + rng.normal(0, 0.1, (4, TASKS, POINTS, 1))
    return list(zip(x.astype(np.float32), y.astype(np.float32), strict=True))


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    x = x / lib.exp(p["length"])
    square = ((x[:, :, None] - x[:, None]) ** 2).sum(-1)
    kernel = lib.exp(p["height"] - square / 2) + lib.exp(p["noise"]) * lib.eye(POINTS)
    factor = lib.linalg.cholesky(kernel)
    if lib.__name__ == "jax":
        import jax

        z = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    else:
        z = lib.linalg.solve_triangular(factor, y, upper=False)
    logs = lib.log(lib.diagonal(factor, 0, 1, 2)).sum(-1)
    return ((z**2).sum((1, 2)) / 2 + logs).mean() / POINTS


WORKLOAD = Workload(
    "fresh-cholesky-regressions",
    "32 Gaussian processes of 40 points, batched Cholesky, Adam",
    trained(weights, batches, loss, lr=1e-2),
)
