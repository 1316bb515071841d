"""All passes, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from retrograd.ir import Graph
from retrograd.passes.cse import cse
from retrograd.passes.fold import fold
from retrograd.passes.simplify import simplify
from retrograd.passes.sweep import sealed

G = TypeVar("G", bound=Graph)

PASSES: tuple[Callable[[Graph], Graph], ...] = (fold, simplify, cse)
ROUNDS = 8  # nearly all graphs are done after two or three; a bound keeps the total linear


def optimize(graph: G, after: Callable[[Graph], object] | None = None) -> G:
    """The graph simplified: the same inputs, as many outputs of the same types and values.

    `after` is called with the result of each pass that changed something: `optimize(g, check)`
    verifies every step.
    """

    @sealed
    def run(graph: Graph) -> Graph:
        for _ in range(ROUNDS):
            before = graph
            for step in PASSES:
                result = step(graph)
                if after is not None and result is not graph:
                    after(result)
                graph = result
            if graph is before:
                break
        return graph

    return run(graph)
