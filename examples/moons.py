"""micrograd's demo on `rg.Value`: two moons, a perceptron 2-16-16-1, hinge loss, to 100 %.

    python -m examples.moons [--steps 100] [--seed 1337] [--eager] [--picture moons.svg]

The training step is written as micrograd's notebook has it; `rg.jit` makes it a program.
"""

from __future__ import annotations

import math
import random
import time
from pathlib import Path
from typing import Any

import retrograd as rg
from retrograd.micrograd import MLP

LIGHT, DARK = ("#f6b8a8", "#a9c6ea"), ("#c0392b", "#2460a7")  # below and above zero


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


def draw(model: MLP, points: list[list[float]], labels: list[int], path: str) -> None:
    """The points on the plane as the model divides it, as SVG."""
    score = rg.jit(lambda x, y: model([x, y]).data)
    size, left, top = 0.025, -1.75, 1.75  # of a cell of the plane, and where the plane begins
    name = "http://www.w3.org/2000/svg"
    drawn = [f'<svg xmlns="{name}" width="720" height="480" viewBox="{left} {-top} 4.5 3">']
    for j in range(120):
        y = top - (j + 0.5) * size
        cells = [score(left + (i + 0.5) * size, y) > 0 for i in range(180)]
        start = 0
        for i in range(1, 181):  # one rectangle for neighbours on the same side
            if i == 180 or cells[i] != cells[start]:
                drawn.append(
                    f'<rect x="{left + start * size:.3f}" y="{-y - size / 2:.3f}" height="{size}" '
                    f'width="{(i - start) * size:.3f}" fill="{LIGHT[cells[start]]}"/>'
                )
                start = i
    for (x, y), label in zip(points, labels, strict=True):
        drawn.append(
            f'<circle cx="{x:.3f}" cy="{-y:.3f}" r="0.04" fill="{DARK[label > 0]}" '
            'stroke="#333" stroke-width="0.008"/>'
        )
    Path(path).write_text("\n".join([*drawn, "</svg>"]), encoding="utf-8")


def main(
    steps: int = 100, points: int = 100, seed: int = 1337, eager: bool = False, picture: str = ""
) -> dict[str, float]:
    """Train; `eager` is without jit, `picture` where to draw the decision boundary."""
    random.seed(seed)
    places, labels = moons(points)
    model = MLP(2, [16, 16, 1])
    print(model, f"{len(model.parameters())} parameters")
    step = training_step(model, places, labels)
    if not eager:
        step = rg.jit(step)
    start = time.perf_counter()
    for k in range(steps):
        loss, accuracy = step(1.0 - 0.9 * k / steps)
        if k % 10 == 0 or k == steps - 1:
            print(f"step {k:3} loss {loss:.4f} accuracy {100 * accuracy:.0f} %")
    print(f"{1e3 * (time.perf_counter() - start) / steps:.2f} ms per step")
    if picture:
        draw(model, places, labels, picture)
    return {"loss": loss, "accuracy": accuracy}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
