"""A loop of 80 decisions, each of which depends on a number that is looked at with `.item()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled, item

DECISIONS, STATE, WIDTH, LR = 80, 4, 32, 0.05


def program(lib: Any) -> Session:
    """A policy walks towards a goal; it is trained by the distance that is left, step by step."""
    nn = lib.nn
    policy = filled(lib, nn.Sequential(nn.Linear(STATE, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 2)))
    optimizer = lib.optim.SGD(policy.parameters(), lr=LR)
    goal = lib.tensor(np.linspace(-1, 1, STATE, dtype=np.float32))
    starts = np.random.default_rng(1).normal(0, 1, (64, STATE)).astype(np.float32)

    def step(state: Any, start: Any) -> Any:
        x, loss = start, lib.tensor(0.0)
        for _ in range(DECISIONS):
            scores = policy(x)
            move = lib.tanh(scores)
            if (scores[0] > scores[1]).item():
                x = x + 0.1 * move[0] * (goal - x)
            else:
                x = 0.9 * x + 0.1 * move[1]
            loss = loss + ((x - goal) ** 2).mean()
        loss = loss / DECISIONS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return loop(step, None, [(lib.tensor(x),) for x in starts], item)


WORKLOAD = Workload("program-decisions", "80 decisions with .item() each, SGD", both(program))
