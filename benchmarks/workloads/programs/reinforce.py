"""REINFORCE on a grid world: every step of an episode draws an action from the policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled, item

SIDE, WIDTH, MOST, DISCOUNT, LR = 5, 32, 40, 0.97, 1e-2
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


def program(lib: Any) -> Session:
    nn, F = lib.nn, lib.nn.functional
    policy = filled(
        lib, nn.Sequential(nn.Linear(SIDE * SIDE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
    )
    optimizer = lib.optim.Adam(policy.parameters(), lr=LR)
    rng = np.random.default_rng(1)

    def episode() -> tuple[list[Any], list[float]]:
        """Logarithms of probabilities of what was done, and rewards, until the corner is found."""
        row, column = int(rng.integers(0, SIDE)), int(rng.integers(0, SIDE - 1))
        logs, rewards = [], []
        for _ in range(MOST):
            seen = np.zeros(SIDE * SIDE, np.float32)
            seen[row * SIDE + column] = 1
            chances = F.log_softmax(policy(lib.tensor(seen)), -1)
            action = chosen(chances.detach().tolist(), rng.random())
            logs.append(chances[action])
            row = min(max(row + MOVES[action][0], 0), SIDE - 1)
            column = min(max(column + MOVES[action][1], 0), SIDE - 1)
            found = row == column == SIDE - 1
            rewards.append(1.0 if found else -0.05)
            if found:
                break
        return logs, rewards

    def step(state: Any) -> Any:
        logs, rewards = episode()
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + DISCOUNT * total
            returns.append(total)
        gains = lib.tensor(returns[::-1])
        loss = -(lib.stack(logs) * gains).sum() / MOST
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return loop(step, None, [()], item)


def chosen(logs: list[float], draw: float) -> int:
    """An action by its probability."""
    edges = np.cumsum(np.exp(logs))
    return min(int(np.searchsorted(edges, draw)), len(logs) - 1)


WORKLOAD = Workload(
    "program-reinforce",
    "REINFORCE on a 5 x 5 grid, episodes of at most 40 steps, Adam",
    both(program),
    per="episode",
)
