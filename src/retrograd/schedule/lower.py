"""From a stored node to the loop nests that compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.ir import Dim, Node, Shape, TensorType, entering, float64, int64, product, uint8
from retrograd.ops.index import ScatterAdd
from retrograd.ops.matmul import DotGeneral, sums_along
from retrograd.ops.numerics.compensated_sum import BLOCK, is_wide
from retrograd.ops.numerics.summation import PRODUCTS, accumulator_of
from retrograd.ops.reduce import ArgMax, ArgMin, Reduction
from retrograd.ops.scan import CumArgMax, CumArgMin, CumMax, CumMin, CumProd, CumSum, LinearScan
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.ops.shape import Concat, SliceSet
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.passes.lowering.contraction import Materialize
from retrograd.passes.lowering.legalize import CheckIndex
from retrograd.passes.lowering.libcall import LibCall
from retrograd.passes.lowering.strided_views import Operand, as_product, wants_routine
from retrograd.schedule import lower_scan, lower_sort
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.index_maps import IndexMapper, reads, store
from retrograd.schedule.loop_nest import (
    CONTRACTION,
    ArgReduction,
    BlockedScatter,
    CheckNest,
    GemmNest,
    LoopNest,
    MatrixOperand,
    ScatterNest,
    ScatterTotals,
    Store,
    loops_over,
)
from retrograd.schedule.nest_builder import NestBuilder
from retrograd.schedule.ssa import Index, ScalarBlock, SSAOp, SSAValue
from retrograd.tuning import TUNING


class NodeLowering(NestBuilder):
    """Makes the nests of a stored node by its op."""

    blocks_sums = True  # a scatter that adds many floats keeps the totals of blocks itself

    def nests(self) -> list[LoopNest]:
        node = self.node
        special = SPECIAL.get(node.op)
        if special is not None:
            return special(self)
        if isinstance(node.prim, Reduction):
            (x,) = node.inputs
            return [self.reduction(x.shape, node.attrs["axes"], lambda r, i: r.read(x, i))]
        if isinstance(node.prim, Concat) and len(node.inputs) > TUNING.concat_parts:
            return self.parts()
        return [self.map(node.shape, lambda r, i: r.compute(node, i))]

    def parts(self) -> list[LoopNest]:
        """A concat copied part by part."""
        axis = self.node.attrs["axis"]
        found: list[LoopNest] = []
        start: int | Dim = 0
        for x in self.node.inputs:

            def place(b: ScalarBlock, i: Index, start: int | Dim = start) -> SSAValue:
                moved = b.add(i[axis], b.size(start))
                return b.offset((*i[:axis], moved, *i[axis + 1 :]), self.node.shape)

            def value(r: IndexMapper, i: Index, x: Node = x) -> SSAValue:
                return r.read(x, i)

            found.append(self.map(x.shape, value, place))
            start = start + x.shape[axis]
        return found

    def check(self) -> list[LoopNest]:
        (x,) = self.node.inputs
        nest = self.map(x.shape, lambda r, i: r.read(x, i))
        prim = self.node.prim
        assert isinstance(prim, CheckIndex)
        size = nest.body.size(prim.size)
        return [
            CheckNest(nest.loops, nest.body, nest.stores, kept=nest.kept, vec=nest.vec, size=size)
        ]

    def extremum(self) -> list[LoopNest]:
        (x,), axis = self.node.inputs, self.node.attrs["axis"]
        body = ScalarBlock()
        kept = [i for i in range(x.type.rank) if i != axis]
        counters = {i: body.loop(k) for k, i in enumerate((*kept, axis))}
        index = tuple(counters[i] for i in range(x.type.rank))
        offset = body.offset(tuple(counters[i] for i in kept), self.node.shape)
        element = IndexMapper(body, self.stored).read(x, index)
        loops = [x.shape[i] for i in (*kept, axis)]
        nest = ArgReduction(loops, body, [Store(self.out, offset, element)], op=self.node.op)
        nest.kept = len(kept)
        nest.vec = len(kept) - 1 if axis != x.type.rank - 1 else -1
        return [nest]

    # -- scatter and contraction --------------------------------------------------------------
    def scatter(self) -> list[LoopNest]:
        x, position, updates = self.node.inputs
        axis, shared = self.node.attrs["axis"], self.node.attrs["shared"]
        end = axis + position.type.rank - shared
        sums = self.blocks_sums and isinstance(self.node.prim, ScatterAdd) and x.dtype.is_float
        if sums and is_wide(x, axis) and not _at_most(1, updates.shape[axis:end]):
            total = self.scratch(x.type.with_dtype(float64))
            start = self.map(
                x.shape, lambda r, i: r.body.make(SSAOp.CAST, (r.read(x, i),), float64), into=total
            )
            nest, *_ = self._scattering(total)
            return [start, nest, self.map(x.shape, lambda r, i: _rounded(r, total, x, i))]
        start = self.copy_of(x)
        nest, place, many = self._scattering(self.out)
        if sums and not _at_most(BLOCK, updates.shape[axis:end]):
            return [start, *self._in_blocks(nest, place, many)]
        return [start, nest]

    def slice_set(self) -> list[LoopNest]:
        """What is there, then the value in its places."""
        x, value = self.node.inputs
        starts, steps = self.node.attrs["starts"], self.node.attrs["steps"]

        def place(b: ScalarBlock, i: Index) -> SSAValue:
            moved = [
                b.add(b.mul(k, b.size(step)), b.size(start))
                for k, start, step in zip(i, starts, steps, strict=True)
            ]
            return b.offset(tuple(moved), x.shape)

        return [self.copy_of(x), self.map(value.shape, lambda r, i: r.read(value, i), place)]

    def _scattering(self, into: Buffer) -> tuple[ScatterNest, Index, int | Dim]:
        """Updates that meet what is in a buffer, the place that each belongs to, and how many
        places there are in an iteration that is independent of others."""
        x, position, updates = self.node.inputs
        axis, shared = self.node.attrs["axis"], self.node.attrs["shared"]
        end = axis + position.type.rank - shared
        body = ScalarBlock()
        loops, index = loops_over(body, updates.shape)
        reader = IndexMapper(body, self.stored)
        at = reader.read(position, (*index[:shared], *index[axis:end]))
        if at.dtype is not int64:
            at = body.make(SSAOp.CAST, (at,), int64)
        offset = body.offset((*index[:axis], at, *index[end:]), x.shape)
        update = reader.read(updates, index)
        if into.type.dtype is not update.dtype:
            update = body.make(SSAOp.CAST, (update,), into.type.dtype)
        # Positions along the last axis differ, unless it is the one that is scattered.
        side_by_side = bool(index) and axis != x.type.rank - 1 and updates.shape[-1] != 1
        # What stands before the axis is independent; where nothing does, threads share the places
        # that are written, and each goes through all positions.
        apart = next((i for i in range(axis) if updates.shape[i] != 1), axis)
        nest = ScatterNest(
            loops,
            body,
            [Store(into, offset, update)],
            op=self.node.op,
            vec=len(loops) - 1 if side_by_side else -1,
            slice_size=product(x.shape[apart + 1 :]),
            updates=sum(d != 1 for d in updates.shape[:end]),
        )
        if apart == axis:
            nest.index, nest.destinations = at, x.shape[axis]
        return nest, (*index[:axis], at), product(x.shape[apart + 1 : axis + 1])

    def _in_blocks(self, nest: ScatterNest, place: Index, many: int | Dim) -> list[LoopNest]:
        """A scatter that adds the updates of a place in blocks: before it, a nest that sets to 0
        how many of a block a place has had, and behind it, one that adds the totals of blocks to
        what is there. There are `many` places in an iteration of the outermost loop."""
        x, axis = self.out.type, self.node.attrs["axis"]
        shape = x.shape[: axis + 1]
        counts = self.scratch(TensorType(uint8, shape))
        wide = TensorType(float64, x.shape)
        totals = [self.scratch(wide) for _ in range(2 if x.dtype is float64 else 1)]
        zero = self.map(shape, lambda r, i: r.body.const(0, uint8), into=counts)
        blocked = BlockedScatter(
            nest.loops,
            nest.body,
            nest.stores,
            op=nest.op,
            kept=nest.updates,
            vec=nest.vec,
            slice_size=nest.slice_size,
            updates=nest.updates,
            index=nest.index,
            destinations=nest.destinations,
            counter=nest.body.offset(place, shape),
            work=[(counts, many), *((b, nest.slice_size) for b in totals)],
        )
        return [zero, blocked, self._settling(counts, totals, axis)]

    def _settling(self, counts: Buffer, totals: Sequence[Buffer], axis: int) -> LoopNest:
        """The totals of blocks added to what is there, where there are any."""
        x, body = self.out.type, ScalarBlock()
        loops, index = loops_over(body, x.shape)
        kept = sum(d != 1 for d in x.shape[: axis + 1])
        if kept == len(loops):
            loops.append(1)  # so that totals are read within a loop of their own
        at = body.offset(index, x.shape)
        there = body.load(self.out, at, x.dtype)
        place, last = body.offset(index[: axis + 1], counts.type.shape), len(loops)
        return ScatterTotals(
            loops,
            body,
            [Store(self.out, at, there)],
            kept=kept,
            vec=last - 1 if loops[-1] != 1 else -1,
            count=body.load(counts, place, uint8),
            totals=tuple(body.make(SSAOp.LOAD, (at,), float64, buffer, last) for buffer in totals),
        )

    def contraction(self) -> list[LoopNest]:
        node = self.node
        large = not self.light and wants_routine(node)
        matrices = as_product(node, self.stored.__contains__) if large else None
        if matrices is not None:
            body = ScalarBlock()
            loops, index = loops_over(body, matrices.batch)
            m, n, k = (body.size(d) for d in (matrices.m, matrices.n, matrices.k))
            inner = product((matrices.m, matrices.n))
            roots = (matrices.a.view.root, matrices.b.view.root)
            nest = GemmNest(
                loops,
                body,
                m=m,
                n=n,
                k=k,
                a=self._operand(body, index, matrices.a),
                b=self._operand(body, index, matrices.b),
                y=body.offset((*index, body.size(0)), (*matrices.batch, inner)),
                buffers=[*(self.stored[x] for x in roots), self.out],
                spread=matrices.a.spread,
                windows=matrices.b.spread,
            )
            return [nest]
        return [self._loops()]

    def _operand(self, body: ScalarBlock, index: Index, x: Operand) -> MatrixOperand:
        offset = body.size(x.view.offset)
        for i, stride in zip(index, x.batch, strict=True):
            offset = body.add(offset, body.mul(i, body.size(stride)))
        return MatrixOperand(offset, x.transposed, body.size(x.leading))

    def _loops(self) -> LoopNest:
        """A contraction as a reduction of products."""
        (a, b), prim = self.node.inputs, self.node.prim
        assert isinstance(prim, DotGeneral)
        n = len(prim.a_batch)
        a_free, b_free = prim.free_axes(a.type.rank, b.type.rank)
        summed = [a.shape[i] for i in prim.a_contract]
        a_axes = (*prim.a_batch, *a_free, *prim.a_contract)
        b_axes = (*prim.b_batch, *b_free, *prim.b_contract)
        # Rows of b are added up, or columns of a.
        split, loops = self.node.type.rank, summed
        if not sums_along(self.node):
            wide_b = any(b.shape[j] != 1 for j in b_free)
            split = n + len(a_free) if wide_b else n
            total = product(summed)
            short = not isinstance(total, Dim) and total <= PRODUCTS.block
            if sum(d != 1 for d in summed) > 1 and not short:
                loops = [total]  # one chain of products, as a product of matrices has
        domain = (*self.node.shape[:split], *loops, *self.node.shape[split:])
        axes = range(split, split + len(loops))

        def value(r: IndexMapper, index: Index) -> SSAValue:
            out = (*index[:split], *index[split + len(loops) :])
            inner = index[split : split + len(loops)]
            if len(loops) != len(summed):
                inner = r.body.unravelled(inner[0], summed)
            own_a = [*out[: n + len(a_free)], *inner]
            own_b = [*out[:n], *out[n + len(a_free) :], *inner]
            x = r.read(a, tuple(own_a[a_axes.index(i)] for i in range(a.type.rank)))
            y = r.read(b, tuple(own_b[b_axes.index(i)] for i in range(b.type.rank)))
            wide = accumulator_of(a.dtype)
            if wide is not a.dtype:
                x, y = (r.body.make(SSAOp.CAST, (v,), wide) for v in (x, y))
            return r.body.make(SSAOp.PRODUCT, (x, y), wide)

        return self.reduction(domain, axes, value, CONTRACTION)


SPECIAL: dict[str, Callable[[NodeLowering], list[LoopNest]]] = {}
nests_of = entering(SPECIAL)

reads(Materialize)(store)
nests_of(ArgMax, ArgMin)(NodeLowering.extremum)
nests_of(CumSum, CumProd, CumMax, CumMin, CumArgMax, CumArgMin, LinearScan)(lower_scan.scan)
nests_of(ScatterAdd, ScatterSet, ScatterMul, ScatterMax, ScatterMin)(NodeLowering.scatter)
nests_of(SliceSet)(NodeLowering.slice_set)
nests_of(Sort)(lower_sort.sort)
nests_of(ArgSort)(lower_sort.argsort)
nests_of(SearchSorted)(lower_sort.search)
nests_of(CheckIndex)(NodeLowering.check)
nests_of(DotGeneral)(NodeLowering.contraction)


def _at_most(count: int, updates: Shape) -> bool:
    """Whether it is known that there are no more updates of a place."""
    size = product(updates)
    return isinstance(size, int) and size <= count


def _rounded(r: IndexMapper, total: Buffer, x: Node, index: Index) -> SSAValue:
    """An element of a total in float64, in the dtype of x."""
    element = r.body.load(total, r.body.offset(index, x.shape), float64)
    return r.body.make(SSAOp.CAST, (element,), x.dtype)


def is_map(node: Node) -> bool:
    """Whether a stored node is computed by a single `MapNest`."""
    parts = isinstance(node.prim, Concat) and len(node.inputs) > TUNING.concat_parts
    whole = node.op in SPECIAL or isinstance(node.prim, Reduction | LibCall)
    return not (whole or parts)
