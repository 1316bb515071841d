"""A graph run node by node, with the bits that compiled code gives.

What IEEE 754 rounds correctly, and what moves or counts, NumPy computes to the same bits as the
compiler. What has a choice (functions beyond the square root, the order of sums, half precision,
the sign of a zero that two zeros have) runs as native code, one operation at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.backends.backend import Array, bind
from retrograd.backends.interpret.native import run
from retrograd.errors import RetrogradError
from retrograd.ir import Graph, Node

# Operations whose NumPy meaning gives the bits of compiled code, in every dtype but half precision.
EXACT = frozenset((
    # arithmetic that is rounded correctly, comparisons, choice, bits
    "add", "sub", "mul", "neg", "abs", "sqrt", "zmul", "zzmul", "zdiv",
    "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "select",
    "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
    "div", "reciprocal", "floor", "ceil", "trunc", "round", "cast",
    # movement and counting
    "constant", "iota", "size_of", "expand", "reshape", "permute", "slice", "pad", "flip", "concat",
    "gather", "random_bits", "stop_gradient", "alias", "reduce_any", "reduce_all",
))  # fmt: skip
MOVING = frozenset((
    "constant", "iota", "expand", "reshape", "permute", "slice", "pad", "flip", "concat", "gather",
    "stop_gradient", "alias", "scatter_set",
    # One result is right, and NumPy has it without compiling anything.
    "sort", "argsort",
))  # fmt: skip


class InterpretedProgram:
    """Runs a graph node by node; costs next to nothing to make."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._last: dict[Node, list[Node]] = {}  # what is not needed any more after a node
        last = {x: node for node in graph.body for x in node.inputs}
        keep = {*graph.outputs}
        for x, node in last.items():
            if x not in keep:
                self._last.setdefault(node, []).append(x)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        graph = self.graph
        sizes = bind(graph.inputs, arrays)
        values: dict[Node, Array] = dict(zip(graph.inputs, arrays, strict=True))
        with np.errstate(all="ignore"):
            for node in graph.body:
                values[node] = self._value(node, [values[x] for x in node.inputs], sizes)
                for x in self._last.get(node, ()):
                    del values[x]
        return [np.array(values[y], order="C") for y in graph.outputs]

    def _value(self, node: Node, inputs: list[Array], sizes: dict[str, int]) -> Array:
        half = any(x.dtype.is_half for x in (node, *node.inputs))
        if node.op in MOVING or (node.op in EXACT and not half):
            prim = node.prim.bind(sizes) if sizes else node.prim
            try:
                return np.asarray(prim.reference(*inputs), node.dtype.dtype)
            except RetrogradError as error:
                raise type(error)(f"{error}: {node.describe()}") from None
        return run(node if not sizes else bound(node, sizes), inputs)


def bound(node: Node, sizes: dict[str, int]) -> Node:
    """A node with values in place of the names of sizes; its inputs have types only."""
    inputs = tuple([Node(x.prim, (), x.type.bind(sizes)) for x in node.inputs])
    return Node(node.prim.bind(sizes), inputs, node.type.bind(sizes), node.scope, node.source)
