"""Convolutions in one dimension on sound: dilated layers, each with a gate and a way around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

BATCH, LENGTH, WIDTH, LAYERS, SPAN, CLASSES = 4, 4096, 32, 6, 3, 10


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = {"first": normal(rng, WIDTH, 1, 16), "last": normal(rng, CLASSES, WIDTH)}
    for i in range(LAYERS):
        p |= {f"{kind}{i}": normal(rng, WIDTH, WIDTH, SPAN) for kind in ("value", "gate")}
        p[f"out{i}"] = normal(rng, WIDTH, WIDTH, 1)
    return p


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    sound = rng.normal(0, 1, (4, BATCH, 1, LENGTH)).astype(np.float32)
    return list(zip(sound, rng.integers(0, CLASSES, (4, BATCH)), strict=True))


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional
    h = F.conv1d(x, p["first"], stride=4, padding=6)
    for i in range(LAYERS):
        given = {"padding": 2**i, "dilation": 2**i}
        value = F.conv1d(h, p[f"value{i}"], **given)
        gate = F.conv1d(h, p[f"gate{i}"], **given)
        h = h + F.conv1d(lib.tanh(value) * lib.sigmoid(gate), p[f"out{i}"])
    return F.cross_entropy(F.linear(F.relu(h).mean(2), p["last"]), y)


WORKLOAD = Workload(
    "unseen-audio",
    "6 gated dilated convolutions of 32 channels on 4 sounds of 4,096 samples, Adam",
    trained(weights, batches, loss, jax=False),
    checks=5,
)
