"""The loop that every pass is an instance of, and the sealing of what a graph may not look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import TypeVar, cast

from retrograd.ir import Graph, Node
from retrograd.ops.leaf import input_node

G = TypeVar("G", bound=Graph)


def sweep(graph: G, rule: Callable[[Node], Node]) -> G:
    """Offer every node, its inputs already replaced, to `rule`, which returns what stands for it.

    The graph itself where nothing changed.
    """

    def step(node: Node, inputs: tuple[Node, ...]) -> Node:
        return rule(node if inputs == node.inputs else node.with_inputs(inputs))

    result = graph.rewrite(step)
    return graph if result.outputs == graph.outputs else result


def sealed(run: Callable[[Graph], Graph]) -> Callable[[G], G]:
    """Make a pass see graph inputs as opaque.

    Any node may be a graph input, where a graph was cut out of a larger one. What such a node was
    computed by must not be looked at: while the pass runs, a fresh input stands in its place.
    """

    def wrapped(graph: G) -> G:
        if all(x.op == "input" for x in graph.inputs):
            return cast(G, run(graph))
        hidden = _replace_inputs(graph, [input_node(x.type, x.name) for x in graph.inputs])
        result = run(hidden)
        return graph if result is hidden else _replace_inputs(cast(G, result), graph.inputs)

    update_wrapper(wrapped, run)
    return wrapped


def _replace_inputs(graph: G, inputs: Sequence[Node]) -> G:
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.body:
        new[node] = node.with_inputs([new[x] for x in node.inputs])
    return type(graph)(inputs, [new[y] for y in graph.outputs], graph.name)
