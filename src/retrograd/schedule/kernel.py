"""A kernel: loop nests that run one after the other and fill one buffer or several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from retrograd.ir import Node
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import GemmNest, LoopNest, MatrixOperand, live, own_fields
from retrograd.schedule.ssa import ScalarBlock, SSAOp, SSAValue


@dataclass(slots=True)
class Kernel:
    """Loop nests that together compute one stored node, or several of one domain."""

    nodes: list[Node]
    nests: list[LoopNest]
    outs: list[Buffer]
    reads: list[Buffer] = field(init=False)  # what the nests read
    again: bool = False  # its results were there before, but were not kept

    def __post_init__(self) -> None:
        found: dict[Buffer, None] = {}
        for nest in self.nests:
            nest.live = None
            nest.live = live(nest)
            for v in nest.live:
                if v.op is SSAOp.LOAD:
                    found[v.attr] = None
            for buffer in nest.operands:
                found[buffer] = None
        self.reads = list(found)


def copied(kernel: Kernel, outs: Collection[Buffer]) -> Kernel:
    """A kernel of its own that computes the same, of the results only these."""
    nests = [_copied(nest, outs) for nest in kernel.nests]
    pairs = [(n, b) for n, b in zip(kernel.nodes, kernel.outs, strict=True) if b in outs]
    return Kernel([n for n, _ in pairs], nests, [b for _, b in pairs])


def _copied(nest: LoopNest, outs: Collection[Buffer]) -> LoopNest:
    body, new = ScalarBlock(), dict[SSAValue, SSAValue]()
    for v in nest.body.values:
        new[v] = SSAValue(v.op, tuple(new[a] for a in v.args), v.dtype, v.attr, v.depth)
        body.values.append(new[v])

    def fresh(item: Any) -> Any:
        if isinstance(item, MatrixOperand):
            return MatrixOperand(*map(fresh, item))
        if isinstance(item, tuple | list):
            return type(item)(fresh(x) for x in item)
        return new[item] if isinstance(item, SSAValue) else item

    return replace(
        nest,
        loops=list(nest.loops),
        body=body,
        stores=[
            replace(s, offset=new[s.offset], value=new[s.value])
            for s in nest.stores
            if s.buffer in outs
        ],
        **{name: fresh(getattr(nest, name)) for name in own_fields(nest)},
    )


def rename(kernel: Kernel, renamed: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers by others in all that a kernel reads and writes."""
    if not any(b in renamed for b in (*kernel.outs, *kernel.reads)):
        return
    kernel.outs = [renamed.get(b, b) for b in kernel.outs]
    kernel.reads = list(dict.fromkeys(renamed.get(b, b) for b in kernel.reads))
    for nest in kernel.nests:
        for v in nest.body.values:
            if v.op is SSAOp.LOAD:
                v.attr = renamed.get(v.attr, v.attr)
        nest.stores = [replace(s, buffer=renamed.get(s.buffer, s.buffer)) for s in nest.stores]
        nest.rename(renamed)


def gemms(kernels: Iterable[Kernel]) -> list[GemmNest]:
    """The matrix products of kernels."""
    return [n for kernel in kernels for n in kernel.nests if isinstance(n, GemmNest)]
