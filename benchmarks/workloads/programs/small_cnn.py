"""A small CNN in modules, with batch norm and without."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload
from benchmarks.workloads.libraries import adam_loop, both, filled

BATCH, SIDE, WIDTHS = 16, 16, (16, 32)


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, 3, SIDE, SIDE)).astype(np.float32)
    return list(zip(x, rng.integers(0, 10, (4, BATCH)), strict=True))


def session(lib: Any, norms: bool) -> Session:
    nn = lib.nn
    layers: list[Any] = []
    for before, width in zip((3, *WIDTHS), WIDTHS, strict=False):
        norm = [nn.BatchNorm2d(width)] if norms else []
        layers += [nn.Conv2d(before, width, 3, padding=1), *norm, nn.ReLU(), nn.MaxPool2d(2)]
    inputs = WIDTHS[-1] * (SIDE // 4) ** 2
    model = filled(lib, nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10)))

    def loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
        return lib.nn.functional.cross_entropy(model(x), y)

    return adam_loop(lib, model, loss, batches, 1e-3)


# ReLU and pooling choose, and Adam divides by small numbers, as in W5.
WORKLOADS = (
    Workload(
        "program-cnn",
        "CNN of two convolutions, 16x16, batch 16, Adam",
        both(lambda lib: session(lib, norms=False)),
        checks=5,
        tolerance=1e-3,
    ),
    Workload(
        "program-cnn-norm",
        "the same with batch norm",
        both(lambda lib: session(lib, norms=True)),
        checks=5,
        tolerance=1e-3,
    ),
)
