"""A neural differential equation: 32 steps of Runge and Kutta, a network of width 32 as its right
side."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

STATE, WIDTH, BATCH, STEPS, TIME = 4, 32, 32, 32, 2.0


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"in": normal(rng, WIDTH, STATE), "out": normal(rng, STATE, WIDTH)}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    y = rng.normal(0, 1, (4, BATCH, STATE)).astype(np.float32)
    return list(zip(y, y[..., ::-1].copy(), strict=True))


def loss(lib: Any, p: Any, y: Any, target: Any) -> Any:
    F = lib.nn.functional
    h = TIME / STEPS

    def f(y: Any) -> Any:
        return F.linear(lib.tanh(F.linear(y, p["in"])), p["out"])

    def step(y: Any, _: Any = None) -> Any:
        a = f(y)
        b = f(y + h / 2 * a)
        c = f(y + h / 2 * b)
        return y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c)), None

    if lib.__name__ == "torch":
        for _ in range(STEPS):
            y, _ = step(y)
    else:
        y, _ = lib.scan(step, y, None, STEPS)
    return F.mse_loss(y, target)


WORKLOAD = Workload(
    "held-neural-ode",
    "neural differential equation, 32 steps of Runge and Kutta, batch 32, Adam",
    trained(weights, batches, loss),
)
