"""An ordinary differential equation with steps that adapt: Python branches on errors that are
looked at, and a gradient through the steps that were taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled, item

BATCH, STATE, WIDTH, TOLERANCE, LR = 16, 2, 32, 1e-3, 1e-3


def program(lib: Any) -> Session:
    nn = lib.nn
    field = filled(lib, nn.Sequential(nn.Linear(STATE, WIDTH), nn.Tanh(), nn.Linear(WIDTH, STATE)))
    optimizer = lib.optim.Adam(field.parameters(), lr=LR)
    rng = np.random.default_rng(1)
    starts = [lib.tensor(a) for a in rng.normal(0, 1, (16, BATCH, STATE)).astype(np.float32)]

    def heun(x: Any, size: float) -> Any:
        """A step of Heun's method, and how far it is from one of Euler's."""
        a = field(x)
        b = field(x + size * a)
        return x + size / 2 * (a + b), (size / 2 * (b - a)).abs().max()

    def solve(x: Any) -> Any:
        time, size = 0.0, 0.1
        while time < 1.0:
            size = min(size, 1.0 - time)
            new, error = heun(x, size)
            if error < TOLERANCE:
                x, time = new, time + size
                size = 1.5 * size
            else:
                size = 0.5 * size
        return x

    def step(state: Any, x: Any) -> Any:
        loss = ((solve(x) - 0.5 * x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return loop(step, None, [(x,) for x in starts], item)


WORKLOAD = Workload(
    "fresh-adaptive-steps",
    "differential equation of a network 2-32-2, steps that adapt to errors, Adam",
    both(program),
)
