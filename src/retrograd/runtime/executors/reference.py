"""The definition of meaning: each node evaluated on its own by the op's NumPy line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import Graph, Node, TupleType
from retrograd.memory_limit import check_result
from retrograd.ops.assume import check_assumed
from retrograd.runtime.backend import Array, bind

Watch = Callable[[Node, Array, Sequence[Array]], None]


class ReferenceProgram:
    """Runs a graph node by node. Slow and obvious.

    `watch`, if there is one, is shown every node as it is computed, inputs of the graph included:
    the node, its value, and the values it was computed from.
    """

    def __init__(self, graph: Graph, watch: Watch | None = None) -> None:
        self.graph = graph
        self.watch = watch

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        graph = self.graph
        sizes = bind(graph.inputs, arrays)
        if sizes:
            check_assumed(graph.nodes, sizes)
        values: dict[Node, Array] = dict(zip(graph.inputs, arrays, strict=True))
        last_use = {x: i for i, node in enumerate(graph.nodes) for x in node.inputs}
        keep = set(graph.outputs)
        if self.watch is not None:
            for x, array in zip(graph.inputs, arrays, strict=True):
                self.watch(x, array, ())
        for i, node in enumerate(graph.nodes[len(graph.inputs) :], len(graph.inputs)):
            operands = [values[x] for x in node.inputs]
            check_result(node, sizes)
            try:
                result = node.prim.bind(sizes).reference(*operands)
            except RetrogradError as error:
                raise type(error)(f"{error}: {node.describe()}") from None
            several = isinstance(node.type, TupleType)
            values[node] = result if several else np.asarray(result, node.dtype.dtype)
            if self.watch is not None:
                self.watch(node, values[node], operands)
            for x in node.inputs:
                if last_use[x] == i and x not in keep:
                    values.pop(x, None)
        return [np.array(values[y], order="C") for y in graph.outputs]
