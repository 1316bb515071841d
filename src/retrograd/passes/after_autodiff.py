"""What only differentiation reads is left out, and what is one operation for the sake of those who
interpret is written out for those who compile."""

from __future__ import annotations

from typing import TypeVar

from retrograd.ir import Graph, Node, Provenance, made_by
from retrograd.ops.control.custom import Custom
from retrograd.ops.control.draw import Draw
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.linalg.matrix import Given
from retrograd.ops.random.implicit_gradients import IMPLICIT
from retrograd.passes.rewrite import Rule, RuleSet, rewrite, with_new_inputs

G = TypeVar("G", bound=Graph)


def settled(graph: G) -> G:
    """The graph with the results of `custom`, samples that have implicit derivatives, functions of
    matrices that are computed elsewhere, and what is constant or has another identity to
    differentiation, replaced by what they are; to be run, not to be differentiated any more."""
    return rewrite(graph, SETTLE)


def written(graph: G) -> G:
    """The graph with random samples as the operations that they are computed by."""
    return rewrite(graph, WRITE_SAMPLES)


def _settling(graph: Graph) -> Rule | None:
    if not any(isinstance(node.prim, Custom) or _passes_on(node) for node in graph.nodes):
        return None

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.prim, Item) and isinstance(inputs[0].prim, Custom):
            index: int = inputs[0].attrs["count"] + node.attrs["index"]
            return inputs[0].inputs[index]
        return inputs[-1] if _passes_on(node) else with_new_inputs(node, inputs)

    return rule


def _passes_on(node: Node) -> bool:
    """Whether the value of a node is that of its last input."""
    return node.op in IMPLICIT or isinstance(node.prim, Given | StopGradient | Alias)


def _writing(graph: Graph) -> Rule | None:
    if not any(isinstance(node.prim, Draw) for node in graph.nodes):
        return None

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.prim, Draw):
            with made_by(Provenance(node.scope, node.source, node.origin)):
                return node.prim.written(*inputs)
        return with_new_inputs(node, inputs)

    return rule


SETTLE = RuleSet("settle", _settling)
WRITE_SAMPLES = RuleSet("random", _writing)
