"""Logistic regression on sparse rows: 1,024 documents a step, 50 of 20,000 words in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

BATCH, WORDS, EACH = 1024, 20_000, 50


def weights() -> dict[str, Any]:
    return {"w": np.zeros(WORDS, np.float32), "b": np.zeros((), np.float32)}


def batches() -> list[tuple[Any, Any, Any]]:
    """Words, frequent ones more often; how much each counts; labels by a plane."""
    rng = np.random.default_rng(1)
    words = (WORDS * rng.random((8, BATCH, EACH)) ** 3).astype(np.int64)
    counts = rng.exponential(1, (8, BATCH, EACH)).astype(np.float32)
    plane = rng.normal(0, 1, WORDS)
    labels = ((plane[words] * counts).sum(-1) > 0).astype(np.float32)
    return list(zip(words, counts, labels, strict=True))


def loss(lib: Any, p: Any, words: Any, counts: Any, labels: Any) -> Any:
    scores = (p["w"][words] * counts).sum(-1) + p["b"]
    return (lib.nn.functional.softplus(scores) - labels * scores).mean()


WORKLOAD = Workload(
    "unseen-sparse-logistic",
    "logistic regression, 1,024 rows of 50 of 20,000 features, Adam",
    trained(weights, batches, loss, lr=1e-2),
)
