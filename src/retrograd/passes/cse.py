"""Common subexpressions: nodes that compute the same are made one."""

from __future__ import annotations

from typing import TypeVar

from retrograd.ir import Graph, Node, Op
from retrograd.passes.sweep import sweep

G = TypeVar("G", bound=Graph)

# Ops whose inputs may change places without changing a bit of the result.
COMMUTATIVE = frozenset(
    ("add", "mul", "eq", "ne", "bitwise_and", "bitwise_or", "bitwise_xor")
)  # fmt: skip


def cse(graph: G) -> G:
    """Merge nodes of the same operation on the same inputs; the first one stays as it is.

    Two graph inputs are never the same, whatever made them.
    """
    known: dict[tuple[Op, tuple[Node, ...]], Node] = {}

    def rule(node: Node) -> Node:
        inputs = node.inputs
        if node.op in COMMUTATIVE and inputs[0].id > inputs[1].id:
            inputs = inputs[::-1]
        return known.setdefault((node.prim, inputs), node)

    return sweep(graph, rule)
