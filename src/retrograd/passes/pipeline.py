"""All passes, until nothing changes, or for `ROUNDS` walks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from retrograd.ir import Graph, Node
from retrograd.passes.after_autodiff import written
from retrograd.passes.common_subexpressions import merging
from retrograd.passes.constant_folding import folding
from retrograd.passes.hoisting import ahead
from retrograd.passes.loops import has_loops, inside, pruned
from retrograd.passes.rewrite import MakeRule, Rule, sealed, sweep
from retrograd.passes.scan_fusion import merged
from retrograd.passes.simplification import simplifying

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
        settled: set[Node] = set()
        for _ in range(ROUNDS):
            last = _Round(settled)
            result = sweep(graph, last.start)
            if result is graph:
                break
            if after is not None:
                after(result)
            graph = result
            if last.complete:
                break
        return graph

    return sealed(graph, run)


def prepared(graph: G, simplify: bool) -> G:
    """A graph for a compiler: random samples written out, which leaves much to simplify."""
    whole = written(graph)
    return optimize(whole) if simplify or whole is not graph else graph


class _Round:
    """One walk of all three passes. `complete` if another could find nothing: every node that is
    left was offered to them as it is now, and nothing depends on how often a node is read.
    `settled` are nodes of which fold and simplify have said that they stay: they would say so
    again, as nodes do not change, but of a `permute`, for which it counts who else reads."""

    def __init__(self, settled: set[Node]) -> None:
        self.complete = True
        self._settled = settled

    def start(self, graph: Graph) -> Rule:
        fold, simplify, merge = (make(graph) for make in RULES)
        seen: set[Node] = set(graph.inputs)
        settled = self._settled
        self.complete = not any(node.prim.name == "dot_general" for node in graph.body)

        def rule(node: Node) -> Node:
            result = node if node in settled else simplify(fold(node))
            stays = result is node
            if not stays and result not in seen:
                again = simplify(fold(result))
                stays = again is result
                self.complete &= stays and seen.issuperset(result.inputs)
                result = again
            if stays and result.op != "permute":
                settled.add(result)
            result = merge(result)
            seen.add(result)
            return result

        return rule
