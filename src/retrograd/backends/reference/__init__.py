"""The definition of meaning: each node evaluated on its own by the op's NumPy line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.backends.backend import Array, bind
from retrograd.errors import RetrogradError
from retrograd.ir import Graph, Node, TupleType


class ReferenceProgram:
    """Runs a graph node by node. Slow and obvious."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        graph = self.graph
        sizes = bind(graph.inputs, arrays)
        values: dict[Node, Array] = dict(zip(graph.inputs, arrays, strict=True))
        last_use = {x: i for i, node in enumerate(graph.nodes) for x in node.inputs}
        keep = set(graph.outputs)
        for i, node in enumerate(graph.nodes[len(graph.inputs) :], len(graph.inputs)):
            try:
                result = node.prim.bind(sizes).reference(*[values[x] for x in node.inputs])
            except RetrogradError as error:
                raise type(error)(f"{error}: {node.describe()}") from None
            several = isinstance(node.type, TupleType)
            values[node] = result if several else np.asarray(result, node.dtype.dtype)
            for x in node.inputs:
                if last_use[x] == i and x not in keep:
                    values.pop(x, None)
        return [np.array(values[y], order="C") for y in graph.outputs]
