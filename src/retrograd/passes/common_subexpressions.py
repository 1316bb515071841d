"""Common subexpressions: nodes that compute the same are made one."""

from __future__ import annotations

from typing import TypeVar

from retrograd.ir import Graph, Node, Op
from retrograd.passes.rewrite import NodeRule, RuleSet, rewrite, sealed

G = TypeVar("G", bound=Graph)

# Ops whose inputs may change places without changing a bit of the result.
COMMUTATIVE = frozenset(
    ("add", "mul", "eq", "ne", "bitwise_and", "bitwise_or", "bitwise_xor"),
)


def cse(graph: G) -> G:
    """Merge nodes of the same operation on the same inputs; the first one stays as it is.

    Two graph inputs are never the same.
    """
    return sealed(graph, lambda g: rewrite(g, CSE))


def merging(graph: Graph) -> NodeRule:
    known: dict[tuple[Op, tuple[Node, ...]], Node] = {}

    def rule(node: Node) -> Node:
        prim, inputs = node.prim, node.inputs
        if prim.name == "input":
            return node
        if prim.name in COMMUTATIVE and inputs[0].id > inputs[1].id:
            inputs = inputs[::-1]
        return known.setdefault((prim, inputs), node)

    return rule


CSE = RuleSet.simplifying("cse", merging)
