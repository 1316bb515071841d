"""Graphs of a million nodes: is everything linear, and does nothing recurse?

For chains of 10^4, 10^5 and 10^6 nodes, `y = tanh(y) * w` again and again, prints the time per node
of the graph at hand of building, differentiating, optimising the gradient, checking, printing,
parsing, comparing and freeing, and the memory per node. Linear means: the columns stay level.

    python benchmarks/long_chain.py [LARGEST]
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from retrograd.autodiff import gradient
from retrograd.ir import Graph, spec
from retrograd.ops.elementwise import tanh
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize

T = TypeVar("T")


def chain(n: int) -> Graph:
    """A chain of `n` nodes between two inputs and one output."""
    x, w = input_node(spec(()), "x"), input_node(spec(()), "w")
    y = x
    for _ in range(n // 2):
        y = tanh(y) * w
    return Graph([x, w], [y], "chain")


class Clock:
    """Times per node, in microseconds of this process's own time."""

    def __init__(self) -> None:
        self.rows: dict[str, float] = {}

    def __call__(self, label: str, nodes: int, run: Callable[[], T]) -> T:
        gc.collect()
        start = time.process_time()
        result = run()
        self.rows[label] = (time.process_time() - start) / nodes * 1e6
        return result


def measure(n: int) -> dict[str, float]:
    clock = Clock()
    before = peak_memory()
    graphs = [clock("build", n, lambda: chain(n))]
    graphs.append(clock("gradient, per forward node", n, lambda: gradient(graphs[0])))
    size = len(graphs[1])
    memory = (peak_memory() - before) / (len(graphs[0]) + size)
    clock("check", size, graphs[1].check)
    graphs.append(clock("optimise the gradient", size, lambda: optimize(graphs[1])))
    small = len(graphs[2])
    text = clock("print", small, lambda: str(graphs[2]))
    graphs.append(clock("parse", small, lambda: Graph.parse(text)))
    if not clock("compare", small, lambda: graphs[2] == graphs[3]):
        raise SystemExit("the text did not give the same graph back")
    clock("free", sum(map(len, graphs)), graphs.clear)
    return {**clock.rows, "bytes per node": memory, "nodes of the gradient": size}


def peak_memory() -> int:
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    sizes = [n for n in (10**4, 10**5, 10**6, 10**7) if n <= largest]
    measure(1000)
    columns = [measure(n) for n in sizes]
    print(f"{'microseconds per node':<28}" + "".join(f"{n:>12,}" for n in sizes))
    for label in columns[0]:
        digits = 0 if "nodes" in label or "bytes" in label else 2
        print(f"{label:<28}" + "".join(f"{c[label]:>12,.{digits}f}" for c in columns))


if __name__ == "__main__":
    main()
