"""Loop nests: what a kernel consists of, and what an emitter prints.

The loops of a nest are numbered from the outermost. One of them, `vec`, has iterations that may
run side by side, in vectors. Two kinds of reduction exist, and their order of summation is part of
the meaning, whatever the emitter, the sizes, or what else is fused:

- `RowReduction`: the reduced loops end with `vec`. Element `r` of it goes to partial result
  `r mod LANES`. The partial results are combined as a tree: `l` with `l + LANES/2`, and so on by
  halves.
- `ColumnReduction`: `vec` is the last kept loop.

Sums of floats are chains, which `ops/numerics/summation.py` cuts into blocks: each reduced loop is
one, whose terms are the totals of the loops inside; those of a row are vectors of `LANES` elements,
one for each partial result. Other reductions take elements one after the other, outer loops first.

`RowScan` takes blocks of `LANES` elements, from the end if it is reversed. Within a
block each lane is combined with the lane 1 before it, then 2, 4 and 8, then all with the result of
the blocks before. Sums of floats keep that result in twice the precision: of the totals of blocks
of float32 in float64, of float64 with what is rounded off in each addition
(`ops/numerics/compensated_sum.py`). A `ScanNest` of sums, and a recurrence, keeps what it has so
far of all elements like this.

A scatter takes updates in order. Sums of floats take each place's updates in blocks of `BLOCK`: the
first follow what is there, and when a block is full it is added to a total in twice the precision,
and the next one begins with -0.0. The total and the last block are added in the end.

Products of a contraction (`is_contraction`) are added with one rounding, where the machine can.
Down a column, and in a matrix product (`GemmNest`), they are one chain, over all axes in their
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from retrograd.ir import Dim, DType, Shape
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.ops.reduce import ReduceSum
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.ssa import Index, ScalarBlock, SSAValue
from retrograd.tuning import TUNING

Spread = tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]  # (size, step) of each axis
# Of a matrix of which only a part is used, the first column of each row and the one after the last,
# as (of row 0, step from row to row).
Visible = tuple["tuple[int | Dim, int] | None", "tuple[int | Dim, int] | None"]
LANES = 16  # partial results of a row reduction

CONTRACTION = "dot"  # the `op` of a reduction that adds products
SUMS = frozenset((CONTRACTION, ReduceSum.name))


@dataclass(frozen=True, slots=True)
class Store:
    """Write a value to a buffer."""

    buffer: Buffer
    offset: SSAValue
    value: SSAValue


@dataclass(slots=True, eq=False)
class LoopNest:
    """Loops around a body: first `kept` ones for the results, then those reduced.

    There is a class for each kind, with the fields that only this kind needs. `vec` is -1 where the
    order of the iterations matters. Iterations of the loop `tile` may share what does not depend on
    it. `op` is what a reduction, scan or scatter combines elements with.
    """

    kind: ClassVar[str]  # in reports

    loops: list[int | Dim]
    body: ScalarBlock
    stores: list[Store] = field(default_factory=list)
    op: str = ""
    accumulator: DType | None = None
    kept: int = 0
    vec: int = -1
    tile: int = -1
    live: list[SSAValue] | None = None  # once the nest belongs to a kernel, and changes no more

    @property
    def outer(self) -> int | Dim:
        """The length of the outermost loop, where its iterations may run in any order, or 0."""
        return self.loops[0] if self.kept else 0

    @property
    def operands(self) -> list[Buffer]:
        """The buffers that are read otherwise than by loads: by a product or a routine."""
        return []

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        """Replace buffers among what only this kind of nest has."""

    @property
    def is_contraction(self) -> bool:
        """Whether products are added up."""
        return self.op == CONTRACTION

    @property
    def is_column_contraction(self) -> bool:
        """Whether products are added up in one chain."""
        return self.is_contraction and isinstance(self, ColumnReduction)

    @property
    def is_sum(self) -> bool:
        """Whether terms, or products, are added up."""
        return self.op in SUMS


class MapNest(LoopNest):
    """The stores, at each point of a domain."""

    __slots__ = ()

    kind = "map"


@dataclass(slots=True, eq=False, kw_only=True)
class ReductionNest(LoopNest):
    """Kept and reduced loops; `stores[0]` takes the reduced value of `count` elements."""

    count: SSAValue


class RowReduction(ReductionNest):
    """The reduced loops end with `vec`."""

    __slots__ = ()

    kind = "row"


class ColumnReduction(ReductionNest):
    """`vec` is the last kept loop."""

    __slots__ = ()

    kind = "column"


def streams(nest: LoopNest) -> bool:
    """Whether a nest adds products with a matrix that is so large that its rows should be read
    along their columns, several at a time, however few rows pass by."""
    if not nest.is_column_contraction or nest.kept != len(nest.loops) - 1:
        return False
    n, k = nest.loops[nest.vec], nest.loops[-1]
    if isinstance(n, Dim) or isinstance(k, Dim) or nest.accumulator is None:
        return False
    size = n * k * nest.accumulator.itemsize
    long_enough = TUNING.streamed_rows <= k <= PRODUCTS.group
    return nest.accumulator.is_float and long_enough and size >= TUNING.streamed_bytes


class ArgReduction(LoopNest):
    """Kept and reduced loops; `stores[0]` takes the position of the extremum."""

    __slots__ = ()

    kind = "arg"


@dataclass(slots=True, eq=False, kw_only=True)
class ScanNest(LoopNest):
    """Kept loops and the scanned one; `stores[0]` takes the running value. A recurrence has a
    `factor`, a scan of positions of extrema the `position`."""

    kind = "scan"

    reverse: bool
    factor: SSAValue | None = None
    position: SSAValue | None = None


class RowScan(ScanNest):
    """The same along a row, in vectors."""

    __slots__ = ()

    kind = "along"


@dataclass(slots=True, eq=False, kw_only=True)
class ScatterNest(LoopNest):
    """Loops over updates, in order; `stores[0]` meets what is there.

    An iteration of the outermost loop has `slice_size` elements of the result to itself. Where it
    has not, threads share the `destinations`, of which the update goes to number `index`, and this
    many elements belong to each. The first `updates` loops are over updates, those after them over
    the elements of one."""

    kind = "scatter"

    slice_size: int | Dim
    updates: int
    index: SSAValue | None = None
    destinations: int | Dim | None = None

    @property
    def outer(self) -> int | Dim:
        if self.destinations is None:
            return self.loops[0]
        size = self.stores[0].buffer.bytes
        near = isinstance(size, int) and size < TUNING.far_scatter_bytes
        least = TUNING.scatter_slice_elements if near else TUNING.far_scatter_slice_elements
        few = isinstance(self.slice_size, int) and self.slice_size < least
        return 0 if few else self.destinations


@dataclass(slots=True, eq=False, kw_only=True)
class BlockedScatter(ScatterNest):
    """The same for sums in blocks. `counter` is the position in the first buffer of `work`, which
    counts the updates of a destination; the others hold totals of blocks. Each comes with how many
    of its elements belong to an iteration, as `slice_size`."""

    kind = "sums"

    counter: SSAValue
    work: list[tuple[Buffer, int | Dim]]


@dataclass(slots=True, eq=False, kw_only=True)
class ScatterTotals(LoopNest):
    """Loops over destinations, behind a scatter in blocks: `stores[0]` takes what there is and the
    `totals` of blocks, unless `count` says that there are none."""

    kind = "settle"

    count: SSAValue
    totals: tuple[SSAValue, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class SortNest(LoopNest):
    """A loop over rows of `n` elements, each sorted in place."""

    kind = "sort"

    n: SSAValue
    descending: bool
    work: list[Buffer]


@dataclass(slots=True, eq=False, kw_only=True)
class ArgSortNest(SortNest):
    """A loop over rows of `source`: the positions of the first `count` elements in order."""

    count: SSAValue
    source: Buffer

    @property
    def operands(self) -> list[Buffer]:
        return [self.source]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        self.source = renamed.get(self.source, self.source)


@dataclass(slots=True, eq=False, kw_only=True)
class SearchNest(LoopNest):
    """Loops over values: the position of each in a sorted row, the `n` elements of `source` from
    `start` on."""

    kind = "search"

    n: SSAValue
    source: Buffer
    start: SSAValue
    right: bool

    @property
    def operands(self) -> list[Buffer]:
        return [self.source]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        self.source = renamed.get(self.source, self.source)


@dataclass(slots=True, eq=False, kw_only=True)
class CheckNest(LoopNest):
    """Loops over indices: `stores[0]` takes the position among `size`, or the run ends."""

    kind = "check"

    size: SSAValue

    @property
    def outer(self) -> int | Dim:
        return 0


class MatrixOperand(NamedTuple):
    """A matrix that a product reads: from `offset` on, with `leading` elements from row to row; or
    from column to column, where it is `transposed`."""

    offset: SSAValue
    transposed: bool
    leading: SSAValue


@dataclass(slots=True, eq=False, kw_only=True)
class GemmNest(LoopNest):
    """Loops over the batch, and the product of an m x k and a k x n matrix. `y` is where the result
    starts; `buffers` are the matrices and the result. `spread` are sizes and strides of the rows
    and columns of a left matrix whose elements are not evenly spaced, `windows` those of a right
    one, whose columns are rows of an image. Of the result nobody reads anything but what is
    `visible`; beyond the bounds `hidden` the left and the right matrix, as they were made, have
    nothing but zeros (both: `masked_domain.py`). A `packed` right matrix is what a `PackNest` has
    made of it.

    The plan adds `work`, in which matrices are packed, the byte of it where `totals` of groups of
    products are kept, or where long tables of offsets are `listed`, and what is to be fetched
    meanwhile: of each buffer the bytes of a row of the tile group, and how many bytes at most."""

    kind = "gemm"

    m: SSAValue
    n: SSAValue
    k: SSAValue
    a: MatrixOperand
    b: MatrixOperand
    y: SSAValue
    buffers: list[Buffer]
    spread: Spread | None = None
    windows: Spread | None = None
    visible: Visible | None = None
    hidden: tuple[Visible | None, Visible | None] = None, None
    packed: bool = False
    work: Buffer | None = None
    totals: int | None = None
    listed: int | None = None
    prefetch: list[tuple[Buffer, int, int]] = field(default_factory=list)

    @property
    def mnk(self) -> tuple[int | Dim, int | Dim, int | Dim]:
        """The sizes as numbers or dims."""
        return self.m.attr, self.n.attr, self.k.attr

    @property
    def output(self) -> Buffer:
        return self.buffers[2]

    @property
    def outer(self) -> int | Dim:
        return self.loops[0] if self.loops else self.mnk[0]

    @property
    def operands(self) -> list[Buffer]:
        return self.buffers[:2]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        self.buffers = [renamed.get(b, b) for b in self.buffers]


@dataclass(slots=True, eq=False, kw_only=True)
class PackNest(LoopNest):
    """No loops: the right matrix of products, k x n, copied in the order in which they read it.
    `buffers` are the matrix and the copy."""

    kind = "pack"

    n: SSAValue
    k: SSAValue
    b: MatrixOperand
    buffers: list[Buffer]

    @property
    def outer(self) -> int | Dim:
        return 0

    @property
    def operands(self) -> list[Buffer]:
        return self.buffers[:1]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        self.buffers = [renamed.get(b, b) for b in self.buffers]


@dataclass(slots=True, eq=False, kw_only=True)
class CallNest(LoopNest):
    """A loop over items, and the call of a routine for each (`passes/lowering/libcall.py`).

    `buffers` are the `given` operands, the result, a space of `work` elements if there is one, and
    what the calls return if they `can_fail`. `starts` is where the share of an `item` begins in the
    operands and the result; all items read the whole of the last `shared` operands; `cost` counts
    multiply-adds."""

    kind = "call"

    routine: str
    buffers: list[Buffer]
    given: int
    starts: tuple[SSAValue, ...]
    sizes: tuple[SSAValue, ...]
    work: SSAValue
    item: SSAValue
    cost: int | Dim
    can_fail: bool
    shared: int = 0

    @property
    def outer(self) -> int | Dim:
        return self.loops[0] if self.loops else 0

    @property
    def operands(self) -> list[Buffer]:
        return self.buffers[: self.given]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        self.buffers = [renamed.get(b, b) for b in self.buffers]


def own_fields(nest: LoopNest) -> list[str]:
    """The names of the fields that not every nest has."""
    return list(nest.__dataclass_fields__)[len(LoopNest.__dataclass_fields__) :]


def roots(nest: LoopNest) -> list[SSAValue]:
    """The values that a nest is there for."""
    found = [v for s in nest.stores for v in (s.offset, s.value)]
    for name in own_fields(nest):
        item = getattr(nest, name)
        if isinstance(item, SSAValue):
            found.append(item)
        elif isinstance(item, tuple):
            found.extend(v for v in item if isinstance(v, SSAValue))
    return found


def shared_destinations(nest: LoopNest) -> int | Dim | None:
    """The number of places in the result that threads share in a scatter; None otherwise."""
    return nest.destinations if isinstance(nest, ScatterNest) else None


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
