"""The checker: is this a well-formed, well-typed graph?"""

from __future__ import annotations

from retrograd.errors import FormatError
from retrograd.ir.node import Nested, Node, nested


def verify(graph: Nested) -> None:
    """Verify structure and types; raise `FormatError` naming the first node that is wrong.

    Every input of a node comes before it; graph inputs have distinct names; the type of every node
    is what its op infers from the types of its inputs.
    """
    for inner in nested(graph):
        _check(inner)
    _check(graph)


def _check(graph: Nested) -> None:
    seen = set(graph.inputs)
    names: dict[str, Node] = {}
    for node in graph.inputs:
        if node.name and names.setdefault(node.name, node) is not node:
            raise FormatError(f"two inputs are named {node.name!r}")
    for i, node in enumerate(graph.body, len(graph.inputs)):
        if node in seen:
            raise FormatError(f"node {i} occurs twice: {node.describe()}")
        for x in node.inputs:
            if x not in seen:
                raise FormatError(f"node {i} reads a node that comes later: {node.describe()}")
        seen.add(node)
        try:
            check_node(node)
        except FormatError as error:
            raise FormatError(f"node {i}: {error}") from error
    for node in graph.outputs:
        if node not in seen:
            raise FormatError(f"the output {node.describe()} is not among the nodes")


def check_node(node: Node) -> None:
    """Verify that the node's type is what its op infers from the types of its inputs."""
    prim, inputs = node.prim, node.inputs
    if prim.arity is not None and prim.arity != len(inputs):
        raise FormatError(
            f"{prim.name} takes {prim.arity} inputs, not {len(inputs)}: {node.describe()}"
        )
    try:
        inferred = prim.infer(*[x.type for x in inputs])
    except Exception as error:  # attributes of the wrong kind may fail in any way
        raise FormatError(f"ill-typed: {node.describe()}: {error}") from error
    if inferred != node.type:
        raise FormatError(f"the type should be {inferred}: {node.describe()}")
