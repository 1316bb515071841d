"""micrograd's demo on `rg.Value`: two moons, a perceptron 2-16-16-1, hinge loss, to 100 %.

    python -m examples.moons [--steps 100] [--eager] [--picture moons.png]

The training step is written as micrograd's notebook has it; `rg.jit` makes it a program. The
picture of the decision boundary takes matplotlib.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from typing import Any

import retrograd as rg
from retrograd.micrograd import MLP


def moons(n: int, noise: float = 0.1) -> tuple[list[list[float]], list[int]]:
    """Points on two interleaved half circles, and labels -1 and 1."""
    points, labels = [], []
    for k in range(n):
        angle, upper = math.pi * (k // 2) / (n // 2 - 1), k % 2 == 0
        x = math.cos(angle) if upper else 1 - math.cos(angle)
        y = math.sin(angle) if upper else 0.5 - math.sin(angle)
        points.append([x + random.gauss(0, noise), y + random.gauss(0, noise)])
        labels.append(-1 if upper else 1)
    return points, labels


def training_step(model: MLP, points: list[list[float]], labels: list[int]) -> Any:
    """A function of the learning rate: one step on all points; loss and accuracy before it."""

    def step(rate: float) -> tuple[Any, Any]:
        scores = [model(p) for p in points]
        losses = [(1 + -y * s).relu() for y, s in zip(labels, scores, strict=True)]
        loss = sum(losses) * (1.0 / len(losses))
        loss = loss + 1e-4 * sum(p * p for p in model.parameters())
        right = [(y > 0) == (s.data > 0) for y, s in zip(labels, scores, strict=True)]
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss.data, sum(right) / len(right)

    return step


def picture(model: MLP, points: list[list[float]], labels: list[int], path: str) -> None:
    """The points on the plane as the model divides it."""
    import matplotlib.pyplot as plt

    xs = [-1.75 + 0.05 * i for i in range(91)]
    ys = [-1.25 + 0.05 * i for i in range(66)]
    score = rg.jit(lambda x, y: model([x, y]).data)
    plane = [[float(score(x, y) > 0) for x in xs] for y in ys]
    plt.contourf(xs, ys, plane, levels=[-0.5, 0.5, 1.5], alpha=0.5, cmap="Spectral")
    plt.scatter([p[0] for p in points], [p[1] for p in points], c=labels, s=30, cmap="Spectral")
    plt.savefig(path, dpi=120)


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--eager", action="store_true", help="without jit")
    parser.add_argument("--picture", help="where to draw the decision boundary")
    given = parser.parse_args()
    random.seed(1337)
    points, labels = moons(given.points)
    model = MLP(2, [16, 16, 1])
    print(model, f"{len(model.parameters())} parameters")
    step = training_step(model, points, labels)
    if not given.eager:
        step = rg.jit(step)
    accuracy, start = 0.0, time.perf_counter()
    for k in range(given.steps):
        loss, accuracy = step(1.0 - 0.9 * k / given.steps)
        if k % 10 == 0 or k == given.steps - 1:
            print(f"step {k:3} loss {loss:.4f} accuracy {100 * accuracy:.0f} %")
    print(f"{1e3 * (time.perf_counter() - start) / given.steps:.2f} ms per step")
    if given.picture:
        picture(model, points, labels, given.picture)
    return accuracy


if __name__ == "__main__":
    main()
