"""An MLP whose batch size changes at every step, and one of which all sizes have been seen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.adam import eager
from benchmarks.workloads.libraries import both, filled, item, normal, tensors, trained

SIZES = (64, 256, 256, 10)
MOST, STEPS = 256, 1000  # batch sizes from 1 to MOST, drawn STEPS times
SEEN = 32  # other sizes of the second


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p: dict[str, Any] = {}
    for i, (n, m) in enumerate(pairwise(SIZES)):
        p |= {f"w{i}": normal(rng, m, n), f"b{i}": np.zeros(m, np.float32)}
    return p


def batch(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.normal(0, 1, (n, SIZES[0])).astype(np.float32)
    return x, rng.integers(0, SIZES[-1], n)


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    return [batch(rng, int(n)) for n in rng.integers(1, MOST + 1, STEPS)]


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional
    h = F.relu(F.linear(x, p["w0"], p["b0"]))
    h = F.relu(F.linear(h, p["w1"], p["b1"]))
    return F.cross_entropy(F.linear(h, p["w2"], p["b2"]), y)


def seen(lib: Any) -> Session:
    """An MLP 64-128-10 as a module, SGD, batches of sizes that come again and again."""
    rng = np.random.default_rng(1)
    sizes = rng.permutation(MOST)[:SEEN] + 1
    data = tensors(lib, [batch(rng, int(n)) for n in sizes])
    nn = lib.nn
    model = filled(lib, nn.Sequential(nn.Linear(SIZES[0], 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    step = eager(lambda m, x, y: nn.functional.cross_entropy(m(x), y), model, optimizer)
    return loop(step, None, data, item)


WORKLOADS = (
    Workload(
        "held-mlp-batches",
        "MLP 64-256-256-10, a batch of 1 to 256 whose size changes at every step, Adam",
        trained(weights, batches, loss, named=("N _", "N")),
    ),
    Workload(
        "held-mlp-seen",
        "MLP 64-128-10, 32 batch sizes in turn, all of which have been seen, SGD",
        both(seen),
        checks=2 * SEEN,
    ),
)
