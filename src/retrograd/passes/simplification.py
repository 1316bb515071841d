"""Algebraic simplification: identities from the tables of `algebra` and `movement`."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from retrograd.ir import Graph, Node, Provenance, made_by
from retrograd.ops.elementwise import add
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Permute
from retrograd.passes.algebra import ALGEBRA, Identity, below_expand
from retrograd.passes.movement import MOVEMENT, permute_of_sum
from retrograd.passes.rewrite import NodeRule, RuleSet, rewrite, sealed

G = TypeVar("G", bound=Graph)

IDENTITIES: dict[str, list[Identity]] = {**ALGEBRA, **MOVEMENT}
NOT_ALGEBRA: dict[str, list[Identity]] = {**{op: [below_expand] for op in ALGEBRA}, **MOVEMENT}
STEPS = 16  # identities applied to one node in a row; nearly always one or two


def simplify(graph: G) -> G:
    """Apply the identities to every node, its inputs first, until none fits.

    What an identity makes takes over scope, source line, origin and name of the node it replaces.
    `stop_gradient` stays, as the graph may be differentiated yet.
    """
    return sealed(graph, lambda g: rewrite(g, SIMPLIFY))


def simplifying(graph: Graph) -> NodeRule:
    parts = (
        x for y in graph.body for x in y.inputs if x.prim is add or isinstance(x.prim, DotGeneral)
    )
    uses = Counter(parts)  # of products, and of sums, as these may be sums of products
    uses.update(graph.outputs)
    # The identities of `algebra` hold to the bit for real numbers, with what they say of zeros.
    real = not any(type.dtype.is_complex for type in {node.type for node in graph.nodes})

    def first(node: Node) -> Node | None:
        """What the first identity that fits makes of a node."""
        inputs = node.inputs
        complex_ = not real and any(x.dtype.is_complex for x in (node, *inputs))
        for identity in (NOT_ALGEBRA if complex_ else IDENTITIES).get(node.prim.name, ()):
            better = identity(node, *inputs)
            if better is not None:
                return better
        if isinstance(node.prim, Permute) and uses[inputs[0]] == 1:
            return permute_of_sum(node, inputs[0], lambda x: uses[x] == 1)
        return None

    def rule(node: Node) -> Node:
        if node.prim.name not in IDENTITIES or first(node) is None:
            return node
        # Asked again where nodes get their provenance: it costs more than most answers, which are
        # that there is nothing to do.
        with made_by(Provenance(node.scope, node.source, node.origin)):
            for _ in range(STEPS):
                better = first(node)
                if better is None:
                    break
                if node.name and not better.name and better.id > node.id:
                    better = better.renamed(node.name)
                node = better
        return node

    return rule


SIMPLIFY = RuleSet.simplifying("simplify", simplifying)
