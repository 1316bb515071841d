"""Matrix products, compiled, beside PyTorch, NumPy and SciPy, as shares of the machine's peak.

Square and skinny, stacks of small ones, each operand transposed, and products that are added to
something. Each line has the rate of each library in GFLOP/s, from the least time of a call in many
turns, of the processor, or of the clock where there are several threads, then how much that of
retrograd is of the best of the others, and of the peak of so many threads: the best of a loop of
multiply-adds and of every BLAS at hand.

    python -m benchmarks.products [square skinny ...] [--threads 1] [--dtype float64]
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

SQUARE = (64, 96, 128, 200, 256, 384, 512, 768, 1000, 1024, 2048)
SKINNY = (
    (8, 1024, 1024), (16, 512, 512), (32, 2048, 512), (64, 512, 2048), (1024, 8, 1024),
    (1024, 16, 1024), (4096, 16, 144), (4096, 32, 288), (1024, 64, 64), (1024, 1024, 16),
    (1024, 1024, 64), (64, 64, 4096), (16, 144, 4096), (1024, 2048, 512), (1024, 512, 2048),
)  # fmt: skip
BATCHED = (
    (64, 32, 32, 32), (64, 64, 64, 64), (64, 128, 128, 32), (64, 128, 32, 128),
    (16, 256, 256, 64), (16, 100, 100, 100),
)  # fmt: skip
TURNED = (
    (64, 64, 64), (128, 512, 784), (256, 256, 256), (512, 512, 512), (512, 784, 128),
    (1024, 1024, 1024), (2048, 512, 128), (144, 16, 4096), (100, 100, 100),
)  # fmt: skip
ROUNDS = 6
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Case(NamedTuple):
    """A product: what it is of, and its multiplications and additions."""

    name: str
    operands: tuple[np.ndarray[Any, Any], ...]
    operation: Callable[..., Any]
    operations: int


def cases(dtype: str) -> Iterator[Case]:
    """All products, in order."""
    draw = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray[Any, Any]:
        return draw.standard_normal(shape).astype(dtype)

    def product(kind: str, m: int, n: int, k: int) -> Case:
        a = array(k, m) if kind in ("left", "both") else array(m, k)
        b = array(n, k) if kind in ("right", "both") else array(k, n)
        forms: dict[str, Callable[..., Any]] = {
            "left": lambda a, b: a.T @ b,
            "right": lambda a, b: a @ b.T,
            "both": lambda a, b: a.T @ b.T,
            "added": lambda a, b, c: a @ b + c,
        }
        more = (array(m, n),) if kind == "added" else ()
        operation = forms.get(kind, lambda a, b: a @ b)
        return Case(f"{kind} {m} x {k} x {n}", (a, b, *more), operation, 2 * m * n * k)

    for n in SQUARE:
        yield product("square", n, n, n)
    for m, n, k in SKINNY:
        yield product("skinny", m, n, k)
    for many, m, n, k in BATCHED:
        a, b = array(many, m, k), array(many, k, n)
        size = 2 * many * m * n * k
        yield Case(f"batched {many}: {m} x {k} x {n}", (a, b), lambda a, b: a @ b, size)
    for kind in ("left", "right", "both", "added"):
        for m, n, k in TURNED:
            yield product(kind, m, n, k)


def libraries(case: Case, threads: int) -> dict[str, Callable[[], Any]]:
    """What runs the product, by library."""
    import torch

    import retrograd as rg

    rg.num_threads(threads)
    torch.set_num_threads(threads)
    compiled = rg.jit(case.operation)
    own = [rg.asarray(x) for x in case.operands]
    theirs = [torch.from_numpy(x) for x in case.operands]
    forms = {"added": lambda a, b, c: torch.addmm(c, a, b)}
    operation = forms.get(case.name.split()[0], case.operation)
    return {
        "retrograd": lambda: compiled(*own),
        "torch": lambda: operation(*theirs),
        "numpy": lambda: case.operation(*case.operands),
    }


def rates(case: Case, seconds: float, threads: int) -> dict[str, float]:
    """Operations a second of each library, in rounds of turns."""
    runs = libraries(case, threads)
    results = [np.asarray(run()) for run in runs.values()]
    for other in results[1:]:
        np.testing.assert_allclose(results[0], other, atol=2e-3 * float(np.abs(other).max()))
    best = dict.fromkeys(runs, float("inf"))
    clock = (
        process_time if threads == 1 else perf_counter
    )  # others' time is known from tick to tick
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for name, run in runs.items():
            end = perf_counter() + seconds / ROUNDS
            many = 1
            while perf_counter() < end:
                began = clock()
                for _ in range(many):
                    run()
                passed = clock() - began
                best[name] = min(best[name], passed / many)
                if passed < 2e-4:
                    many *= 2
    gc.enable()
    return {name: case.operations / time for name, time in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="words that begin the names of products")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each library and product")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.child:  # libraries read how many threads they have when they are imported
        command = [sys.executable, "-m", "benchmarks.products", "--child", *sys.argv[1:]]
        environment = {**os.environ, **dict.fromkeys(VARIABLES, str(options.threads))}
        raise SystemExit(subprocess.call(command, env=environment))
    from benchmarks.harness.rates import peak

    most = peak() * options.threads
    print(f"peak {most / 1e9:.1f} GFLOP/s")
    for case in cases(options.dtype):
        if not options.names or any(case.name.startswith(name) for name in options.names):
            r = rates(case, options.seconds, options.threads)
            best = max(v for k, v in r.items() if k != "retrograd")
            shown = "  ".join(f"{k} {v / 1e9:6.1f}" for k, v in r.items())
            shares = r["retrograd"] / best, r["retrograd"] / most
            print(f"{case.name:28} {shown}  {shares[0]:5.2f} {shares[1]:5.2f}", flush=True)


if __name__ == "__main__":
    main()
