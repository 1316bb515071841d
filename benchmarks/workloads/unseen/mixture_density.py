"""A mixture density network: what a network says are weights, means and widths of normal curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

BATCH, INPUTS, WIDTH, CURVES = 256, 4, 64, 8


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = ((WIDTH, INPUTS), (WIDTH, WIDTH), (3 * CURVES, WIDTH))
    p: dict[str, Any] = {f"w{i}": normal(rng, *shape) for i, shape in enumerate(sizes)}
    return p | {f"b{i}": np.zeros(shape[0], np.float32) for i, shape in enumerate(sizes)}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (8, BATCH, INPUTS)).astype(np.float32)
    y = np.sin(3 * x.sum(-1)) + rng.choice([-1, 1], (8, BATCH))
    return list(zip(x, y.astype(np.float32), strict=True))


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional
    h = lib.tanh(F.linear(x, p["w0"], p["b0"]))
    h = lib.tanh(F.linear(h, p["w1"], p["b1"]))
    h = F.linear(h, p["w2"], p["b2"])
    weight, mean, logarithm = (h[:, k * CURVES : (k + 1) * CURVES] for k in range(3))
    far = (y[:, None] - mean) * lib.exp(-logarithm)
    curves = weight - logarithm - far**2 / 2
    likelihood = lib.logsumexp(curves, axis=-1) - lib.logsumexp(weight, axis=-1)
    return 0.5 * np.log(2 * np.pi) - likelihood.mean()


WORKLOAD = Workload(
    "unseen-mixture-density",
    "mixture density network 4-64-64-24 of 8 curves, batch 256, Adam",
    trained(weights, batches, loss),
)
