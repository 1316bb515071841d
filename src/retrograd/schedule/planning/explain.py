"""Kernels as text: what was fused and why, operations and bytes, and the least time they take.

A line names the results, the loops, and the ops computed in them: those that are not results are
fused. "At least" is what arithmetic or memory alone would take, whichever is more, at the rates of
`cost_model.py`; "stored" says why results are kept in memory rather than computed where they are
read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from retrograd.ir import Dim, Node, evaluate
from retrograd.passes.lowering.libcall import LibCall
from retrograd.schedule.cost_model import is_product, known, operations, traffic
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import live
from retrograd.schedule.ssa import INDEXING
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.tuning import TUNING

SUBNORMAL = (
    "Operations with subnormal numbers take up to a hundred times longer; "
    "`with rg.flush_subnormals():` has them count as zero."
)


def describe_tile_group(group: TileGroup) -> str:
    """What a tile group is, in words."""
    what = f"-- {len(group.kernels)} kernels"
    if group.is_region:
        return "-- a loop whose steps threads share; of a walk through a graph, wide levels"
    if group.rows == 0:
        return what + " that follow one another, on one thread"
    cut = f"in {group.tiles} blocks" if group.tiles else "in a block for each thread"
    if not group.tiles and group.max_tile_rows:
        cut = f"in blocks of about {group.tile_rows}"
    what += f", row by row: {group.rows} rows {cut}, shared by the threads"
    if group.element_rows and group.elements > 1:
        what += f", none of them beyond the {group.element_rows} rows of one element"
    if group.summing:
        what += f"; {len(group.summing)} kernels add up over the rows of an element, on one thread"
    if group.local:
        what += f"; {len(group.local)} results exist only as a block in the cache"
    return what


class KernelFacts(NamedTuple):
    """What a kernel computes and what that takes. Of unknown sizes, counts are `Dim`s."""

    ops: dict[str, int]
    operations: int | Dim
    bytes: int | Dim
    least: float  # nanoseconds

    @property
    def fused(self) -> str:
        return " ".join(f"{op}*{n}" if n > 1 else op for op, n in self.ops.items())

    @property
    def definite(self) -> bool:
        return not isinstance(self.operations, Dim) and not isinstance(self.bytes, Dim)


def facts(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> KernelFacts:
    """The facts on a kernel."""
    ops: dict[str, int] = {}
    work: int | Dim = 0
    least = 0.0
    for n in kernel.nests:
        for v in live(n):
            if v.op not in INDEXING:
                ops[v.op] = ops.get(v.op, 0) + 1
        own = operations(n)
        least += known(own, sizes) * (
            TUNING.multiply_add_ns / 2 if is_product(n) else TUNING.cheap_op_ns
        )
        work = work + own
    moved = traffic(kernel)
    least = max(least, known(moved, sizes) * TUNING.byte_ns)
    if sizes is not None:
        work, moved = evaluate(work, sizes), evaluate(moved, sizes)
    return KernelFacts(ops, work, moved, least)


def describe(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> str:
    """One line on a kernel."""
    nest, found = kernel.nests[-1], facts(kernel, sizes)
    inside = f" ({found.fused})" if found.ops else ""
    time = f", at least {found.least / 1e3:.2f} us" if found.definite else ""
    counts = f"{found.bytes} bytes, {found.operations} operations"
    domain = " x ".join(map(str, nest.loops)) or "1"
    return f"{nest.kind:7} {results(kernel)} [{domain}]{inside}; {counts}{time}"


def results(kernel: Kernel) -> str:
    """What a kernel stores, in words."""
    return ", ".join(f"{n.name or f'%{n.id}'}: {n.type} = {_op(n)}" for n in kernel.nodes)


def _op(node: Node) -> str:
    """The op of a node; of a call, the routine."""
    return node.prim.routine if isinstance(node.prim, LibCall) else node.op
