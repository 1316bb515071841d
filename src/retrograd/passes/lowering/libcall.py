"""Calls of routines: work that is done by a function instead of generated loops.

A routine is LAPACK's, a helper written by the emitter, or, as the last resort, an op's reference in
Python. `LibCall` stands for it in a plan. A graph never holds one: rules of `legalize.py` put it in
the place of an op, with what prepares its operands and what reads its result as ordinary nodes
around it, which are fused as always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Dim, Graph, Node, Op, Shape, TensorType, Trait
from retrograd.ops.control import PureCallback
from retrograd.ops.leaf import Constant, Iota, SizeOf, input_node
from retrograd.passes.lowering.complex_linalg import PairedFft
from retrograd.passes.lowering.contraction import Materialize

Size = int | Dim
PYTHON = "python:"  # the name of a routine that is a reference: this, and the graph of one op
PAIRED = "paired:"  # what the names of routines for complex numbers begin with
BY_REFERENCE = 1_000_000  # multiply-adds in whose time Python is called


class LibCall(Op):
    """A routine applied to each item of a batch: `result[b] = routine(operands[b], *sizes)`.

    The first `batch` axes of the result and of every operand are the batch. Operands lie in memory,
    contiguous, and what is only read by this call the routine may overwrite (`owned`). With
    `initialises_output`, the first operand has the type of the result, and is written there before
    the routine is called, which then works in place. The last `shared` operands have no axes of the
    batch: each item reads the whole of them.

    `work` is how many 8-byte words of workspace an item takes; items that one thread does one after
    the other share theirs. `cost` is how many multiply-adds an item takes, roughly: whether threads
    share the batch depends on it. A routine that `can_fail` returns 0, or what is wrong: the run
    ends with the error that `target`, the node as the user knows it, makes of it.
    """

    name = "call"
    traits = frozenset({Trait.READS_MANY})

    def __init__(
        self,
        routine: str,
        result: TensorType,
        sizes: Sequence[Size],
        target: Node,
        *,
        batch: int = 0,
        initialises_output: bool = True,
        work: Size = 0,
        cost: Size = 0,
        can_fail: bool = False,
        shared: int = 0,
    ) -> None:
        self.routine = self.remark = routine
        self.result = result
        self.sizes = tuple(sizes)
        self.target = target
        self.batch_rank = batch
        self.initialises_output = initialises_output
        self.work = work
        self.cost = cost
        self.can_fail = can_fail
        self.shared = shared

    def infer(self, *types: TensorType) -> TensorType:
        return self.result


class SideOutput(Op):
    """What a call has beside its result: workspace, or what each item was refused for."""

    name = "call_aside"
    arity = 1

    def __init__(self, type: TensorType) -> None:
        self.type = type

    def infer(self, *types: TensorType) -> TensorType:
        return self.type


class CheckCall(Op):
    """That a call refused nothing. It reads, for each item, 0 or what the routine returned with the
    item's number, counted from 1, times 2**32."""

    name = "check_call"
    arity = 1

    def __init__(self, call: LibCall, batch: Shape) -> None:
        self.routine = call.routine
        self.target = call.target
        self.batch_shape = batch

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]


def by_reference(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """A node as a call of its op's reference, in Python: a rule for ops that are rare, or whose
    work dwarfs the call."""
    prim: Op = node.prim
    if isinstance(prim, PureCallback):
        prim.need()
    given = [input_node(x.type) for x in inputs]
    end = prim.on_parts(*given) if isinstance(prim, PairedFft) else prim(*given)
    graph = Graph(given, [end])
    sizes = [Dim(name) for name in graph.dim_names]
    call = LibCall(
        f"{PYTHON}{graph}",
        node.type,
        sizes,
        node,
        initialises_output=False,
        cost=BY_REFERENCE,
        can_fail=True,
    )
    return call(*[in_memory(x) for x in inputs])


def owned(x: Node) -> Node:
    """A copy of a value for one call, which may overwrite it."""
    return Materialize()(x)


def in_memory(x: Node) -> Node:
    """A value that a call reads: constants that are no arrays become some."""
    return owned(x) if isinstance(x.prim, Constant | Iota | SizeOf) else x
