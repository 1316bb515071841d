"""Model-agnostic meta-learning on sine waves: a step of descent inside of each step."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, item, normal, tensors

TASKS, POINTS, WIDTH, INNER, LR = 4, 10, 40, 0.05, 1e-3


def batches() -> list[tuple[Any, ...]]:
    """For each task points to learn from, and points to be judged by."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(16):
        height = rng.uniform(0.5, 2, (TASKS, 1, 1))
        phase = rng.uniform(0, np.pi, (TASKS, 1, 1))
        x = rng.uniform(-3, 3, (2, TASKS, POINTS, 1))
        y = height * np.sin(x + phase)
        arrays = (x[0], y[0], x[1], y[1])
        found.append(tuple(a.astype(np.float32) for a in arrays))
    return found


def weights() -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((WIDTH, 1), (WIDTH, WIDTH), (1, WIDTH))
    return [a for s in shapes for a in (normal(rng, *s), np.zeros(s[0], np.float32))]


def program(lib: Any) -> Session:
    F = lib.nn.functional
    p = [lib.tensor(w, requires_grad=True) for w in weights()]
    optimizer = lib.optim.Adam(p, lr=LR)

    def error(p: Any, x: Any, y: Any) -> Any:
        h = lib.tanh(F.linear(x, p[0], p[1]))
        h = lib.tanh(F.linear(h, p[2], p[3]))
        return F.mse_loss(F.linear(h, p[4], p[5]), y)

    def slopes(p: Any, x: Any, y: Any) -> Any:
        """In PyTorch by a graph of the gradient, in retrograd by the function of it."""
        if lib.__name__ == "torch":
            return lib.autograd.grad(error(p, x, y), p, create_graph=True)
        return lib.grad(error)(p, x, y)

    def step(state: Any, *batch: Any) -> Any:
        loss = lib.tensor(0.0)
        for k in range(TASKS):
            x, y, x_new, y_new = (a[k] for a in batch)
            adapted = [w - INNER * g for w, g in zip(p, slopes(p, x, y), strict=True)]
            loss = loss + error(adapted, x_new, y_new)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return loop(step, None, tensors(lib, batches()), item)


WORKLOAD = Workload("program-maml", "MAML on sine waves, 4 tasks, one inner step", both(program))
