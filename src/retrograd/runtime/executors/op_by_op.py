"""A graph run node by node, with the bits that compiled code gives.

What IEEE 754 rounds correctly, and what moves or counts, NumPy computes to the same bits as the
compiler. What has a choice (functions beyond the square root, the order of sums, half precision,
the sign of a zero that two zeros have) is done as compiled code does it, one operation at a time:
in NumPy, where that is little work, and else as native code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import IndexRangeError, LinAlgError, RetrogradError
from retrograd.ir import Graph, Node, Trait, evaluate
from retrograd.memory_limit import check_memory
from retrograd.ops.assume import check_assumed
from retrograd.ops.control.dag_scan import DagScan
from retrograd.ops.elementwise import Elementwise
from retrograd.passes.after_autodiff import settled
from retrograd.passes.lowering.legalize import CALLED, in_parts
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.denormals import may_flush
from retrograd.runtime.executors.numpy_mirror.looping import can_step, stepped
from retrograd.runtime.executors.numpy_mirror.ordered import SELECTING, is_whole
from retrograd.runtime.executors.op_kernels import has_code, run, run_region


class OpByOpExecutor:
    """Runs a graph node by node; costs next to nothing to make."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph = settled(graph)
        if not graph.dim_names:  # how windows are gone through depends on sizes
            graph = in_parts(graph)
        self._body = graph
        self._fitting: dict[str, int] | None = None  # sizes for which there was memory
        last = {x: node for node in graph.body for x in node.inputs}
        for y in graph.outputs:
            last.pop(y, None)
        ends: dict[Node, list[Node]] = {}  # what is not needed any more after a node
        for x, node in last.items():
            ends.setdefault(node, []).append(x)
        self._steps = [(n, in_numpy(n), n.inputs, ends.get(n, ())) for n in graph.body]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        graph = self._body
        sizes = bind(graph.inputs, arrays)
        if sizes != self._fitting:
            check_assumed(graph.nodes, sizes)
            self._check_memory(sizes)
        values: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
        with np.errstate(all="ignore"):
            for node, f, inputs, ends in self._steps:
                given = [values[x] for x in inputs]
                if Trait.CONTROL in node.prim.traits and not isinstance(node.prim, DagScan):
                    values[node] = looped(bound(node, sizes) if sizes else node, given)
                elif f is None or (node.op in SELECTING and may_flush()):
                    values[node] = natively(bound(node, sizes) if sizes else node, given)
                else:
                    values[node] = computed(node, f, given, sizes)
                for x in ends:
                    del values[x]
        return [np.array(values[y], order="C") for y in graph.outputs]

    def _check_memory(self, sizes: dict[str, int]) -> None:
        """`MemoryLimitError` if the values that are needed at one time do not fit, at least; those
        that may be views count as nothing."""
        bytes_of = {
            node: evaluate(node.type.size, sizes) * node.dtype.itemsize
            for node in self._body.body
            if Trait.DETERMINED not in node.prim.traits
        }
        held = needed = 0
        for node, _, _, ends in self._steps:
            held += bytes_of.get(node, 0)
            needed = max(needed, held)
            held -= sum([bytes_of.get(x, 0) for x in ends])
        check_memory(needed, lambda: [(n, x.describe()) for x, n in bytes_of.items()], sizes)
        self._fitting = sizes


def looped(node: Node, given: list[Array]) -> list[Array]:
    if not has_code(node, "") and can_step(node):
        return stepped(node, OpByOpExecutor(node.attrs["body"]), given)
    return run_region(node, given)


def in_numpy(node: Node) -> Callable[..., Any] | None:
    """What computes a node in NumPy to the bits of compiled code, if that is so."""
    if node.op in CALLED:
        return node.prim.reference
    half = any(x.dtype.is_half for x in (node, *node.inputs))
    traits = node.prim.traits
    exact = Trait.ROUNDED_ONCE in traits or node.op in SELECTING or is_whole(node)
    if Trait.DETERMINED not in traits and (half or not exact):
        return None
    prim = node.prim
    return prim.formula if isinstance(prim, Elementwise) and not half else prim.reference


def natively(node: Node, given: list[Array]) -> Array:
    try:
        return run(node, given)
    except (LinAlgError, IndexRangeError) as error:
        # It names the operation that was compiled, not this node.
        raise type(error)(f"{error.reason}: {node.describe()}", error.reason) from None


def computed(node: Node, f: Callable[..., Any], given: list[Array], sizes: dict[str, int]) -> Array:
    try:
        y = node.prim.bind(sizes).reference(*given) if sizes else f(*given)
    except LinAlgError as error:
        raise LinAlgError(f"{error.reason}: {node.describe()}", error.reason) from None
    except RetrogradError as error:
        raise type(error)(f"{error}: {node.describe()}") from None
    dtype = node.type.dtype.dtype
    return y if type(y) is np.ndarray and y.dtype is dtype else np.asarray(y, dtype)


def bound(node: Node, sizes: dict[str, int]) -> Node:
    """A node with values in place of the names of sizes; its inputs have types only."""
    inputs = tuple([Node(x.prim, (), x.type.bind(sizes)) for x in node.inputs])
    return Node(node.prim.bind(sizes), inputs, node.type.bind(sizes), node.scope, node.source)
