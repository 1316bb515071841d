"""A small WaveNet: causal convolutions whose dilation doubles, with gates, over quantized sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained_module

BATCH, LENGTH, WIDTH, LEVELS, DILATIONS = 4, 256, 32, 64, (1, 2, 4, 8, 16, 32)


def wavenet(lib: Any) -> Any:
    nn = lib.nn
    F = nn.functional

    class Layer(nn.Module):  # type: ignore[name-defined]
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.dilation = dilation
            self.gate = nn.Conv1d(WIDTH, 2 * WIDTH, 2, dilation=dilation)
            self.out = nn.Conv1d(WIDTH, 2 * WIDTH, 1)

        def forward(self, x: Any) -> Any:
            a, b = self.gate(F.pad(x, (self.dilation, 0))).chunk(2, 1)
            passed, skipped = self.out(lib.tanh(a) * lib.sigmoid(b)).chunk(2, 1)
            return x + passed, skipped

    class WaveNet(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(LEVELS, WIDTH)
            self.layers = nn.ModuleList([Layer(d) for d in DILATIONS])
            self.head = nn.Sequential(
                nn.ReLU(), nn.Conv1d(WIDTH, WIDTH, 1), nn.ReLU(), nn.Conv1d(WIDTH, LEVELS, 1)
            )

        def forward(self, sound: Any) -> Any:
            x = self.embedding(sound).transpose(1, 2)
            total = 0.0
            for layer in self.layers:
                x, skipped = layer(x)
                total = total + skipped
            return self.head(total)

    return WaveNet()


def batches() -> list[tuple[Any]]:
    rng = np.random.default_rng(1)
    wave = np.cumsum(rng.normal(0, 1, (4, BATCH, LENGTH + 1)), -1)
    return [(a,) for a in (wave.round().astype(np.int64) % LEVELS)]


def loss(lib: Any, model: Any, sound: Any) -> Any:
    return lib.nn.functional.cross_entropy(model(sound[:, :-1]), sound[:, 1:])


WORKLOAD = Workload(
    "fresh-wavenet",
    "WaveNet of 6 layers, 32 channels, 4 x 256 samples, Adam",
    trained_module(wavenet, loss, batches),
)
