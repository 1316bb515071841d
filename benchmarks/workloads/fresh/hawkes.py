"""A Hawkes process of several kinds of events that excite each other: its likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

EVENTS, KINDS = 300, 4


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "base": np.full(KINDS, -1.0, np.float32),
        "excite": rng.normal(-2, 0.1, (KINDS, KINDS)).astype(np.float32),
        "decay": np.zeros(KINDS, np.float32),
    }


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    gaps = rng.exponential(0.5, (8, EVENTS))
    return [
        (np.cumsum(g).astype(np.float32), rng.integers(0, KINDS, EVENTS)) for g in gaps
    ]  # when, and of which kind


def loss(lib: Any, p: Any, time: Any, kind: Any) -> Any:
    """The likelihood of all events, as a sum over pairs, and of there being none between them."""
    softplus = lib.nn.functional.softplus
    base, excite, decay = (softplus(p[k]) for k in ("base", "excite", "decay"))
    before = time[None, :] < time[:, None]
    age = lib.where(before, time[:, None] - time[None, :], 0.0)
    fading = decay[kind][None, :] * lib.exp(-decay[kind][None, :] * age)
    sparks = excite[kind][:, kind] * fading
    rate = base[kind] + lib.where(before, sparks, 0.0).sum(1)
    rest = excite.sum(0)[kind] * (1 - lib.exp(-decay[kind] * (time[-1] - time)))
    return (base.sum() * time[-1] + rest.sum() - lib.log(rate).sum()) / EVENTS


WORKLOAD = Workload(
    "fresh-hawkes",
    "Hawkes process of 4 kinds, likelihood of 300 events by pairs, Adam",
    trained(weights, batches, loss, lr=1e-2),
)
