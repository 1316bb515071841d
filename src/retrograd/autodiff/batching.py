"""Batching: the same computation on a stack of samples, in one graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, Provenance, made_by, reachable
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import expand
from retrograd.shared import contained

G = TypeVar("G", bound=Graph)


@contained
def batched(
    outputs: Sequence[Node], samples: Mapping[Node, Node], size: int | Dim
) -> list[tuple[Node, bool]]:
    """The outputs computed for every sample.

    `samples` maps nodes to their stacks, which carry the samples along axis 0. Each output comes
    with whether it is a stack; one that depends on no sample stays as it is.
    """
    for x, stack in samples.items():
        if stack.type != x.type.with_shape((size, *x.shape)):
            raise ShapeError(f"{stack.type} is not a stack of {size} samples of {x.describe()}")
    found: dict[Node, Any] = dict(samples)  # of a node of several results a list
    single: dict[Node, Node] = {}  # no stacks, but computed from other nodes now
    for node in reachable(outputs, samples.keys()):
        if node in found:
            continue
        flags = [x in found for x in node.inputs]
        inputs = [found.get(x) or single.get(x, x) for x in node.inputs]
        if not any(flags[: node.prim.value_inputs]):
            if any(flags) or any(x in single for x in node.inputs):
                single[node] = node.with_inputs(inputs)
            continue
        with made_by(Provenance(node.scope, node.source, node.origin)):
            new = node.prim.batch(size, flags, *inputs)
        if isinstance(new, Node) and new.type.rank == node.type.rank:
            single[node] = new
        else:
            found[node] = new
    return [(found.get(y) or single.get(y, y), y in found) for y in outputs]


def batch(graph: G, stacked: Sequence[bool], size: int | Dim) -> G:
    """`graph` on a stack of `size` samples: inputs marked `stacked`, and every output, get a new
    axis 0."""
    inputs = [
        input_node(x.type.with_shape((size, *x.shape)), x.name) if s else x
        for x, s in zip(graph.inputs, stacked, strict=True)
    ]
    samples = {x: new for x, new, s in zip(graph.inputs, inputs, stacked, strict=True) if s}
    results = [
        y if s else expand(y, (size, *y.shape), (0,))
        for y, s in batched(graph.outputs, samples, size)
    ]
    return type(graph)(inputs, results, graph.name)
