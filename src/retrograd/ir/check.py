"""The checker: is this a well-formed, well-typed graph?"""

from __future__ import annotations

from retrograd.errors import FormatError, RetrogradError
from retrograd.ir.graph import Graph
from retrograd.ir.node import Node


def check(graph: Graph) -> None:
    """Verify structure and types; raise `FormatError` naming the first node that is wrong.

    Every input of a node comes before it; graph inputs have distinct names; the type of every node is what its op infers from the types of its inputs.
    """
    seen = set(graph.inputs)
    names: dict[str, Node] = {}
    for i, node in enumerate(graph.nodes[len(graph.inputs) :], len(graph.inputs)):
        if node in seen:
            raise FormatError(f"node {i} occurs twice: {node.describe()}")
        for x in node.inputs:
            if x not in seen:
                raise FormatError(f"node {i} reads a node that comes later: {node.describe()}")
        seen.add(node)
        try:
            inferred = node.prim.infer(*[x.type for x in node.inputs])
        except RetrogradError as error:
            raise FormatError(f"node {i} is ill-typed: {node.describe()}: {error}") from error
        if inferred != node.type:
            raise FormatError(f"node {i} should have the type {inferred}: {node.describe()}")
    for node in graph.inputs:
        if node.name and names.setdefault(node.name, node) is not node:
            raise FormatError(f"two inputs are named {node.name!r}")
    for node in graph.outputs:
        if node not in seen:
            raise FormatError(f"the output {node.describe()} is not among the nodes")
