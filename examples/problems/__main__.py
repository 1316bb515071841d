"""Value and gradient of every problem, at each size that takes less than a minute.

python -m examples.problems [NAME ...]
"""

import sys
import time

import numpy as np

import retrograd as rg
from examples.problems import PROBLEMS, Problem

LIMIT = 60.0  # seconds for a size, before the larger ones are left out


def main(names: list[str]) -> None:
    chosen = [p for p in PROBLEMS if not names or any(n in p.name for n in names)]
    print(f"{'problem':<24}{'size':>24}{'value':>14}{'first':>10}{'gradient':>12}")
    for problem in chosen:
        for size in problem.sizes:
            if show(problem, size) > LIMIT:
                break


def show(problem: Problem, size: object) -> float:
    """Print a line; the seconds that it took."""
    start = time.perf_counter()
    args = problem.make(size, np.random.default_rng(0))
    both = rg.jit(rg.value_and_grad(problem.f, argnums=problem.wrt))
    begin = time.perf_counter()
    value, gradients = both(*args)
    first = time.perf_counter() - begin
    best = first
    for _ in range(5):
        begin = time.perf_counter()
        value, gradients = both(*args)
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() - start > LIMIT / 4:
            break
    assert all(np.isfinite(g.numpy()).all() for g in gradients)
    print(f"{problem.name:<24}{size!s:>24}{value.item():>14.6g}{first:>9.2f}s{_time(best):>12}")
    return time.perf_counter() - start


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


if __name__ == "__main__":
    main(sys.argv[1:])
