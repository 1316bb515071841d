"""Maps that are computed by the dispatch before them: where that has an element of its result, in a
register still, it computes what the map makes of it (the *epilogue* of CUTLASS).

A bias and an activation come with the matrix product, and what divides a row by its sum with that
sum. The map becomes a function of the shader, of a point and of the element; nobody waits for the
dispatch in between, and what only the map reads is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retrograd.ir import DType, float32, float64, int32
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import GemmNest, LoopNest, MapNest, ReductionNest, RowReduction
from retrograd.schedule.ssa import SSAOp, SSAValue
from retrograd.wgpu.dispatch import EmitContext
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.scalar import Body
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import register_type

# In memory their elements are what they are in registers.
PLAIN: tuple[DType, ...] = (float32, float64, int32)


@dataclass(eq=False)
class Epilogue:
    """The map `nest` of another kernel, which reads `source`, the result of a kernel: of each
    element as many points as `row` says. `keeps`: others read that, too. It is `used` where an
    emitter has called it."""

    kernel: Kernel
    nest: MapNest
    source: Buffer
    row: int
    keeps: bool
    used: bool = field(default=False)

    def call(self, w: ShaderWriter, point: str, value: str) -> None:
        """Compute a point of the map, of which the element is this value."""
        self.used = True
        kind = register_type(self.source.type.dtype)
        with w.function("epilogue", f"point: i32, value: {kind}") as fresh:
            if fresh:
                loads = [v for v in self.nest.body.values if is_load(v, self.source)]
                body = Body(w, self.nest, dict.fromkeys(loads, "value"))
                counters_of(w, body, self.nest.loops, "point")
                body.place(len(self.nest.loops), 0)
                for store in self.nest.stores:
                    body.store(store)
        w.line(f"epilogue({point}, {value});")


def finish(w: ShaderWriter, buffer: Buffer, position: str, value: str) -> None:
    """Store an element of the result of a nest, and compute the point of the map that follows."""
    epilogue = of(w.context, buffer)
    if epilogue is None or epilogue.row != 1:
        w.store(buffer, position, value)
        return
    point, element = w.new(position), w.new(value)
    if epilogue.keeps:
        w.store(buffer, point, element)
    epilogue.call(w, point, element)


def of(context: EmitContext, buffer: Buffer) -> Epilogue | None:
    """What follows on a buffer, if something does."""
    found = context.epilogue
    return found if isinstance(found, Epilogue) and found.source is buffer else None


def is_load(v: SSAValue, buffer: Buffer) -> bool:
    """Whether a value is an element of a buffer."""
    return v.op is SSAOp.LOAD and v.attr is buffer


def epilogue_of(
    kernels: Sequence[Kernel], i: int, context: EmitContext
) -> tuple[int, Epilogue] | None:
    """The kernel after number `i` that can be its epilogue, and which one it is."""
    first = kernels[i]
    if len(first.nests) != 1 or len(first.outs) != 1 or context.check:
        return None
    nest, source = first.nests[0], first.outs[0]
    if not isinstance(nest, GemmNest | ReductionNest) or source.type.dtype not in PLAIN:
        return None
    if isinstance(nest, GemmNest) and (nest.visible is not None or nest.output is not source):
        return None
    readers = [j for j, k in enumerate(kernels) if j > i and source in k.reads]
    if not readers or regions_of(kernels[readers[0]]):
        return None
    j = readers[0]
    second = kernels[j]
    if not _may_move(kernels, i, j) or len(second.nests) != 1:
        return None
    then = second.nests[0]
    if not isinstance(then, MapNest):
        return None
    row = _points_of_each(then, source, context)
    if row is None or (row > 1 and not _whole_rows(nest, row, context)):
        return None
    keeps = source.kind != "temporary" or len(readers) > 1 or _in_regions(kernels, source)
    return j, Epilogue(second, then, source, row, keeps)


def _may_move(kernels: Sequence[Kernel], i: int, j: int) -> bool:
    """Whether kernel `j` may be done with kernel `i`: nobody in between makes what it reads, or
    has to do with what it writes, and it does not write what `i` reads elsewhere."""
    first, second = kernels[i], kernels[j]
    reads, writes = set(second.reads), set(second.outs)
    if writes & set(first.reads) or writes & set(first.outs):
        return False
    return not any(
        regions_of(k) or reads & set(k.outs) or writes & {*k.reads, *k.outs}
        for k in kernels[i + 1 : j]
    )


def _in_regions(kernels: Sequence[Kernel], buffer: Buffer) -> bool:
    """Whether a loop or a branch may read a buffer."""
    todo = list(kernels)
    while todo:
        inner = [k for r in regions_of(todo.pop()) for block in r.blocks for k in block]
        if any(buffer in k.reads for k in inner):
            return True
        todo += inner
    return False


def _points_of_each(nest: MapNest, source: Buffer, context: EmitContext) -> int | None:
    """How many points of a map, which follow one another, read each element of a buffer, in the
    order of the elements; None where it reads them in another way."""
    points, elements = number_of_points(nest.loops, context), context.value(source.type.size)
    if not points or not elements or points % elements:
        return None
    row = points // elements
    steps, after = [], points
    for size in nest.loops:
        after //= context.value(size)
        steps.append(after)
    loads = [v for v in nest.body.values if is_load(v, source)]
    for load in loads:
        found = affine(load.args[0], len(nest.loops), context)
        if found is None or found[0]:
            return None
        for size, step, factor in zip(nest.loops, steps, found[1], strict=True):
            wanted = step // row if step % row == 0 else 0
            if context.value(size) > 1 and (factor != wanted or (step % row and row % step)):
                return None
            if context.value(size) > 1 and step < row < step * context.value(size):
                return None  # a loop that goes through rows and elements of them
    return row if loads else None


def _whole_rows(nest: LoopNest, row: int, context: EmitContext) -> bool:
    """Whether a nest has a workgroup for each result, which can do the points of a row after it:
    a reduction of rows, of about as many elements as the map has points."""
    if not isinstance(nest, RowReduction):
        return False
    found = affine(nest.stores[0].offset, len(nest.loops), context)
    if found is None or found[0]:
        return False
    step = context.value(nest.stores[0].buffer.type.size)
    for size, factor in zip(nest.loops[: nest.kept], found[1], strict=False):
        step //= context.value(size)
        if context.value(size) > 1 and factor != step:
            return False
    return row <= 4 * number_of_points(nest.loops[nest.kept :], context)


def affine(v: SSAValue, loops: int, context: EmitContext) -> tuple[int, list[int]] | None:
    """A position as a number and a factor for each of so many loops; None where it is none."""
    zero = [0] * loops
    if v.op is SSAOp.LOOP:
        return 0, [int(k == v.attr) for k in range(loops)]
    if v.op is SSAOp.SIZE:
        return context.value(v.attr), zero
    if v.op not in (SSAOp.IADD, SSAOp.ISUB, SSAOp.IMUL):
        return None
    a, b = (affine(x, loops, context) for x in v.args)
    if a is None or b is None:
        return None
    if v.op is SSAOp.IMUL:
        if any(a[1]) and any(b[1]):
            return None
        (start, factors), (number, _) = (a, b) if not any(b[1]) else (b, a)
        return start * number, [f * number for f in factors]
    sign = 1 if v.op is SSAOp.IADD else -1
    return a[0] + sign * b[0], [x + sign * y for x, y in zip(a[1], b[1], strict=True)]
