"""A step of a diffusion model: images with noise, a small network that is told how much of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

BATCH, SIDE, WIDTH, TIMES = 16, 28, 32, 100


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = {"time": normal(rng, 2 * WIDTH, WIDTH), "times": normal(rng, TIMES, WIDTH)}
    p |= {"in": normal(rng, WIDTH, 1, 3, 3), "out": normal(rng, 1, WIDTH, 3, 3)}
    for name, inputs, outputs in (("one", 1, 2), ("two", 2, 2), ("three", 3, 1)):
        p[name] = normal(rng, outputs * WIDTH, inputs * WIDTH, 3, 3)
    p |= {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)}
    return p


def batches() -> list[tuple[Any, ...]]:
    """Images, noise, how long each was given noise for."""
    rng = np.random.default_rng(1)
    arrays = rng.normal(0, 1, (4, 2, BATCH, 1, SIDE, SIDE)).astype(np.float32)
    return [(x, noise, rng.integers(0, TIMES, BATCH)) for x, noise in arrays]


def loss(lib: Any, p: Any, x: Any, noise: Any, time: Any) -> Any:
    F = lib.nn.functional
    kept = lib.tensor(np.cumprod(1 - np.linspace(1e-3, 0.05, TIMES)).astype(np.float32))[time]
    kept = kept[:, None, None, None]
    h = F.conv2d(kept**0.5 * x + (1 - kept) ** 0.5 * noise, p["in"], padding=1)
    first = F.silu(F.group_norm(h, 8, p["scale"], p["shift"]))
    told = F.linear(F.silu(F.embedding(time, p["times"])), p["time"])
    h = F.conv2d(F.avg_pool2d(first, 2), p["one"], padding=1) + told[:, :, None, None]
    h = F.silu(F.conv2d(F.silu(h), p["two"], padding=1))
    h = lib.concat([first, F.interpolate(h, scale_factor=2, mode="nearest")], axis=1)
    h = F.silu(F.conv2d(h, p["three"], padding=1))
    return F.mse_loss(F.conv2d(h, p["out"], padding=1), noise)


WORKLOAD = Workload(
    "unseen-diffusion",
    "step of a diffusion model, 28x28, 32 and 64 channels, batch 16, Adam",
    trained(weights, batches, loss, jax=False),
    checks=5,
)
