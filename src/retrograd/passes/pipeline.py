"""The stages of a graph on its way from what was traced to what the scheduler gets.

`STAGES` lists them in order. `prepared` is what a program does before it plans, `lowered` what the
planner does first; `stages` runs all and gives the graph after each, for people to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from retrograd.ir import Graph, Node, TupleType
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Permute
from retrograd.passes.after_autodiff import settled, written
from retrograd.passes.common_subexpressions import merging
from retrograd.passes.constant_folding import folding
from retrograd.passes.hoisting import HOIST
from retrograd.passes.loops import PRUNE, inner_graphs
from retrograd.passes.lowering.complex import real_graph
from retrograd.passes.lowering.legalize import legalize
from retrograd.passes.rewrite import Rule, RuleSet, rewrite, sealed
from retrograd.passes.scan_fusion import merged
from retrograd.passes.simplification import simplifying

G = TypeVar("G", bound=Graph)

ROUNDS = 8  # nearly all graphs are done after two or three; a bound keeps the total linear


def optimize(graph: G) -> G:
    """The graph simplified: the same inputs, as many outputs of the same types and values.

    `fold`, `simplify` and `cse` together, node by node in one walk, as each finds more where the
    others have been, then what `loops.py` does to operations that hold graphs, then what can be
    taken out of scans; repeated while that finds something, at most `ROUNDS` times.
    """

    def run(graph: Graph) -> Graph:
        graph = rounds(graph)
        holds_graphs = any(isinstance(node.type, TupleType) for node in graph.body)
        for _ in range(ROUNDS if holds_graphs else 0):
            result = merged(rewrite(rewrite(graph, INNER_GRAPHS), PRUNE), optimize)
            if result is graph:
                result = rewrite(graph, HOIST)
            if result is graph:
                break
            graph = rounds(result)
        return graph

    def rounds(graph: Graph) -> Graph:
        settled: set[Node] = set()
        for _ in range(ROUNDS):
            last = _Round(settled)
            result = rewrite(graph, RuleSet("canonicalize", last.start))
            if result is graph:
                break
            graph = result
            if last.complete:
                break
        return graph

    return sealed(graph, run)


INNER_GRAPHS = inner_graphs(optimize)


def prepared(graph: G, simplify: bool) -> G:
    """A graph for a compiler: random samples written out, which leaves much to simplify."""
    whole = written(graph)
    return optimize(whole) if simplify or whole is not graph else graph


def inferring(graph: G) -> G:
    """The graph as it is run: what only differentiation reads is left out."""
    return written(settled(graph))


def lowered(graph: Graph, light: bool = False) -> Graph:
    """The graph in ops that have a loop nest or a routine; `light` as in `KernelPlan`."""
    return legalize(inferring(graph), light)


@dataclass(frozen=True)
class Stage:
    """A step of the way, and what it does in words."""

    name: str
    what: str
    run: Callable[[Graph], Graph]


STAGES = (
    Stage("traced", "as it was recorded", lambda graph: graph),
    Stage("complex", "complex numbers as pairs of real ones", real_graph),
    Stage("random", "random samples written out", written),
    Stage("canonical", "folded, simplified and merged; loops pruned, fused, hoisted", optimize),
    Stage("inference", "without what only differentiation reads", inferring),
    Stage("lowered", "in ops that have a loop nest or a routine", legalize),
)


def stages(graph: Graph) -> Iterator[tuple[Stage, Graph]]:
    """Every stage, in order, with the graph after it."""
    for stage in STAGES:
        graph = stage.run(graph)
        yield stage, graph


class _Round:
    """One walk of all three passes. `complete` if another could find nothing: every node that is
    left was offered to them as it is now, and nothing depends on how often a node is read.
    `settled` are nodes of which fold and simplify have said that they stay: they would say so
    again, as nodes do not change, but of a `permute`, for which it counts who else reads."""

    def __init__(self, settled: set[Node]) -> None:
        self.complete = True
        self._settled = settled

    def start(self, graph: Graph) -> Rule:
        fold, simplify, merge = folding(graph), simplifying(graph), merging(graph)
        seen: set[Node] = set(graph.inputs)
        settled = self._settled
        self.complete = not any(isinstance(node.prim, DotGeneral) for node in graph.body)

        def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
            if inputs != node.inputs:
                node = node.with_inputs(inputs)
            result = node if node in settled else simplify(fold(node))
            stays = result is node
            if not stays and result not in seen:
                again = simplify(fold(result))
                stays = again is result
                self.complete &= stays and seen.issuperset(result.inputs)
                result = again
            if stays and not isinstance(result.prim, Permute):
                settled.add(result)
            result = merge(result)
            seen.add(result)
            return result

        return rule
