"""What devices have no kernels for: routines of LAPACK, functions of Python, walks through graphs.
These are run on the host, with the operands copied there and the result copied back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.ir import Dim, Graph, Node, bool_, spec
from retrograd.nvptx.emit.launch import Sizes
from retrograd.ops.control import DagScan
from retrograd.ops.leaf import input_node
from retrograd.passes.lowering.libcall import LibCall
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import RegionNest
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import CallNest


def host_call(kernel: Kernel) -> HostCall | None:
    """What is called on the host at the end of a kernel, if that is so."""
    node, nest = kernel.nodes[0], kernel.nests[-1]
    if isinstance(nest, CallNest):
        assert isinstance(node.prim, LibCall)
        result = nest.buffers[nest.given]
        # What the result is set to at first is in its place already.
        start = [result] if node.prim.initialises_output else []
        return HostCall(node, [*start, *nest.buffers[: nest.given]], result)
    if isinstance(nest, RegionNest) and isinstance(node.prim, DagScan):
        assert nest.region.walk is not None
        return HostCall(node, nest.buffers, nest.region.walk.result)
    return None


class HostCall:
    """A node as a program of the host. What it refuses is an error as it is there."""

    def __init__(self, node: Node, operands: Sequence[Buffer], result: Buffer) -> None:
        self.inputs = [input_node(x.type) for x in node.inputs]
        self.output = node.with_inputs(self.inputs)
        self.operands, self.result = operands, result
        self._program: Executable | None = None

    def __call__(self, operands: Sequence[Array], sizes: Sizes) -> Array:
        """The result for operands that were fetched, at these sizes."""
        if self._program is None:
            # Inputs that tell all sizes, those that occur nowhere but in attributes, too.
            named = [input_node(spec((Dim(name),), bool_)) for name in sizes]
            self._program = Executable(Graph([*self.inputs, *named], [self.output]))
        telling = [np.empty(n, np.bool_) for n in sizes.values()]
        return self._program([*operands, *telling])[0]
