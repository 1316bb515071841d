"""Training of microgpt on scalars over documents of which none comes twice: milliseconds of CPU
time per step, for the plain class, `rg.Value` with each recorder, and both under `rg.jit`.

    python -m benchmarks.documents [--documents 200]

A row called "without accelerators" does what an installation without a C compiler does.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from benchmarks.workloads import scalar_gpt
from retrograd.scalar import RECORDERS, instructions, trace_rows

LENGTHS = (4, 5, 5, 6, 6, 6, 6, 7, 7, 8)  # letters of first names, as often as they have so many
WIDTH, LETTERS = 16, 26
WAYS = ("plain", "value", "jit", "value without accelerators", "jit without accelerators")


def documents() -> list[list[int]]:
    """As many different ones as anybody asks for, the same in each process."""
    draw = random.Random(5)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < 2000:
        length = draw.choice(LENGTHS)
        found[tuple([draw.randrange(LETTERS) for _ in range(length)])] = None
    return [[LETTERS, *name, LETTERS] for name in found]


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"wte": (LETTERS + 1, WIDTH), "wpe": (16, WIDTH)}
    shapes |= dict.fromkeys("qkvo", (WIDTH, WIDTH))
    shapes |= {"up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH), "head": (LETTERS + 1, WIDTH)}
    return {name: rng.normal(0, 0.08, shape) for name, shape in shapes.items()}


def step_of(way: str) -> Callable[[], float]:
    cls: Any = scalar_gpt.Value if way == "plain" else rg.Value
    if "without" in way:
        cls = RECORDERS["python"]
        for module in (instructions, trace_rows):
            vars(module)["_instructions"] = None
    if way.startswith("jit"):
        return scalar_gpt.compiled_session(cls, rg.jit, weights(), documents()).step
    return scalar_gpt.session(cls, weights(), documents()).step


def measure(way: str, count: int) -> str:
    step = step_of(way)
    times = []
    for _ in range(count):
        start = time.thread_time()
        loss = step()
        times.append(1e3 * (time.thread_time() - start))
    mean, ordered = sum(times) / count, sorted(times)
    return f"{way:28} {mean:9.1f} {ordered[count // 2]:9.1f} {times[0]:9.1f} {loss:18.12f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--one")
    given = parser.parse_args()
    if given.one:
        print(measure(given.one, given.documents))
        return
    print("ms per step                       mean    median     first          last loss")
    for way in WAYS:
        command = [sys.executable, "-m", "benchmarks.documents", "--one", way]
        subprocess.run([*command, "--documents", str(given.documents)], check=True)


if __name__ == "__main__":
    main()
