"""What a tape costs: those who use it, and those who do not.

Prints microseconds per operation of a chain of small operations: eager, with a tape that is merely
alive, recorded on a tape, the dense gradient of all entries, and PyTorch with `retain_grad` on
every result. The first pass learns the program; what comes later is the best of some passes.

    python benchmarks/tape.py [LENGTHS...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import retrograd as rg

PASSES = 12


def chain(x: Any, n: int) -> Any:
    """A chain of `n` operations."""
    y = x
    for _ in range(n // 2):
        y = y * 0.9999 + x
    return y


def eager(n: int) -> list[float]:
    """Recording and its gradient without a tape."""
    x = rg.tensor(1.0, requires_grad=True)
    start = time.perf_counter()
    y = chain(x, n)
    middle = time.perf_counter()
    y.backward()
    assert x.grad is not None
    x.grad.item()
    return [middle - start, time.perf_counter() - middle]


def beside(n: int) -> list[float]:
    """The same beside a tape that is alive."""
    tape = rg.Tape()
    other = tape.leaf(1.0) * 2
    times = eager(n)
    assert other.item() == 2
    return times


def on_tape(n: int) -> list[float]:
    """Recording on a tape, and the gradient of each of its entries."""
    start = time.perf_counter()
    tape = rg.Tape()
    y = chain(tape.leaf(1.0), n)
    middle = time.perf_counter()
    tape.backward_dense(y)
    return [middle - start, time.perf_counter() - middle]


def torch(n: int) -> list[float]:
    """PyTorch with gradients of all results."""
    import torch

    x = torch.tensor(1.0, requires_grad=True)
    start = time.perf_counter()
    y, results = x, []
    for _ in range(n // 2):
        z = y * 0.9999
        y = z + x
        results += [z, y]
    for r in results:
        r.retain_grad()
    middle = time.perf_counter()
    y.backward()
    return [middle - start, time.perf_counter() - middle]


def main() -> None:
    kinds: list[Callable[[int], list[float]]] = [eager, beside, on_tape, torch]
    print("microseconds per operation: recording, gradient (first pass; then the best)")
    for n in [int(a) for a in sys.argv[1:]] or [1_000, 10_000, 100_000]:
        for run in kinds:
            try:
                passes = [run(n) for _ in range(PASSES if n <= 10_000 else 4)]
            except ImportError:
                continue
            first = [1e6 * t / n for t in passes[0]]
            best = [1e6 * min(times) / n for times in zip(*passes[1:], strict=True)]
            columns = "".join([f"{t:10.2f}" for t in (*first, *best)])
            print(f"{n:8d}  {run.__name__:8s}{columns}", flush=True)


if __name__ == "__main__":
    main()
