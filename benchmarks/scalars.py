"""Nanoseconds of CPU time and bytes per node of `rg.Value`: a chain and a random graph, recorded,
looked at, differentiated and freed, with each recorder.

    python -m benchmarks.scalars [--nodes 1000000]

Every size is measured over as many nodes in all, three times, of which the fastest counts. Rows
called `float` are the same programs on Python's own numbers, which record nothing: what the list of
a million objects and the random access to it cost by themselves.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import resource
import subprocess
import sys
import time
from typing import Any

from retrograd.scalar import RECORDERS

ALL = 1_000_000  # nodes, in graphs of each size


def chain(cls: Any, n: int) -> tuple[Any, Any]:
    y = cls(0.5)
    for _ in range(n // 2):
        y = (y * 1.0000001) + 1e-9
    return y, None


def graph(cls: Any, n: int) -> tuple[Any, Any]:
    """Operands are any earlier nodes; all are held."""
    draw = random.Random(0).random
    values = [cls(1.0)]
    for k in range(n):
        a, b = values[int(draw() * len(values))], values[-1]
        values.append(a * 0.5 if k % 2 else a + b * 1e-3)
    return values[-1], values


def once(cls: Any, build: Any, n: int) -> list[float]:
    t = [time.thread_time()]
    y, held = build(cls, n)
    t.append(time.thread_time())
    if cls is not float:
        _ = y.data
    t.append(time.thread_time())
    if cls is not float:
        y.backward()
    t.append(time.thread_time())
    del y, held
    t.append(time.thread_time())
    return [q - p for p, q in itertools.pairwise(t)]


def measure(recorder: str, shape: str, n: int) -> str:
    build = {"chain": chain, "graph": graph}[shape]
    cls = float if recorder == "float" else RECORDERS[recorder]
    if cls is not float:
        build(cls, 100)[0].backward()  # what happens once in a process
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds = max(1, ALL // n)
    best = [float("inf")] * 4
    for _ in range(3):
        spent = [0.0] * 4
        for _ in range(rounds):
            times = once(cls, build, n)
            spent = [a + b for a, b in zip(spent, times, strict=True)]
        best = [min(a, b / rounds) for a, b in zip(best, spent, strict=True)]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    shown = " ".join([f"{1e9 * a / n:8.0f}" for a in best])
    return f"{recorder:9} {shape:6} {n:8} {shown} {grown / n if n > 50_000 else float('nan'):8.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=3)
    given = parser.parse_args()
    if given.one:
        recorder, shape, n = given.one
        print(measure(recorder, shape, int(n)))
        return
    print("recorder  shape     nodes   record  forward backward     free    bytes")
    for recorder in ("float", *RECORDERS):
        for shape in ("chain", "graph"):
            n = 10_000
            while n <= given.nodes:
                # Each in a process of its own, whose peak is its own.
                command = [sys.executable, "-m", "benchmarks.scalars", "--one"]
                subprocess.run([*command, recorder, shape, str(n)], check=True)
                n *= 10


if __name__ == "__main__":
    main()
