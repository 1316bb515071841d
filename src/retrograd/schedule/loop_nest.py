"""Loop nests: what a kernel consists of, and what an emitter prints.

The loops of a nest are numbered from the outermost. One of them, `vec`, has iterations that may
run side by side, in vectors. Two kinds of reduction exist, and their order of summation is part of
the meaning, whatever the emitter, the sizes, or what else is fused:

- "row": the reduced loops end with `vec`. Element `r` of it goes to partial result `r mod LANES`.
  The partial results are combined as a tree: `l` with `l + LANES/2`, and so on by halves.
- "column": `vec` is the last kept loop.

Sums of floats are chains, which `ops/numerics/summation.py` cuts into blocks: each reduced loop is
one, whose terms are the totals of the loops inside; those of a row are vectors of `LANES` elements,
one for each partial result. Other reductions take elements one after the other, outer loops first.

A scan "along" a row takes blocks of `LANES` elements, from the end if it is reversed. Within a
block each lane is combined with the lane 1 before it, then 2, 4 and 8, then all with the result of
the blocks before. Sums of floats keep that result in twice the precision: of the totals of blocks
of float32 in float64, of float64 with what is rounded off in each addition
(`ops/numerics/compensated_sum.py`). A "scan" of sums, and a recurrence, keeps what it has so far of
all elements like this.

A scatter takes updates in order. Sums of floats take each place's updates in blocks of `BLOCK`: the
first follow what is there, and when a block is full it is added to a total in twice the precision,
and the next one begins with -0.0. The total and the last block are added in the end.

Products of a contraction (`op` "dot") are added with one rounding, where the machine can. Down a
column, and in a matrix product ("gemm"), they are one chain, over all axes in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrograd.ir import Dim, DType, Shape, product
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.ssa import Index, ScalarBlock, SSAValue

LANES = 16  # partial results of a row reduction
# Elements of a place from which on threads share the places of a scatter; measured: each looks at
# all positions, and cannot guess which are its own. Fewer where the result is far from a core.
PLACE, PLACE_FAR = 32, 16
FAR_RESULT = 1 << 21  # bytes
# Bytes that a thread needs for copies of parts of the matrices that it multiplies, and, where sums
# may have more products than are a group, for totals of groups.
COPIES_BYTES, TOTALS_BYTES = 1 << 19, 1 << 18

# Instructions that are no arithmetic of the user's.
INDEXING = frozenset(
    ["loop", "size", "iadd", "isub", "imul", "idiv", "imod", "ilt", "ige", "isel", "const", "load"]
)

SCATTERING = frozenset(("scatter", "sums"))
# Kinds whose outermost loop, if it is not reduced, has iterations that may run in any order.
INDEPENDENT = frozenset(
    ["map", "row", "column", "arg", "scan", "along", "settle", "sort", "argsort", "search", "gemm"]
)


@dataclass(frozen=True, slots=True)
class Store:
    """Write a value to a buffer."""

    buffer: Buffer
    offset: SSAValue
    value: SSAValue


@dataclass(slots=True)
class LoopNest:
    """Loops around a body: first `kept` ones for the results, then those reduced.

    | kind | loops | what happens |
    |---|---|---|
    | map | the domain | the stores |
    | row, column | kept, reduced | `stores[0]` takes the reduced value |
    | arg | kept, reduced | the same, with the position of the extremum |
    | scan | kept, scanned | `stores[0]` takes the running value |
    | along | kept, scanned | the same along a row, in vectors |
    | scatter | the updates | `stores[0]` meets what is there |
    | sums | the updates | the same, for sums in blocks |
    | settle | the places | `stores[0]` takes what there is and the totals of blocks |
    | sort | rows | a row is sorted in place |
    | argsort | rows | the positions of a row's elements in order |
    | search | the values | the place of a value in a sorted row |
    | check | the indices | `stores[0]` takes the position, or the run ends |
    | gemm | the batch | a matrix product |
    | call | the batch | a call of a routine, see `passes/lowering/libcall.py` |

    `vec` is -1 where the order of the iterations matters. Iterations of the loop `tile` may share
    what does not depend on it. `info` holds what only one kind needs.
    """

    kind: str
    loops: list[int | Dim]
    body: ScalarBlock
    stores: list[Store] = field(default_factory=list)
    op: str = ""
    accumulator: DType | None = None
    kept: int = 0
    vec: int = -1
    tile: int = -1
    info: dict[str, Any] = field(default_factory=dict)
    live: list[SSAValue] | None = None  # once the nest belongs to a kernel, and changes no more

    @property
    def outer(self) -> int | Dim:
        """The length of the outermost loop, where its iterations may run in any order, or 0."""
        if self.kind == "gemm" and not self.loops:
            size: int | Dim = self.info["m"].attr
            return size
        if self.kind == "call":
            return self.loops[0] if self.loops else 0
        if self.kind in SCATTERING:
            return self._independent_of_scatter()
        independent = self.kind in INDEPENDENT
        return self.loops[0] if independent and (self.kept or self.kind == "gemm") else 0

    def _independent_of_scatter(self) -> int | Dim:
        if "places" not in self.info:
            return self.loops[0]
        each, places = self.info["each"], self.info["places"]
        size = self.stores[0].buffer.bytes
        near = isinstance(size, int) and size < FAR_RESULT
        return 0 if isinstance(each, int) and each < (PLACE if near else PLACE_FAR) else places

    @property
    def operands(self) -> list[Buffer]:
        """The buffers that a product or a routine reads."""
        buffers: list[Buffer] = self.info.get("buffers", [])
        return buffers[: self.info.get("given", 2)]


def roots(nest: LoopNest) -> list[SSAValue]:
    """The values that a nest is there for."""
    found = [v for s in nest.stores for v in (s.offset, s.value)]
    for item in nest.info.values():
        if isinstance(item, SSAValue):
            found.append(item)
        elif isinstance(item, tuple):
            found.extend(v for v in item if isinstance(v, SSAValue))
    return found


def live(nest: LoopNest) -> list[SSAValue]:
    """The values of a nest's body that are used, in order."""
    if nest.live is not None:
        return nest.live
    seen = set(roots(nest))
    todo = list(seen)
    while todo:
        for a in todo.pop().args:
            if a not in seen:
                seen.add(a)
                todo.append(a)
    return [v for v in nest.body.values if v in seen]


