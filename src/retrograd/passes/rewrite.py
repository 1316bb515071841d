"""The loop that every pass is an instance of.

A pass is made of a *rule*, a function from a node (its inputs already replaced) to the node that
stands for it, itself where there is nothing to do. One walk offers every node to the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from retrograd.ir import Graph, Node
from retrograd.ops.leaf import input_node

G = TypeVar("G", bound=Graph)
Rule = Callable[[Node], Node]
MakeRule = Callable[[Graph], Rule]  # a rule may remember what it saw of one graph


def sweep(graph: G, make: MakeRule) -> G:
    """The graph with every node replaced by what the rule gives; itself where nothing changed."""
    return sealed(graph, lambda g: _walk(g, make(g)))


def _walk(graph: Graph, rule: Rule) -> Graph:
    def step(node: Node, inputs: tuple[Node, ...]) -> Node:
        return rule(node if inputs == node.inputs else node.with_inputs(inputs))

    result = graph.rewrite(step)
    return graph if result.outputs == graph.outputs else result


def sealed(graph: G, run: Callable[[Graph], Graph]) -> G:
    """`run(graph)`, with graph inputs that cannot be looked into.

    Any node may be a graph input, where a graph was cut out of a larger one. What such a node was
    computed by is no business of a pass: while it runs, a fresh input stands in its place.
    """
    if all(x.op == "input" for x in graph.inputs):
        return cast(G, run(graph))
    hidden = _replace_inputs(graph, [input_node(x.type, x.name) for x in graph.inputs])
    result = cast(G, run(hidden))
    return graph if result is hidden else _replace_inputs(result, graph.inputs)


def _replace_inputs(graph: G, inputs: Sequence[Node]) -> G:
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.body:
        new[node] = node.with_inputs([new[x] for x in node.inputs])
    return type(graph)(inputs, [new[y] for y in graph.outputs], graph.name)
