"""Calls of routines: work that is done by a function instead of generated loops.

A routine is LAPACK's, a helper written by the emitter, or, as the last resort, an op's reference in
Python. `LibCall` stands for it in a plan. A graph never holds one: rules of `legalize.py` put it in
the place of an op, with what prepares its operands and what reads its result as ordinary nodes
around it, which are fused as always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.ir import Dim, Graph, Node, Op, Shape, TensorType, float64, int64, product
from retrograd.ops.leaf import input_node
from retrograd.passes.lowering.complex_linalg import PairedFft
from retrograd.passes.lowering.contraction import Materialize
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import LoopNest, loops_over, mapping
from retrograd.schedule.loop_nest import Store as Write
from retrograd.schedule.ssa import ScalarBlock, SSAValue

Size = int | Dim
PYTHON = "python:"  # the name of a routine that is a reference: this, and the graph of one op
PAIRED = "paired:"  # what the names of routines for complex numbers begin with
BY_REFERENCE = 1_000_000  # multiply-adds in whose time Python is called


class LibCall(Op):
    """A routine applied to each item of a batch: `result[b] = routine(operands[b], *sizes)`.

    The first `batch` axes of the result and of every operand are the batch. Operands lie in memory,
    contiguous, and what is only read by this call the routine may overwrite (`owned`). With
    `fills`, the first operand has the type of the result, and is written there before the routine
    is called, which then works in place.

    `work` is how many 8-byte words of workspace an item takes; items that one thread does one after
    the other share theirs. `cost` is how many multiply-adds an item takes, roughly: whether threads
    share the batch depends on it. A routine that `refuses` returns 0, or what is wrong: the run
    ends with the error that `target`, the node as the user knows it, makes of it.
    """

    name = "call"

    def __init__(
        self, routine: str, result: TensorType, sizes: Sequence[Size], target: Node, *,
        batch: int = 0, fills: bool = True, work: Size = 0, cost: Size = 0, refuses: bool = False,
    ) -> None:  # fmt: skip
        self.routine = routine
        self.result = result
        self.sizes = tuple(sizes)
        self.target = target
        self.batch_rank = batch
        self.fills = fills
        self.work = work
        self.cost = cost
        self.refuses = refuses

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
    given = [input_node(x.type) for x in inputs]
    end = prim.on_parts(*given) if isinstance(prim, PairedFft) else prim(*given)
    graph = Graph(given, [end])
    sizes = [Dim(name) for name in graph.dim_names]
    call = LibCall(
        f"{PYTHON}{graph}", node.type, sizes, node, fills=False, cost=BY_REFERENCE, refuses=True
    )
    return call(*[in_memory(x) for x in inputs])


def owned(x: Node) -> Node:
    """A copy of a value for one call, which may overwrite it."""
    return Materialize()(x)


def in_memory(x: Node) -> Node:
    """A value that a call reads: constants that are no arrays become some."""
    return owned(x) if x.op in ("constant", "iota", "size_of") else x


def call_kernels(node: Node, stored: Mapping[Node, Buffer], new: Callable[[Node], Buffer],
                 fill: Callable[[Node], LoopNest]) -> list[Kernel]:  # fmt: skip
    """The kernel of a call, and the one that checks it. `new` makes a temporary for a node, `fill`
    the nest that writes a node where the call's result goes."""
    prim = node.prim
    assert isinstance(prim, LibCall)
    batch = node.shape[: prim.batch_rank]
    items = product(batch)
    operands = node.inputs[1:] if prim.fills else node.inputs
    asides = []
    if prim.work != 0:
        asides.append(SideOutput(TensorType(float64, (items, prim.work)))(node))
    if prim.refuses:
        asides.append(SideOutput(TensorType(int64, (items,)))(node))
    out, extra = stored[node], [new(a) for a in asides]
    body = ScalarBlock()
    loops: list[Size] = [] if items == 1 else [items]
    nest = LoopNest("call", loops, body)

    def place(shape: Shape) -> SSAValue:
        each = product(shape[prim.batch_rank :])
        return body.mul(body.loop(0), body.size(each)) if loops else body.size(0)

    nest.info = {
        "routine": prim.routine,
        "buffers": [*(stored[x] for x in operands), out, *extra],
        "given": len(operands),
        "starts": (*(place(x.shape) for x in operands), place(node.shape)),
        "sizes": tuple(body.size(s) for s in prim.sizes),
        "work": body.size(prim.work),
        "item": body.loop(0) if loops else body.size(0),
        "cost": prim.cost,
        "refuses": prim.refuses,
    }
    first = [fill(node.inputs[0])] if prim.fills else []
    kernels = [Kernel([node], [*first, nest], [out, *extra])]
    if prim.refuses:
        kernels.append(_check(CheckCall(prim, batch), asides[-1], extra[-1]))
    return kernels


def _check(check: CheckCall, codes: Node, buffer: Buffer) -> Kernel:
    body = ScalarBlock()
    loops, index = loops_over(body, codes.shape)
    place = body.offset(index, codes.shape)
    code = body.make("load", (place,), int64, buffer)
    nest = mapping(loops, body, [Write(buffer, place, code)])
    nest.kind, nest.vec, nest.info = "check", -1, {"size": body.size(1)}
    return Kernel([check(codes)], [nest], [buffer])
