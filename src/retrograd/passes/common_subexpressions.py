"""Common subexpressions: nodes that compute the same are made one."""

from __future__ import annotations

from typing import TypeVar

from retrograd.ir import Graph, Node, Op, Trait
from retrograd.passes.rewrite import NodeRule, RuleSet, rewrite, sealed

G = TypeVar("G", bound=Graph)


def cse(graph: G) -> G:
    """Merge nodes of the same operation on the same inputs; the first one stays as it is.

    Two graph inputs are never the same.
    """
    return sealed(graph, lambda g: rewrite(g, CSE))


def merging(graph: Graph) -> NodeRule:
    known: dict[tuple[Op, tuple[Node, ...]], Node] = {}

    def rule(node: Node) -> Node:
        prim, inputs = node.prim, node.inputs
        if Trait.INPUT in prim.traits:
            return node
        if Trait.COMMUTATIVE in prim.traits and inputs[0].id > inputs[1].id:
            inputs = inputs[::-1]
        return known.setdefault((prim, inputs), node)

    return rule


CSE = RuleSet.simplifying("cse", merging)
