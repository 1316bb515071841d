"""The marginal likelihood of a Gaussian process of 500 points, float64; three parameters, Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload
from benchmarks.workloads.libraries import trained

POINTS, INPUTS = 500, 3


def weights() -> dict[str, Any]:
    """Logarithms of length, scale and noise."""
    return {k: np.array(v) for k, v in {"length": 0.0, "scale": 0.0, "noise": -2.0}.items()}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (POINTS, INPUTS))
    return [(x, np.sin(2 * x).sum(1) + 0.1 * rng.normal(0, 1, POINTS))]


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    squares = ((x[:, None] - x) ** 2).sum(-1)
    k = lib.exp(p["scale"] - squares * lib.exp(-2 * p["length"]) / 2)
    k = k + lib.exp(p["noise"]) * lib.eye(POINTS, dtype=lib.float64)
    root = lib.linalg.cholesky(k)
    white = solved(lib, root, y[:, None])
    return ((white**2).sum() / 2 + lib.log(lib.diag(root)).sum()) / POINTS


def solved(lib: Any, root: Any, y: Any) -> Any:
    if lib.__name__ == "torch":
        return lib.linalg.solve_triangular(root, y, upper=False)
    if lib.__name__ == "retrograd":
        return lib.linalg.solve_triangular(root, y, lower=True)
    from jax.scipy.linalg import solve_triangular

    return solve_triangular(root, y, lower=True)


PEERS = trained(weights, batches, loss, lr=0.05, jax=True)


def with_jax() -> Session:
    import jax

    jax.config.update("jax_enable_x64", True)
    return PEERS["jax"]()


WORKLOAD = Workload(
    "held-gaussian-process",
    "Gaussian process, 500 points, float64, Adam",
    {**PEERS, "jax": with_jax},
)
