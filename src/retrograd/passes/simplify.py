"""Algebraic simplification: identities from the tables of `algebra` and `movement`."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from retrograd.ir import Graph, Node, Provenance, made_by
from retrograd.passes.algebra import ALGEBRA, Rule
from retrograd.passes.movement import MOVEMENT, permute_of_dot
from retrograd.passes.sweep import sealed, sweep

G = TypeVar("G", bound=Graph)

RULES: dict[str, list[Rule]] = {**ALGEBRA, **MOVEMENT}
STEPS = 16  # rules applied to one node in a row; every rule makes the graph smaller or its kind


@sealed
def simplify(graph: Graph) -> Graph:
    """Apply the rules to every node, its inputs first, until none fits.

    What a rule makes takes over the scope, source line, origin and name of the node it replaces.
    `stop_gradient` stays, as the graph may be differentiated yet.
    """
    uses = Counter(x for node in graph.body for x in node.inputs)
    uses.update(graph.outputs)

    def rule(node: Node) -> Node:
        if node.op not in RULES:
            return node
        with made_by(Provenance(node.scope, node.source, node.origin)):
            for _ in range(STEPS):
                better = _first(node)
                if better is None and node.op == "permute" and uses[node.inputs[0]] == 1:
                    better = permute_of_dot(node, *node.inputs)
                if better is None:
                    break
                if node.name and not better.name and better.id > node.id:
                    better = better.renamed(node.name)
                node = better
        return node

    return sweep(graph, rule)


def _first(node: Node) -> Node | None:
    for rule in RULES.get(node.op, ()):
        better = rule(node, *node.inputs)
        if better is not None:
            return better
    return None
