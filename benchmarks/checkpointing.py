"""What `checkpoint` costs and saves: a step of an MLP of 200 layers.

For no checkpoint, for groups of layers, and for budgets of bytes: the memory that the compiled
step is planned to take, what a process was measured to take beyond what it had before the call, and
the least time of a call. Each way has a process of its own.

    python benchmarks/checkpointing.py [--width 64] [--batch 4096] [--layers 200] [--calls 5]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg

WAYS = ("plain", "groups of 10", "groups of 14", "groups of 20", "32 MB", "50 MB", "100 MB")


def layers(ws: Any, x: Any) -> Any:
    for w in ws:
        x = rg.tanh(x @ w)
    return x


def loss(way: str, ws: Any, x: Any) -> Any:
    if way.startswith("groups"):
        size = int(way.split()[-1])
        for i in range(0, len(ws), size):
            x = rg.checkpoint(layers)(ws[i : i + size], x)
        return (x**2).mean()
    f = layers if way == "plain" else rg.checkpoint(layers, policy=way)
    return (f(ws, x) ** 2).mean()


def resident(field: str) -> int:
    """Bytes of this process in memory, as Linux counts them."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(x for x in text.splitlines() if x.startswith(field))
    return int(line.split()[1]) * 1024


def measure(way: str, width: int, batch: int, count: int, calls: int) -> None:
    rng = np.random.default_rng(0)
    ws = [(rng.normal(size=(width, width)) / width**0.5).astype(np.float32) for _ in range(count)]
    x = rng.normal(size=(batch, width)).astype(np.float32)
    try:
        graph = rg.trace(rg.value_and_grad(lambda ws, x: loss(way, ws, x)), ws, x)
    except rg.OptionError as error:
        print(f"{way:14} {error}")
        return
    planned = graph.stats().compiled_bytes or 0
    step = graph.compile()
    before = resident("VmRSS")
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        step(*ws, x)
        best = min(best, time.perf_counter() - start)
    taken = resident("VmHWM") - before
    print(
        f"{way:14} planned {planned / 1e6:8.1f} MB   measured {taken / 1e6:8.1f} MB   "
        f"{best * 1e3:8.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=200)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--way", choices=WAYS, help="only this one, in this process")
    options = parser.parse_args()
    if options.way:
        measure(options.way, options.width, options.batch, options.layers, options.calls)
        return
    for way in WAYS:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--way", way], check=True)


if __name__ == "__main__":
    main()
