"""What a kernel costs: operations, bytes, and a guess at the time of one thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from retrograd.ir import Dim, Trait, evaluate, product
from retrograd.ops.elementwise import traits_of
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, length_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import INDEXING, LoopNest, live

# Nanoseconds of one thread for an element of a vector of floats, by kind of operation; measured on
# one machine, good enough to tell what is worth sharing.
CHEAP, DIVISION, FUNCTION = 0.03, 0.15, 0.6
PRODUCT = 0.0125  # a multiply-add of a contraction
BYTE = 0.06  # a byte read or written
STEP, CALLED = 3.0, 2.0  # of a loop, and for each kernel that it calls
FAR = 1 << 25  # bytes that no cache holds
LONG = 20e6  # nanoseconds from which on somebody may want to end a run
TYPICAL = 1024  # what a named size is taken for, where its value is not known
SORTED = {"sort": 8.0, "argsort": 15.0}  # an element
SEARCHED = 60.0  # a value that is looked for
INDEX_DIVISIONS = ("idiv", "imod")


def operations(nest: LoopNest) -> int | Dim:
    """Arithmetic operations of a nest; a multiply-add counts twice."""
    if nest.kind == "gemm":
        return 2 * product((*nest.loops, *(nest.info[s].attr for s in "mnk")))
    if nest.kind == "region":
        return _repeated(nest)
    if nest.kind == "call":
        return 2 * product(nest.loops) * nest.info["cost"]
    if nest.op == "dot":
        return 2 * product(nest.loops)
    depth = max(len(nest.loops), 1)
    inner = sum(1 for v in live(nest) if v.op not in INDEXING and v.depth == depth)
    return product(nest.loops) * (inner + (nest.kind != "map"))


def _repeated(nest: LoopNest) -> int | Dim:
    """The operations of what a region runs: of two branches those of both, of a loop of unknown
    length those of `TYPICAL` steps."""
    region = nest.info["region"]
    length = length_of(region)
    total: int | Dim = 0
    for kernel in (k for block in region.blocks for k in block):
        for inner in kernel.nests:
            total = total + operations(inner)
    return total * (TYPICAL if length is None else length)


def _scalar_cost(op: str) -> float:
    traits = traits_of(op)
    if Trait.TRANSCENDENTAL in traits:
        return FUNCTION
    return DIVISION if Trait.DIVISION in traits or op in INDEX_DIVISIONS else CHEAP


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
    """A guess at the time of a kernel on one thread; unknown sizes count as `TYPICAL`. Inside of a
    loop, `moving` is what differs from step to step: anything else is in the cache."""
    time = 0.0
    for nest in kernel.nests:
        if nest.kind == "region":
            time += _region_nanoseconds(nest.info["region"], sizes)
            continue
        if nest.kind in ("gemm", "call") or nest.op == "dot":
            time += PRODUCT / 2 * known(operations(nest), sizes)
            continue
        if nest.kind in SORTED:
            time += SORTED[nest.kind] * known(product((*nest.loops, nest.info["n"].attr)), sizes)
            continue
        depth = max(len(nest.loops), 1)
        each = SEARCHED if nest.kind == "search" else CHEAP * (nest.kind != "map")
        for v in live(nest):
            if v.depth == depth and v.op not in INDEXING:
                each += _scalar_cost(v.op)
        time += each * known(product(nest.loops), sizes)
    touched = (*kernel.reads, *kernel.outs)
    if moving is not None:
        touched = tuple([b for b in touched if b in moving])
    return time + BYTE * sum(known(b.bytes, sizes) for b in touched)


def _region_nanoseconds(region: ControlRegion, sizes: Mapping[str, int] | None) -> float:
    """A guess at the time of what a region runs."""
    if region.walk is not None:
        node, edge = walk_costs(region, sizes)
        nodes, edges = region.node.prim.nodes, region.walk.edges.type.shape[1]  # type: ignore[attr-defined]
        return node * known(nodes, sizes) + edge * known(edges, sizes)
    length = length_of(region)
    steps = TYPICAL if length is None else known(length, sizes)
    return steps * (STEP + sum(_block_nanoseconds(region, sizes)))


def walk_costs(
    region: ControlRegion, sizes: Mapping[str, int] | None = None
) -> tuple[float, float]:
    """A guess at the time of a node, and of an edge, of a walk through a graph."""
    edge, node = _block_nanoseconds(region, sizes)
    return STEP + node, STEP + edge


def _block_nanoseconds(region: ControlRegion, sizes: Mapping[str, int] | None) -> list[float]:
    """The time of each block of a region."""
    inner = [k for block in region.blocks for k in block]
    made = {b for k in inner for b in (*k.outs, *k.reads) if b.kind == "cursor"}
    made.update(b for k in inner for b in k.outs)
    return [sum(nanoseconds(k, sizes, made) + CALLED for k in block) for block in region.blocks]


def is_far(buffer: Buffer) -> bool:
    """Whether a buffer is a temporary that has no place in any cache."""
    size = buffer.bytes
    return buffer.kind == "temporary" and isinstance(size, int) and size > FAR


def known(size: int | Dim, sizes: Mapping[str, int] | None = None) -> int:
    """A size as a number."""
    if isinstance(size, Dim):
        return evaluate(size, {**dict.fromkeys(size.names, TYPICAL), **(sizes or {})})
    return size
