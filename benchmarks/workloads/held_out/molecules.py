"""Message passing on batches of molecules: other numbers of atoms and bonds at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, segment_sum, trained

BATCH, ATOMS, FEATURES, WIDTH, LAYERS, STEPS = 32, 30, 16, 64, 3, 500


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = {"in": normal(rng, WIDTH, FEATURES), "out": normal(rng, 1, WIDTH)}
    for i in range(LAYERS):
        p |= {f"self{i}": normal(rng, WIDTH, WIDTH), f"from{i}": normal(rng, WIDTH, WIDTH)}
    return p


def molecules(rng: np.random.Generator) -> tuple[Any, ...]:
    """Features of atoms, the ends of bonds in both directions, the molecule of an atom, labels.
    Every atom but the first of a molecule is bound to one before it; a few bonds close rings."""
    sizes = rng.integers(5, ATOMS + 1, BATCH)
    starts = np.cumsum(sizes) - sizes
    ends = []
    for start, n in zip(starts, sizes, strict=True):
        later = np.concatenate([np.arange(1, n), rng.integers(1, n, n // 5)])
        ends.append(start + np.stack([rng.integers(0, later), later]))
    bonds = np.concatenate(ends, 1)
    x = rng.normal(0, 1, (sizes.sum(), FEATURES)).astype(np.float32)
    y = rng.normal(0, 1, BATCH).astype(np.float32)
    source, target = np.concatenate([bonds, bonds[::-1]], 1)
    return x, source, target, np.repeat(np.arange(BATCH), sizes), y


def batches() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(1)
    return [molecules(rng) for _ in range(STEPS)]


def loss(lib: Any, p: Any, x: Any, source: Any, target: Any, molecule: Any, y: Any) -> Any:
    F = lib.nn.functional
    h = F.linear(x, p["in"])
    for i in range(LAYERS):
        sent = segment_sum(lib, h[source], target, h.shape[0])
        h = F.relu(F.linear(h, p[f"self{i}"]) + F.linear(sent, p[f"from{i}"]))
    read = F.linear(segment_sum(lib, h, molecule, BATCH), p["out"])[:, 0]
    return F.mse_loss(read / ATOMS, y)


WORKLOAD = Workload(
    "held-molecules",
    "message passing, 3 layers of 64, on 32 molecules of 5 to 30 atoms, new at every step, Adam",
    trained(weights, batches, loss, jax=False, named=("N _", "E", "E", "N", "_")),
)
