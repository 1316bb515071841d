"""Bilevel optimization: a penalty for each feature and a learning rate, by the error on other data
after ten steps of descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

ROWS, FEATURES, INNER = 100, 20, 10


def weights() -> dict[str, Any]:
    return {"penalty": np.full(FEATURES, -3.0, np.float32), "rate": np.float32(-1.0)}


def batches() -> list[tuple[Any, ...]]:
    """Data to learn from, and data to be judged by; half of the features say nothing."""
    rng = np.random.default_rng(1)
    true = rng.normal(0, 1, FEATURES) * (np.arange(FEATURES) % 2)
    found = []
    for _ in range(8):
        x = rng.normal(0, 1, (2, ROWS, FEATURES))
        y = (x @ true + rng.normal(0, 1, (2, ROWS)) > 0).astype(float)
        found.append(tuple(a.astype(np.float32) for a in (x[0], y[0], x[1], y[1])))
    return found


def loss(lib: Any, p: Any, x: Any, y: Any, x_new: Any, y_new: Any) -> Any:
    softplus = lib.nn.functional.softplus

    def unlikely(w: Any, x: Any, y: Any) -> Any:
        z = x @ w
        return (softplus(z) - y * z).mean()

    def inner(w: Any) -> Any:
        return unlikely(w, x, y) + (lib.exp(p["penalty"]) * w**2).sum()

    w = lib.zeros((FEATURES,))
    if lib.__name__ == "torch":
        w.requires_grad_()
    for _ in range(INNER):
        if lib.__name__ == "torch":
            (slope,) = lib.autograd.grad(inner(w), w, create_graph=True)
        else:
            slope = lib.grad(inner)(w)
        w = w - lib.exp(p["rate"]) * slope
    return unlikely(w, x_new, y_new)


WORKLOAD = Workload(
    "fresh-bilevel",
    "penalties of 20 features through 10 steps of logistic regression, Adam",
    trained(weights, batches, loss, lr=1e-2),
)
