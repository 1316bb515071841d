"""What a kernel costs: operations, bytes, and a guess at the time of one thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from retrograd.ir import Dim, Trait, evaluate, product
from retrograd.ops.elementwise import traits_of
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, RegionNest, length_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import (
    ArgSortNest,
    CallNest,
    GemmNest,
    LoopNest,
    MapNest,
    SearchNest,
    SortNest,
    live,
)
from retrograd.schedule.ssa import INDEX_DIVISIONS, INDEXING
from retrograd.tuning import TUNING


def operations(nest: LoopNest) -> int | Dim:
    """Arithmetic operations of a nest; a multiply-add counts twice."""
    if isinstance(nest, GemmNest):
        return 2 * product((*nest.loops, *nest.mnk))
    if isinstance(nest, RegionNest):
        return _repeated(nest.region)
    if isinstance(nest, CallNest):
        return 2 * product(nest.loops) * nest.cost
    if nest.is_contraction:
        return 2 * product(nest.loops)
    depth = max(len(nest.loops), 1)
    inner = sum(1 for v in live(nest) if v.op not in INDEXING and v.depth == depth)
    return product(nest.loops) * (inner + (not isinstance(nest, MapNest)))


def _repeated(region: ControlRegion) -> int | Dim:
    """The operations of what a region runs: of two branches those of both, of a loop of unknown
    length those of `assumed_size` steps."""
    length = length_of(region)
    total: int | Dim = 0
    for kernel in (k for block in region.blocks for k in block):
        for inner in kernel.nests:
            total = total + operations(inner)
    return total * (TUNING.assumed_size if length is None else length)


def is_product(nest: LoopNest) -> bool:
    """Whether the time goes into multiply-adds."""
    return isinstance(nest, GemmNest | CallNest) or nest.is_contraction


def _scalar_cost(op: str) -> float:
    traits = traits_of(op)
    if Trait.TRANSCENDENTAL in traits:
        return TUNING.transcendental_ns
    return (
        TUNING.division_ns
        if Trait.DIVISION in traits or op in INDEX_DIVISIONS
        else TUNING.cheap_op_ns
    )


def traffic(kernel: Kernel) -> int | Dim:
    """Bytes of the buffers a kernel reads and writes, each once."""
    total: int | Dim = 0
    for buffer in (*kernel.reads, *kernel.outs):
        total = total + buffer.bytes
    return total


def nanoseconds(
    kernel: Kernel,
    sizes: Mapping[str, int] | None = None,
    moving: Collection[Buffer] | None = None,
) -> float:
    """A guess at the time of a kernel on one thread; unknown sizes count as `assumed_size`. Inside
    of a loop, `moving` is what differs from step to step: anything else is in the cache. Products
    are computed while memory is read for others."""
    time = products = 0.0
    for nest in kernel.nests:
        if isinstance(nest, RegionNest):
            time += _region_nanoseconds(nest.region, sizes)
            continue
        if is_product(nest):
            products += TUNING.multiply_add_ns / 2 * known(operations(nest), sizes)
            continue
        if isinstance(nest, SortNest):
            each = (
                TUNING.argsort_element_ns
                if isinstance(nest, ArgSortNest)
                else TUNING.sort_element_ns
            )
            time += each * known(product((*nest.loops, nest.n.attr)), sizes)
            continue
        depth = max(len(nest.loops), 1)
        each = TUNING.cheap_op_ns * (not isinstance(nest, MapNest))
        if isinstance(nest, SearchNest):
            each = TUNING.search_value_ns
        for v in live(nest):
            if v.depth == depth and v.op not in INDEXING:
                each += _scalar_cost(v.op)
        time += each * known(product(nest.loops), sizes)
    touched = (*kernel.reads, *kernel.outs)
    if moving is not None:
        touched = tuple([b for b in touched if b in moving])
    return time + max(products, TUNING.byte_ns * sum(known(b.bytes, sizes) for b in touched))


def _region_nanoseconds(region: ControlRegion, sizes: Mapping[str, int] | None) -> float:
    """A guess at the time of what a region runs."""
    if region.walk is not None:
        node, edge = walk_costs(region, sizes)
        nodes, edges = region.node.prim.nodes, region.walk.edges.type.shape[1]  # type: ignore[attr-defined]
        return node * known(nodes, sizes) + edge * known(edges, sizes)
    length = length_of(region)
    steps = TUNING.assumed_size if length is None else known(length, sizes)
    return steps * (TUNING.loop_step_ns + sum(_block_nanoseconds(region, sizes)))


def walk_costs(
    region: ControlRegion, sizes: Mapping[str, int] | None = None
) -> tuple[float, float]:
    """A guess at the time of a node, and of an edge, of a walk through a graph."""
    edge, node = _block_nanoseconds(region, sizes)
    return TUNING.loop_step_ns + node, TUNING.loop_step_ns + edge


def _block_nanoseconds(region: ControlRegion, sizes: Mapping[str, int] | None) -> list[float]:
    """The time of each block of a region."""
    inner = [k for block in region.blocks for k in block]
    made = {b for k in inner for b in (*k.outs, *k.reads) if b.kind == "cursor"}
    made.update(b for k in inner for b in k.outs)
    return [
        sum(nanoseconds(k, sizes, made) + TUNING.kernel_call_ns for k in block)
        for block in region.blocks
    ]


def is_far(buffer: Buffer) -> bool:
    """Whether a buffer is a temporary that has no place in any cache."""
    size = buffer.bytes
    return buffer.kind == "temporary" and isinstance(size, int) and size > TUNING.uncached_bytes


def known(size: int | Dim, sizes: Mapping[str, int] | None = None) -> int:
    """A size as a number."""
    if isinstance(size, Dim):
        return evaluate(size, {**dict.fromkeys(size.names, TUNING.assumed_size), **(sizes or {})})
    return size
