"""Kernels of calls of routines, and of the checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from retrograd.ir import Node, Shape, TensorType, float64, int64, product
from retrograd.passes.lowering.libcall import CheckCall, LibCall, SideOutput, Size
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import CallNest, CheckNest, LoopNest, Store, loops_over
from retrograd.schedule.mapping import mapping
from retrograd.schedule.ssa import ScalarBlock, SSAOp, SSAValue


def call_kernels(node: Node, stored: Mapping[Node, Buffer], new: Callable[[Node], Buffer],
                 fill: Callable[[Node], LoopNest]) -> list[Kernel]:  # fmt: skip
    """The kernel of a call, and the one that checks it. `new` makes a temporary for a node, `fill`
    the nest that writes a node where the call's result goes."""
    prim = node.prim
    assert isinstance(prim, LibCall)
    batch = node.shape[: prim.batch_rank]
    items = product(batch)
    operands = node.inputs[1:] if prim.initialises_output else node.inputs
    asides = []
    if prim.work != 0:
        asides.append(SideOutput(TensorType(float64, (items, prim.work)))(node))
    if prim.can_fail:
        asides.append(SideOutput(TensorType(int64, (items,)))(node))
    out, extra = stored[node], [new(a) for a in asides]
    body = ScalarBlock()
    loops: list[Size] = [] if items == 1 else [items]

    def place(shape: Shape) -> SSAValue:
        each = product(shape[prim.batch_rank :])
        return body.mul(body.loop(0), body.size(each)) if loops else body.size(0)

    own = len(operands) - prim.shared
    nest = CallNest(
        loops,
        body,
        routine=prim.routine,
        buffers=[*(stored[x] for x in operands), out, *extra],
        given=len(operands),
        starts=(
            *(place(x.shape) for x in operands[:own]),
            *(body.size(0) for _ in operands[own:]),
            place(node.shape),
        ),
        sizes=tuple(body.size(s) for s in prim.sizes),
        work=body.size(prim.work),
        item=body.loop(0) if loops else body.size(0),
        cost=prim.cost,
        can_fail=prim.can_fail,
        shared=prim.shared,
    )
    first = [fill(node.inputs[0])] if prim.initialises_output else []
    kernels = [Kernel([node], [*first, nest], [out, *extra])]
    if prim.can_fail:
        kernels.append(_check(CheckCall(prim, batch), asides[-1], extra[-1]))
    return kernels


def _check(check: CheckCall, codes: Node, buffer: Buffer) -> Kernel:
    body = ScalarBlock()
    loops, index = loops_over(body, codes.shape)
    place = body.offset(index, codes.shape)
    code = body.make(SSAOp.LOAD, (place,), int64, buffer)
    nest = mapping(loops, body, [Store(buffer, place, code)])
    size = nest.body.size(1)
    check_nest = CheckNest(nest.loops, nest.body, nest.stores, kept=nest.kept, size=size)
    return Kernel([check(codes)], [check_nest], [buffer])
