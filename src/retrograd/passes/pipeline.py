"""All passes, until nothing changes, or for `ROUNDS` walks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from retrograd.ir import Graph, Node
from retrograd.passes.ahead import ahead
from retrograd.passes.cse import merging
from retrograd.passes.fold import folding
from retrograd.passes.loops import has_loops, inside, pruned
from retrograd.passes.merging_scans import merged
from retrograd.passes.simplify import simplifying
from retrograd.passes.sweep import MakeRule, Rule, sealed, sweep

G = TypeVar("G", bound=Graph)

RULES: tuple[MakeRule, ...] = (folding, simplifying, merging)
ROUNDS = 8  # nearly all graphs are done after two or three; a bound keeps the total linear


def optimize(graph: G, after: Callable[[Graph], object] | None = None) -> G:
    """The graph simplified: the same inputs, as many outputs of the same types and values.

    `fold`, `simplify` and `cse` together, node by node in one walk, as each finds more where the
    others have been, then what `loops.py` does to operations that hold graphs; repeated while that
    finds something, at most `ROUNDS` times. `after` is called with the result of each walk that
    changed something: `optimize(g, check)` verifies them.
    """

    def run(graph: Graph) -> Graph:
        graph = rounds(graph)
        for _ in range(ROUNDS if has_loops(graph) else 0):
            result = merged(pruned(inside(graph, optimize)), optimize)
            if result is graph:
                result = ahead(graph)
            if result is graph:
                break
            graph = rounds(result)
        return graph

    def rounds(graph: Graph) -> Graph:
        for _ in range(ROUNDS):
            result = sweep(graph, _together)
            if result is graph:
                break
            if after is not None:
                after(result)
            graph = result
        return graph

    return sealed(graph, run)


def _together(graph: Graph) -> Rule:
    fold, simplify, merge = (make(graph) for make in RULES)

    def rule(node: Node) -> Node:
        return merge(simplify(fold(node)))

    return rule
