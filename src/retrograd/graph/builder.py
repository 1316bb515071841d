"""Graphs declared node by node, without a function to trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor, leaf
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import Graph, closed
from retrograd.ir import Node, TensorType, Trait, as_dtype, as_shape, substitute
from retrograd.ops.identity import Alias
from retrograd.ops.leaf import constant, input_node
from retrograd.runtime.backend import Array


class GraphBuilder:
    """Declare a graph without running or tracing a function.

    `ShapeError` and `DTypeError` come at the operation that does not fit, at its line, and
    `ShapeError` for an input whose name is given twice.

    Inputs and parameters are declared with a shape and a dtype, float32 by default.

    >>> import retrograd as rg
    >>> b = rg.GraphBuilder("affine")
    >>> x = b.input("x", (rg.Dim("N"), 3))
    >>> w = b.parameter("w", (3, 2), init=1.0)
    >>> b.output(x @ w, name="y")
    >>> b.graph()([[1.0, 2.0, 3.0]]).tolist()
    [[6.0, 6.0]]
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._inputs: list[Node] = []
        # While nodes are made a parameter stands for any array: what is computed from parameters
        # alone must not become a constant.
        self._values: dict[Node, Array] = {}
        self._outputs: list[Node] = []

    def input(self, name: str, shape: Any = (), dtype: Any = "float32") -> Tensor:
        """A value the caller gives, by name, shape and dtype."""
        self._fresh(name)
        return self._add(input_node(TensorType(as_dtype(dtype), as_shape(shape)), name))

    def parameter(
        self, name: str, shape: Any = (), dtype: Any = "float32", init: Any = 0.0
    ) -> Tensor:
        """An input that has a value of its own, used where the caller gives none.

        `init` is a number, an array of the shape, or a function from the shape to one.
        """
        self._fresh(name)
        size = as_shape(shape)
        if not all(isinstance(d, int) for d in size):
            raise ShapeError(f"parameter {name!r} has values, so its shape {size} must be definite")
        value = as_array(init(size) if callable(init) else init, dtype)
        if value.ndim and value.shape != size:
            raise ShapeError(f"parameter {name!r} of shape {size} with values of {value.shape}")
        node = input_node(TensorType(as_dtype(value.dtype), size), name)
        self._values[node] = np.array(np.broadcast_to(value, size))  # type: ignore[arg-type]
        return self._add(node)

    def _fresh(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ShapeError(f"an input is named by a string, not {name!r}")
        if any(x.name == name for x in self._inputs):
            raise ShapeError(f"there is an input named {name!r} already")

    def _add(self, node: Node) -> Tensor:
        self._inputs.append(node)
        return Tensor(node)

    def output(self, value: Any, name: str = "") -> None:
        """Make a value an output of the graph."""
        node = value.node if isinstance(value, LazyTensor) else constant(as_array(value))
        if name:
            node = (Alias()(node) if Trait.INPUT in node.prim.traits else node).renamed(name)
        self._outputs.append(node)

    def graph(self) -> Graph:
        """The declared graph."""
        if not self._outputs:
            raise ShapeError("the graph has no output yet; call output() first")
        own = {x: leaf(value, x.name) for x, value in self._values.items()}
        inputs = [own.get(x, x) for x in self._inputs]
        return closed(inputs, substitute(self._outputs, own), self.name)
