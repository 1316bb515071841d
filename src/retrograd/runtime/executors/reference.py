"""The definition of meaning: each node evaluated on its own by the op's NumPy line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.errors import NonFiniteError, RetrogradError
from retrograd.ir import Graph, Node, TupleType, apply, interpret
from retrograd.memory_limit import check_result
from retrograd.ops.assume import check_assumed
from retrograd.ops.control.body import MEANING
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.device_array import host

Observer = Callable[[Node, Any, Sequence[Any]], None]


class ReferenceProgram:
    """Runs a graph node by node. Slow and obvious.

    An observer, if there is one, is shown every node as it is computed, inputs of the graph
    included: the node, its value, and the values it was computed from. With `into_loops` it is
    shown the nodes in the bodies of loops, too, each time they are computed.
    """

    def __init__(
        self, graph: Graph, observer: Observer | None = None, into_loops: bool = False
    ) -> None:
        self.graph = graph
        self.observer = observer
        self._into_loops = into_loops

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        graph, observer = self.graph, self.observer
        sizes = bind(graph.inputs, arrays)
        arrays = list(map(host, arrays))
        if sizes:
            check_assumed(graph.nodes, sizes)

        def value(node: Node, given: Sequence[Any]) -> Any:
            if observer is not None and self._into_loops:
                return observed(node, given, sizes, observer)
            found = value_of(node, given, sizes)
            if observer is not None:
                observer(node, found, given)
            return found

        if observer is not None:
            for x, array in zip(graph.inputs, arrays, strict=True):
                observer(x, array, ())
        return [np.array(y, order="C") for y in interpret(graph, arrays, value)]


def value_of(node: Node, given: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """The value of a node, of one of several results a list."""
    check_result(node, sizes)
    try:
        result = apply(node, given, sizes)
    except NonFiniteError:
        raise  # of an observer, of an operation in the body of a loop
    except RetrogradError as error:
        raise type(error)(f"{error}: {node.describe()}") from None
    return result if isinstance(node.type, TupleType) else np.asarray(result, node.dtype.dtype)


def observed(node: Node, given: Sequence[Any], sizes: Mapping[str, int], observer: Observer) -> Any:
    """The value of a node, which an observer is shown; first, those in its body."""
    inside = MEANING.set(lambda n, values: observed(n, values, {}, observer))
    try:
        with np.errstate(all="ignore"):
            value = value_of(node, given, sizes)
    finally:
        MEANING.reset(inside)
    observer(node, value, given)
    return value
