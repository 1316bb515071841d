"""A Kalman filter over 200 observations by scan: the likelihood, by what moves and what is seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

STATE, SEEN, LENGTH = 4, 2, 200


def weights() -> dict[str, Any]:
    """The matrices of movement and observation, and logarithms of the noise of both."""
    rng = np.random.default_rng(0)
    turn = 0.9 * np.eye(STATE) + 0.05 * rng.normal(0, 1, (STATE, STATE))
    arrays = {
        "move": turn,
        "see": rng.normal(0, 1, (SEEN, STATE)) / STATE**0.5,
        "moved": np.full(STATE, -2.0),
        "seen": np.full(SEEN, -1.0),
    }
    return {k: a.astype(np.float32) for k, a in arrays.items()}


def batches() -> list[tuple[Any]]:
    rng = np.random.default_rng(1)
    return [(np.cumsum(rng.normal(0, 0.2, (LENGTH, SEEN)), 0).astype(np.float32),)]


def inverse(lib: Any, s: Any) -> tuple[Any, Any]:
    """The inverse of a matrix of two rows, and its determinant."""
    a, b, c, d = s[0, 0], s[0, 1], s[1, 0], s[1, 1]
    determinant = a * d - b * c
    turned = lib.stack([lib.stack([d, -b]), lib.stack([-c, a])])
    return turned / determinant, determinant


def loss(lib: Any, p: Any, observations: Any) -> Any:
    eye = lib.eye(STATE)
    moved, seen = lib.diag(lib.exp(p["moved"])), lib.diag(lib.exp(p["seen"]))

    def step(carry: Any, y: Any) -> Any:
        mean, covariance = carry
        mean = p["move"] @ mean
        covariance = p["move"] @ covariance @ p["move"].T + moved
        apart = y - p["see"] @ mean
        back, determinant = inverse(lib, p["see"] @ covariance @ p["see"].T + seen)
        gain = covariance @ p["see"].T @ back
        unlikely = (apart @ back @ apart + lib.log(determinant)) / 2
        return (mean + gain @ apart, (eye - gain @ p["see"]) @ covariance), unlikely

    carry = (lib.zeros((STATE,)), lib.eye(STATE))
    if lib.__name__ == "torch":
        parts = []
        for y in observations:
            carry, part = step(carry, y)
            parts.append(part)
        return lib.stack(parts).mean()
    return lib.scan(step, carry, observations)[1].mean()


WORKLOAD = Workload(
    "unseen-kalman",
    "Kalman filter, 4 states, 2 observed, 200 steps by scan, Adam",
    trained(weights, batches, loss, lr=1e-3),
)
