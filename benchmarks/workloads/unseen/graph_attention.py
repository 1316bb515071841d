"""Graph attention in four heads, two layers, on a graph of 20,000 nodes and 200,000 edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, segment_sum, trained

NODES, EDGES, FEATURES, HEADS, WIDTH, CLASSES = 20_000, 200_000, 32, 4, 16, 7


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = {}
    for i, inputs in enumerate((FEATURES, HEADS * WIDTH)):
        p[f"w{i}"] = normal(rng, HEADS * WIDTH, inputs)
        p |= {f"{end}{i}": normal(rng, HEADS, WIDTH) for end in ("from", "to")}
    return {**p, "last": normal(rng, CLASSES, HEADS * WIDTH)}


def batches() -> list[tuple[Any, ...]]:
    """Features, the ends of edges ordered by the one they lead to, and labels. A few nodes have
    many edges, as in graphs that people make."""
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (NODES, FEATURES)).astype(np.float32)
    source = rng.integers(0, NODES, EDGES)
    target = np.sort((NODES * rng.random(EDGES) ** 2).astype(np.int64))
    return [(x, source, target, rng.integers(0, CLASSES, NODES))]


def loss(lib: Any, p: Any, x: Any, source: Any, target: Any, y: Any) -> Any:
    F = lib.nn.functional
    h = x
    for i in range(2):
        h = F.linear(h, p[f"w{i}"]).reshape((NODES, HEADS, WIDTH))
        sent, got = ((h * p[f"{end}{i}"]).sum(-1) for end in ("from", "to"))
        score = lib.exp(F.leaky_relu(sent[source] + got[target], 0.2))
        total = segment_sum(lib, score, target, NODES)
        weight = score / total[target]
        h = segment_sum(lib, h[source] * weight[:, :, None], target, NODES)
        h = F.relu(h.reshape((NODES, HEADS * WIDTH)))
    return F.cross_entropy(F.linear(h, p["last"]), y)


WORKLOAD = Workload(
    "unseen-graph-attention",
    "graph attention, 2 layers of 4 heads of 16, 20,000 nodes, 200,000 edges, Adam",
    trained(weights, batches, loss),
    checks=5,
)
