"""ResNet-8 on 32x32 images with batch norm: as a function, and as a module with statistics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload
from benchmarks.workloads.libraries import adam_loop, both, filled, normal, trained

BATCH, SIDE, WIDTHS = 32, 32, (16, 32, 64)


def weights() -> dict[str, Any]:
    """A first convolution, a block of two for each width, the last matrix; each with its norm."""
    rng = np.random.default_rng(0)
    p: dict[str, Any] = {}

    def convolution(name: str, inputs: int, outputs: int, side: int = 3) -> None:
        p[name] = normal(rng, outputs, inputs, side, side)
        p[f"{name}.w"], p[f"{name}.b"] = np.ones(outputs, np.float32), np.zeros(outputs, np.float32)

    convolution("first", 3, WIDTHS[0])
    before = WIDTHS[0]
    for i, width in enumerate(WIDTHS):
        convolution(f"{i}.one", before, width)
        convolution(f"{i}.two", width, width)
        if width != before:
            convolution(f"{i}.skip", before, width, 1)
        before = width
    return {**p, "last": normal(rng, 10, before)}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, 3, SIDE, SIDE)).astype(np.float32)
    return list(zip(x, rng.integers(0, 10, (4, BATCH)), strict=True))


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional

    def convolved(x: Any, name: str, stride: int = 1) -> Any:
        h = F.conv2d(x, p[name], stride=stride, padding=p[name].shape[-1] // 2)
        return F.batch_norm(h, None, None, p[f"{name}.w"], p[f"{name}.b"], training=True)

    h = F.relu(convolved(x, "first"))
    for i in range(len(WIDTHS)):
        stride = 2 if f"{i}.skip" in p else 1
        skip = convolved(h, f"{i}.skip", stride) if f"{i}.skip" in p else h
        h = convolved(F.relu(convolved(h, f"{i}.one", stride)), f"{i}.two")
        h = F.relu(h + skip)
    return F.cross_entropy(F.linear(h.mean((2, 3)), p["last"]), y)


def network(lib: Any) -> Any:
    """The same as a module."""
    nn = lib.nn

    def convolution(inputs: int, outputs: int, side: int, stride: int) -> Any:
        layer = nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(outputs))

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            stride = 1 if inputs == outputs else 2
            self.one = convolution(inputs, outputs, 3, stride)
            self.two = convolution(outputs, outputs, 3, 1)
            self.skip = nn.Identity() if stride == 1 else convolution(inputs, outputs, 1, stride)
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.two(self.relu(self.one(x))) + self.skip(x))

    widths = (WIDTHS[0], *WIDTHS)
    blocks = [Block(a, b) for a, b in pairwise(widths)]
    ends = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], 10))
    return nn.Sequential(convolution(3, WIDTHS[0], 3, 1), nn.ReLU(), *blocks, *ends)


def as_module(lib: Any) -> Session:
    def of_module(lib: Any, model: Any, x: Any, y: Any) -> Any:
        return lib.nn.functional.cross_entropy(model(x), y)

    return adam_loop(lib, filled(lib, network(lib)), of_module, batches, 1e-3)


WORKLOADS = (
    Workload(
        "held-resnet",
        "ResNet-8, 32x32, batch norm, batch 32, Adam",
        trained(weights, batches, loss, jax=False),
        checks=5,
        tolerance=1e-3,  # ReLU chooses and Adam divides by small numbers, as in W5
    ),
    Workload(
        "held-resnet-module",
        "the same as a module with running statistics",
        both(as_module),
        checks=5,
        tolerance=1e-3,
    ),
)
