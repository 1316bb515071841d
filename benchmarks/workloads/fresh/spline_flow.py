"""A normalizing flow of rational quadratic splines between coupled halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

BATCH, FEATURES, WIDTH, BINS, LAYERS, SIDE = 128, 4, 32, 8, 4, 3.0


def spline(lib: Any, x: Any, widths: Any, heights: Any, slopes: Any) -> tuple[Any, Any]:
    """The spline of Durkan et al. on [-SIDE, SIDE], the identity outside, and the logarithm of its
    slope. `x`: [batch, n]; `widths`, `heights`: [batch, n, BINS]; `slopes`: one less."""
    F = lib.nn.functional

    def knots(a: Any) -> Any:
        share = 1e-3 + (1 - 1e-3 * BINS) * lib.softmax(a, -1)
        return F.pad(2 * SIDE * lib.cumsum(share, -1), (1, 0)) - SIDE

    def at(a: Any, k: Any) -> Any:
        return lib.gather(a, -1, k)[..., 0]

    xs, ys = knots(widths), knots(heights)
    steep = F.pad(1e-3 + F.softplus(slopes), (1, 1), value=1.0)
    inside = (x > -SIDE) & (x < SIDE)
    inner = x.clamp(-SIDE + 1e-4, SIDE - 1e-4)
    k = (inner[..., None] >= xs[..., 1:-1]).sum(-1)[..., None]
    x0, y0, x1, y1 = at(xs, k), at(ys, k), at(xs, k + 1), at(ys, k + 1)
    d0, d1 = at(steep, k), at(steep, k + 1)
    s, u = (y1 - y0) / (x1 - x0), (inner - x0) / (x1 - x0)
    below = s + (d1 + d0 - 2 * s) * u * (1 - u)
    y = y0 + (y1 - y0) * (s * u**2 + d0 * u * (1 - u)) / below
    slope = s**2 * (d1 * u**2 + 2 * s * u * (1 - u) + d0 * (1 - u) ** 2) / below**2
    return lib.where(inside, y, x), lib.where(inside, lib.log(slope), 0.0)


def flow(lib: Any) -> Any:
    nn, half = lib.nn, FEATURES // 2

    class Flow(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.nets = nn.ModuleList(
                nn.Sequential(
                    nn.Linear(half, WIDTH), nn.SiLU(), nn.Linear(WIDTH, half * (3 * BINS - 1))
                )
                for _ in range(LAYERS)
            )

        def forward(self, x: Any) -> Any:
            """How unlikely each row is."""
            total = 0.0
            for net in self.nets:
                a, b = x[:, :half], x[:, half:]
                numbers = net(a).reshape((BATCH, half, 3 * BINS - 1))
                b, slope = spline(lib, b, *lib.split(numbers, [BINS, BINS, BINS - 1], -1))
                x, total = lib.cat([b, a], 1), total + slope.sum(1)
            return (x**2).sum(1) / 2 - total

    return Flow()


def batches() -> list[tuple[Any]]:
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, (8, BATCH, FEATURES // 2))
    x = np.concatenate([np.cos(angle), np.sin(angle)], -1) + rng.normal(
        0, 0.1, (8, BATCH, FEATURES)
    )
    return [(a.astype(np.float32),) for a in x]


def loss(lib: Any, model: Any, x: Any) -> Any:
    return model(x).mean()


WORKLOAD = Workload(
    "fresh-spline-flow",
    "4 couplings by splines of 8 bins, 128 points of 4 features, Adam",
    trained_module(flow, loss, batches),
)
