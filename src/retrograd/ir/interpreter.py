"""The interpreter: the values of a graph, node by node, by the definitions of its operations.

The reference executor, loops run by their meaning, the certifier of rules and calls back into
Python are this walk, each with its own function for the value of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from retrograd.ir.graph import Graph
from retrograd.ir.node import Node

NO_SIZES: Mapping[str, int] = MappingProxyType({})


def apply(node: Node, given: Sequence[Any], sizes: Mapping[str, int] = NO_SIZES) -> Any:
    """The value of a node, of one of several results a list, by the definition of its operation."""
    if sizes:
        return node.prim.bind(sizes).reference(*given)
    return node.prim.reference(*given)


def interpret(
    graph: Graph, arrays: Sequence[Any], value: Callable[[Node, Sequence[Any]], Any]
) -> list[Any]:
    """The outputs of a graph: `value` is called for each node in order, with the values of its
    inputs. Values are kept until their last use."""
    values: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
    last_use = {x: node for node in graph.body for x in node.inputs}
    keep = set(graph.outputs)
    for node in graph.body:
        values[node] = value(node, [values[x] for x in node.inputs])
        for x in node.inputs:
            if last_use[x] is node and x not in keep:
                values.pop(x, None)
    return [values[y] for y in graph.outputs]
