"""Sizes that only a run knows: of what a loop collects, of a range, of what is not zero.

The operation `sized` gives such a number a name inside of a graph of its own, which all that
follows becomes a part of: so results may depend on arrays of that size, but are none themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import retrograd as rg
from retrograd import pytree
from retrograd.interop.onnx.narrow import Narrow
from retrograd.interop.onnx.values import as_tensor
from retrograd.ir import Dim, Node
from retrograd.ops.control.dynamic_size import Sized
from retrograd.ops.identity import items
from retrograd.ops.leaf import SizeOf
from retrograd.ops.shape import Reshape
from retrograd.tracing.subgraph import TracedSubgraph, graph_of, placed, results


class UnknownSize(Exception):
    """The results of a node have a size that is the value of a scalar of int64. `outputs` has them
    once there is a name for that number, and `what` says which it is.

    Where an array of that size leaves the graph that the node stands in, `outputs` is None: the
    name has to be given around that graph, and `message` says what is wrong if nothing is."""

    def __init__(
        self, what: str, count: Any, outputs: Callable[[Dim], Any] | None, message: str = ""
    ) -> None:
        super().__init__(what)
        self.what = what
        self.count = count
        self.outputs = outputs
        self.message = message


class LeavesItsGraph(Exception):
    """A result has a size that is known inside only; its name."""


# Of values from outside that are sizes inside, negative ones as 0: their names there.
_SIZES: dict[Node, Dim] = {}


def length_of(count: Any, outputs: Callable[[Any], Any], what: str) -> Any:
    """The results that have a size, from the scalar that says it, negative ones as 0."""
    size = size_of(count)
    if size is not None:
        return outputs(size)
    raise UnknownSize(what, count, outputs)


def size_of(value: Any) -> Dim | None:
    """The name of the size that a tensor of one number is the value of, if it has one."""
    node = value.node
    while isinstance(node.prim, Reshape):
        node = node.inputs[0]
    if isinstance(node.prim, SizeOf):
        return node.prim.size if isinstance(node.prim.size, Dim) else None
    return _SIZES.get(node)


def sized(
    unknown: UnknownSize, size: Dim, f: Callable[[], Sequence[Any]], names: Sequence[str]
) -> list[Any]:
    """The values that `f` computes with a name for the size; errors tell their names."""
    root = unknown.count.node
    while isinstance(root.prim, Reshape):
        root = root.inputs[0]
    count = rg.maximum(unknown.count, 0)
    _SIZES[root] = size
    try:
        return _sized(unknown, count, size, f, names)
    finally:
        del _SIZES[root]


def _sized(
    unknown: UnknownSize, count: Any, size: Dim, f: Callable[[], Sequence[Any]],
    names: Sequence[str],
) -> list[Any]:  # fmt: skip
    with placed():
        body = TracedSubgraph(lambda: [*map(as_tensor, f())], [], "sized")
        leaves, structure = pytree.flatten(body.value)
        nodes = [(x.tensor if isinstance(x, Narrow) else x).node for x in leaves]
        _need_no_size(size, body.value, names)
        captured = body.captured(nodes)
        graph = graph_of(body.inputs, nodes, captured, "")
        inputs: list[Node] = [count.node, *captured]
        found = results(items(Sized(graph, str(size))(*inputs)), inputs)
    whole = [
        Narrow(y, x.number) if isinstance(x, Narrow) else y
        for x, y in zip(leaves, found, strict=True)
    ]
    return list(pytree.unflatten(structure, whole))


def _need_no_size(size: Dim, values: Sequence[Any], names: Sequence[str]) -> None:
    for value, name in zip(values, names, strict=True):
        for x in pytree.flatten(value)[0]:
            if any(isinstance(d, Dim) and str(size) in d.names for d in x.shape):
                raise LeavesItsGraph(name)