def loops_over(body: ScalarBlock, domain: Shape) -> tuple[list[int | Dim], Index]:
    """A loop for each axis of the domain that is longer than 1, and the index they make."""
    loops: list[int | Dim] = []
    index = []
    for d in domain:
        if d == 1:
            index.append(body.size(0))
        else:
            index.append(body.loop(len(loops)))
            loops.append(d)
    return loops, tuple(index)


def mapping(loops: list[int | Dim], body: ScalarBlock, stores: list[Store]) -> LoopNest:
    """A nest of kind "map", in as few loops as possible."""
    nest = LoopNest("map", loops, body, stores, kept=len(loops))
    _collapse(nest)
    nest.kept, nest.vec = len(nest.loops), len(nest.loops) - 1
    return nest


def _collapse(nest: LoopNest) -> None:
    """Make one loop of a nest whose counters serve nothing but one and the same position, which
    counts the iterations. A part of a larger array, as of a concat, has places of another kind."""
    if len(nest.loops) < 2:
        return
    shared, counters = nest.stores[0].offset, range(len(nest.loops))
    if shared is not nest.body.offset(tuple(map(nest.body.loop, counters)), nest.loops):
        return
    seen: set[SSAValue] = {shared}
    todo = [v for s in nest.stores for v in (s.offset, s.value)]
    while todo:
        v = todo.pop()
        if v in seen or v.depth == 0:
            continue
        if v.op == "loop":
            return
        seen.add(v)
        todo.extend(v.args)
    if shared.op == "loop" or shared.depth < len(nest.loops):
        return
    shared.op, shared.args, shared.attr, shared.depth = "loop", (), 0, 1
    for v in seen:
        v.depth = min(v.depth, 1)
    nest.loops = [product(nest.loops)]
