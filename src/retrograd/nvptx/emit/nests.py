"""What becomes of each kind of loop nest: `EMITTERS`, by its class."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen import types
from retrograd.codegen.emit import scan  # noqa: F401  (what it writes, by kind of nest)
from retrograd.codegen.emit.loops import Carried, emit_loops
from retrograd.codegen.emit.nest_emitters import NESTS
from retrograd.codegen.op_builder import OpBuilder
from retrograd.codegen.sort import sort as searches  # noqa: F401
from retrograd.errors import BackendError
from retrograd.ir import int64
from retrograd.nvptx.emit.extremum import along_rows
from retrograd.nvptx.emit.launch import Launches, Status
from retrograd.nvptx.emit.module import DeviceModule, Emit
from retrograd.nvptx.emit.product import product_nest
from retrograd.nvptx.emit.reduction import reduction
from retrograd.nvptx.emit.row_scan import row_scan
from retrograd.nvptx.emit.scatter import scatter
from retrograd.nvptx.emit.sort import argsort, sort
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import (
    ArgReduction,
    ArgSortNest,
    BlockedScatter,
    CheckNest,
    ColumnReduction,
    GemmNest,
    LoopNest,
    MapNest,
    RowReduction,
    RowScan,
    ScanNest,
    ScatterNest,
    ScatterTotals,
    SearchNest,
    SortNest,
)


def by_thread(module: DeviceModule, nest: LoopNest) -> list[Launches]:
    """A thread for each iteration of the kept loops."""
    w = module.emitter()
    domain = nest.loops[: nest.kept]
    w.fixed = dict(enumerate(w.spread(domain)))
    NESTS[type(nest)](w, nest)
    return [module.over(w, domain)]


def extremum(module: DeviceModule, nest: ArgReduction) -> list[Launches]:
    """By a warp along rows, where there is no `vec`; down columns by threads."""
    return along_rows(module, nest) if nest.vec < 0 else by_thread(module, nest)


def check(module: DeviceModule, nest: CheckNest) -> list[Launches]:
    """Write positions counted from the front. At one out of range, the status is set, and what
    comes later reads the first place: the run has failed, but touches no memory that is not
    there."""
    w = module.emitter()
    (store,) = nest.stores
    w.fixed = dict(enumerate(w.spread(nest.loops)))
    w.begin(nest)
    dtype = store.value.dtype

    def inside(_: Carried) -> Carried:
        at = OpBuilder(w, int64)
        value = types.convert(w, w.scalar(store.value), dtype, int64)
        size, place = w.scalar(nest.size), value
        if dtype.kind == "int":
            negative = w.new(f"icmp slt i64 {value}, 0")
            place = at.select(negative, at.instruction("add", value, size), value)
        outside = w.new(f"icmp uge i64 {place}, {size}")
        bad, on = w.label(), w.label()
        w.branch(outside, bad, on)
        w.start_block(bad)
        w.line(f"store i64 1, ptr {w.parameter(Status())}, align 8")
        w.jump(on)
        w.start_block(on)
        place = at.select(outside, "0", place)
        w.write(types.convert(w, place, int64, store.buffer.type.dtype), store)
        return []

    emit_loops(w, 0, len(nest.loops), inside)
    return [module.over(w, nest.loops)]


EMITTERS: dict[type[LoopNest], Emit] = {
    MapNest: by_thread,
    RowReduction: reduction,
    ColumnReduction: reduction,
    ArgReduction: extremum,
    ScanNest: by_thread,
    RowScan: row_scan,
    ScatterNest: scatter,
    BlockedScatter: scatter,
    SortNest: sort,
    ArgSortNest: argsort,
    SearchNest: by_thread,
    CheckNest: check,
    GemmNest: product_nest,
}


def launches_of(module: DeviceModule, kernel: Kernel, nests: Sequence[LoopNest]) -> list[Launches]:
    """The launches of some nests of a kernel, in order; `BackendError` names the operation of one
    that there is nothing for."""
    module.scratches.append([])
    blocked = [n for n in nests if isinstance(n, BlockedScatter)]
    # What a scatter in blocks keeps in memory on a processor is in registers here.
    kept = {b for n in blocked for b, _ in n.work}
    found = []
    for nest in nests:
        if isinstance(nest, ScatterTotals) or any(s.buffer in kept for s in nest.stores):
            continue
        emit = EMITTERS.get(type(nest))
        if emit is None:
            raise BackendError(
                f"the cuda backend has no kernel for {kernel.nodes[0].describe()} (a nest of the "
                f"kind {nest.kind!r}); run it with rg.backend('llvm')"
            )
        found += emit(module, nest)
    return found
