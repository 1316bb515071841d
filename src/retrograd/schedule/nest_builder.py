"""What the loop nests of a stored node are made with: maps and reductions over a domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from retrograd.ir import Node, Shape, TensorType, product
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.loop_nest import (
    ColumnReduction,
    MapNest,
    ReductionNest,
    RowReduction,
    Store,
    loops_over,
)
from retrograd.schedule.mapping import mapping
from retrograd.schedule.ssa import Index, ScalarBlock, SSAValue


class NestBuilder:
    """Makes the nests of one stored node."""

    def __init__(
        self,
        node: Node,
        stored: Mapping[Node, Buffer],
        scratch: Callable[[TensorType], Buffer],
        light: bool = False,
    ) -> None:
        self.light = light  # see `KernelPlan`
        self.node = node
        self.stored = stored
        self.out = stored[node]
        self.spare: list[Buffer] = []  # memory that only the nests use
        self._scratch = scratch

    def scratch(self, type: TensorType) -> Buffer:
        """Memory for the nests to work in."""
        self.spare.append(self._scratch(type))
        return self.spare[-1]

    # -- one element for one element ----------------------------------------------------------
    def map(
        self,
        domain: Shape,
        value: Callable[[IndexMapper, Index], SSAValue],
        place: Callable[[ScalarBlock, Index], SSAValue] | None = None,
        into: Buffer | None = None,
    ) -> MapNest:
        body = ScalarBlock()
        loops, index = loops_over(body, domain)
        offset = place(body, index) if place else body.offset(index, domain)
        element = value(IndexMapper(body, self.stored), index)
        return mapping(loops, body, [Store(into or self.out, offset, element)])

    def copy_of(self, x: Node) -> MapNest:
        """`x`, written to where the result goes."""
        return self.map(x.shape, lambda r, i: r.read(x, i))

    # -- reductions ---------------------------------------------------------------------------
    def reduction(
        self,
        domain: Shape,
        axes: Sequence[int],
        value: Callable[[IndexMapper, Index], SSAValue],
        op: str = "",
    ) -> ReductionNest:
        """Reduce `value` over some axes of a domain."""
        wide = [i for i, d in enumerate(domain) if d != 1]
        kept = [i for i in wide if i not in axes]
        reduced = [i for i in wide if i in axes]
        row = not kept or bool(reduced and reduced[-1] > kept[-1])
        body = ScalarBlock()
        counters = {axis: body.loop(k) for k, axis in enumerate((*kept, *reduced))}
        index = tuple(counters.get(i, body.size(0)) for i in range(len(domain)))
        place = tuple(index[i] for i in range(len(domain)) if i not in axes)
        offset = body.offset(place, [d for i, d in enumerate(domain) if i not in axes])
        element = value(IndexMapper(body, self.stored), index)
        loops = [domain[i] for i in (*kept, *reduced)]
        return (RowReduction if row else ColumnReduction)(
            loops,
            body,
            [Store(self.out, offset, element)],
            op=op or self.node.op,
            accumulator=accumulator_of(self.node.dtype),
            kept=len(kept),
            vec=len(loops) - 1 if row else len(kept) - 1,
            tile=len(kept) - 1 if row else len(kept) - 2,
            count=body.size(product(domain[i] for i in axes)),
        )
