"""A variational autoencoder 784-400-20, batch 128, whose noise is given with the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

PIXELS, HIDDEN, CODE, BATCH = 784, 400, 20, 128


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "in": normal(rng, HIDDEN, PIXELS),
        "code": normal(rng, 2 * CODE, HIDDEN),
        "back": normal(rng, HIDDEN, CODE),
        "out": normal(rng, PIXELS, HIDDEN),
    }


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    images = (rng.random((4, BATCH, PIXELS)) < 0.3).astype(np.float32)
    return list(zip(images, rng.normal(0, 1, (4, BATCH, CODE)).astype(np.float32), strict=True))


def loss(lib: Any, p: Any, x: Any, noise: Any) -> Any:
    """The negative lower bound of the likelihood, per pixel."""
    F = lib.nn.functional
    code = F.linear(F.relu(F.linear(x, p["in"])), p["code"])
    mean, logarithm = code[:, :CODE], code[:, CODE:]
    z = mean + noise * lib.exp(logarithm / 2)
    scores = F.linear(F.relu(F.linear(z, p["back"])), p["out"])
    told = (F.softplus(scores) - x * scores).sum(-1)
    apart = (mean**2 + lib.exp(logarithm) - logarithm - 1).sum(-1) / 2
    return (told + apart).mean() / PIXELS


WORKLOAD = Workload(
    "held-vae",
    "variational autoencoder 784-400-20, batch 128, Adam",
    trained(weights, batches, loss),
)
