"""A conditional random field over sentences of other lengths: the forward algorithm, word by
word."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

BATCH, LENGTH, TAGS, FEATURES = 16, 30, 9, 32


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "emit": normal(rng, TAGS, FEATURES),
        "follow": 0.1 * normal(rng, TAGS, TAGS),
        "begin": np.zeros(TAGS, np.float32),
    }


def batches() -> list[tuple[Any, Any, Any]]:
    """Features of words, tags, and which words there are."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(8):
        x = rng.normal(0, 1, (BATCH, LENGTH, FEATURES)).astype(np.float32)
        there = np.arange(LENGTH) < rng.integers(2, LENGTH + 1, (BATCH, 1))
        found.append((x, rng.integers(0, TAGS, (BATCH, LENGTH)), there))
    return found


def loss(lib: Any, p: Any, x: Any, tags: Any, there: Any) -> Any:
    scores = lib.nn.functional.linear(x, p["emit"])
    total = p["begin"] + scores[:, 0]
    rows = lib.arange(BATCH)
    own = p["begin"][tags[:, 0]] + scores[rows, 0, tags[:, 0]]
    for t in range(1, LENGTH):
        following = lib.logsumexp(total[:, :, None] + p["follow"], 1) + scores[:, t]
        total = lib.where(there[:, t, None], following, total)
        step = p["follow"][tags[:, t - 1], tags[:, t]] + scores[rows, t, tags[:, t]]
        own = own + lib.where(there[:, t], step, 0.0)
    return (lib.logsumexp(total, 1) - own).mean()


WORKLOAD = Workload(
    "fresh-random-field",
    "conditional random field, 9 tags, 16 sentences of up to 30 words, Adam",
    trained(weights, batches, loss),
)
