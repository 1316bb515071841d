"""Tile groups: kernels that go through their rows together, and on several threads.

The rows of a tile group are a number that divides the outermost loop of each of its kernels. Row by
row, a kernel reads of what the tile group itself writes nothing but the same row. So the rows can
be cut into tiles: a thread takes a tile through all the kernels while it is in the cache, and no
thread waits for another. What only the kernels of a tile group use need not exist as a whole: each
thread keeps a tile of it.

Rows are first taken to be iterations of outermost loops. Where such a row is itself more than the
cache can hold, as that of the scores of attention is for long sequences, rows are iterations of
several loops (`analysis.py`), and the tiles are cut within `elements`; sums over such rows are
taken tile after tile, all of an element by one thread.

A kernel that has no rows, or too little work to share, is a tile group by itself, run by one
thread. Between tile groups of which one needs the other's results, all tiles have to be finished:
`epochs` count these barriers.

Nothing here depends on the number of threads, so no result does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS, SUMS
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.cost_model import known, nanoseconds
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import ColumnReduction, GemmNest, shared_destinations, streams
from retrograd.schedule.tiling.analysis import Rows
from retrograd.schedule.tiling.partition import (
    Inside,
    Outermost,
    RowPartition,
    enough,
    families,
    is_large,
)
from retrograd.tuning import TUNING

EACH = 1 << 62  # rows of a piece, where each thread takes one, however many rows there are


@dataclass(slots=True)
class TileGroup:
    """Kernels in order. `rows` is 0 where one thread runs them as they are. `tiles` is 0 where
    it depends on sizes that are not known: then about `tile_rows` rows are a tile; if that is 0
    too, each thread takes one tile, or a few, as of a matrix product by itself, which goes through
    its rows in an order of its own; one and no more if it is `EACH`. `local` are the buffers that
    each thread has a tile of.

    A tile group that is `is_region` is a region with tile groups of its own that threads share.

    Of `tile_rows` rows, so many are `cached_rows`: all that they touch stays in the cache.

    No tile has rows of two elements, of `element_rows` rows each, unless that is 0. The kernels in
    `summing` add up over the rows of an element: its tiles are for one thread, in order. These
    begin where blocks of the sums do (`ops/numerics/summation.py`): each has `row_multiple` rows,
    the last one what is left."""

    kernels: list[Kernel]
    rows: int | Dim = 0
    tiles: int = 1
    tile_rows: int = 0
    cached_rows: int = 0
    epoch: int = 0
    local: list[Buffer] = field(default_factory=list)
    element_rows: int = 0
    row_multiple: int = 1
    summing: list[Kernel] = field(default_factory=list)
    is_region: bool = False

    @property
    def shared(self) -> bool:
        """Whether threads share it."""
        return self.rows != 0 or self.is_region

    @property
    def elements(self) -> int:
        """Parts that tiles do not reach beyond."""
        assert isinstance(self.rows, int)
        return self.rows // self.element_rows if self.element_rows else 1

    @property
    def tiles_per_element(self) -> int:
        """Tiles of each element."""
        return self.tiles // self.elements

    @property
    def tile_count(self) -> Dim | None:
        """How many tiles there are, where that does not follow from the number of rows: rows are
        of sizes that are not known, and nothing is kept of a tile only."""
        if self.tiles or self.tile_rows in (0, EACH) or self.local:
            return None
        touched: int | Dim = 0
        for buffer in self.reads | self.writes:
            touched = touched + buffer.bytes
        tiles = touched // TUNING.tile_bytes if isinstance(touched // self.rows, Dim) else 0
        return tiles if isinstance(tiles, Dim) else None

    @property
    def min_tile_rows(self) -> int:
        """The fewest rows of a tile, of those that count where there are `tile_count` rows."""
        products = any(
            isinstance(n, GemmNest) and not n.loops for k in self.kernels for n in k.nests
        )
        return TUNING.gemm_tile_rows if products else 1

    @property
    def sizes(self) -> list[Dim]:
        """The sizes by which a tile group is cut, each once."""
        return [d for d in dict.fromkeys((self.rows, self.tile_count)) if isinstance(d, Dim)]

    @property
    def max_tile_rows(self) -> int:
        """Rows of the largest tile, at most; 0 where there is no limit."""
        if not self.tiles:
            # What is left over, less than a tile, is divided among them; of two at least.
            return 0 if self.tile_rows == EACH else self.tile_rows + self.tile_rows // 2
        assert isinstance(self.rows, int)
        length = self.element_rows or self.rows
        return min(
            -(-length // self.row_multiple // self.tiles_per_element) * self.row_multiple, length
        )

    @property
    def tile_multiple(self) -> int:
        """A number that divides the first row of each tile, and the row after its last."""
        if not self.tiles or not isinstance(self.rows, int):
            return 1
        length, tiles = self.element_rows or self.rows, self.tiles_per_element
        even = self.row_multiple * tiles
        return length // tiles if length % even == 0 else gcd(self.row_multiple, length)

    def row_bytes(self, buffer: Buffer) -> int:
        """Bytes of a row of a buffer; 0 where they are not known, or where there may be fewer rows
        than in a tile, and they are so short that it does not matter where they are."""
        size = buffer.bytes // self.rows
        if not isinstance(size, int) or size * self.rows != buffer.bytes:
            return 0
        return size if isinstance(self.rows, int) or size >= TUNING.short_row_bytes else 0

    def sums(self, kernel: Kernel) -> bool:
        """Whether a kernel adds up over rows."""
        return any(k is kernel for k in self.summing)

    @property
    def reads(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.reads}

    @property
    def writes(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.outs}


def make_tile_groups(
    kernels: Sequence[Kernel], window: int = TUNING.overtaken_kernels
) -> list[TileGroup]:
    """Kernels, in order, as tile groups, in an order that respects what they need of each other.
    One that joins a tile group overtakes at most so many others (`window`)."""
    cost = {id(k): nanoseconds(k) for k in kernels}
    if sum(cost.values()) < TUNING.parallel_grain_ns:
        return [TileGroup([k]) for k in kernels]
    rows = {id(k): Rows(k) for k in kernels}
    family = families(kernels, rows, TUNING.row_split_bytes)
    deep = _deep(kernels, rows, family, window)
    left = list(kernels)
    tile_groups: list[TileGroup] = []
    while left:
        first = left.pop(0)
        inside = Inside(rows, family, TUNING.group_rows, TUNING.row_split_bytes)
        if id(first) in deep and inside.try_join(first, set()):
            group, left = _grow(inside, first, left, window)
        else:
            outermost = Outermost(first, rows, deep, TUNING.group_rows)
            group, left = _grow(outermost, first, left, window)
        _settle(group, sum(cost[id(k)] for k in group.kernels))
        tile_groups.append(group)
    return tile_groups


def _deep(
    kernels: Sequence[Kernel], rows: Mapping[int, Rows], family: Mapping[int, int], window: int
) -> set[int]:
    """The kernels (by `id`) that are better joined by rows of several loops: where a row of the
    outermost loop is too large, and large buffers are written and read by the smaller ones."""
    found: set[int] = set()
    for at, first in enumerate(kernels):
        count = rows[id(first)].count
        large = any(is_large(b, count, TUNING.row_split_bytes) for b in (*first.outs, *first.reads))
        inside = Inside(rows, family, TUNING.group_rows, TUNING.row_split_bytes)
        if id(first) in found or not large or not inside.try_join(first, set()):
            continue
        others = [k for k in kernels[at + 1 :] if id(k) not in found]
        group, _ = _grow(inside, first, others, window)
        made = {b for k in group.kernels if not group.sums(k) for b in k.outs}
        if any(is_large(b, 1, TUNING.row_split_bytes) for b in made & group.reads):
            found |= {id(k) for k in group.kernels}
    return found


def _grow(
    joint: RowPartition, first: Kernel, left: list[Kernel], window: int
) -> tuple[TileGroup, list[Kernel]]:
    """A tile group of a kernel and later ones that join it; and those that do not."""
    group = TileGroup([first], joint.rows)
    if enough(joint.rows, TUNING.group_rows):
        left = _join(joint, group, left, window)
    group.rows, group.element_rows, group.summing = joint.rows, joint.within, joint.summing
    return group, left


def _join(joint: RowPartition, group: TileGroup, left: list[Kernel], window: int) -> list[Kernel]:
    """Let later kernels join; returns those that do not."""
    written = set(group.kernels[0].outs)
    read = set(group.kernels[0].reads)
    passed: list[Kernel] = []
    blocked_writes: set[Buffer] = set()  # of kernels that were passed over
    blocked_reads: set[Buffer] = set()
    for at, kernel in enumerate(left):
        if len(passed) > window or len(group.kernels) >= TUNING.group_kernels:
            return passed + left[at:]
        free = not (
            blocked_writes.intersection(kernel.reads)
            or blocked_writes.intersection(kernel.outs)
            or blocked_reads.intersection(kernel.outs)
        )
        # Joining pays where it continues what the tile group wrote or read.
        related = not written.isdisjoint(kernel.reads) or not read.isdisjoint(kernel.reads)
        related = related or joint.should_join(kernel)
        fresh = written.isdisjoint(kernel.outs) and read.isdisjoint(kernel.outs)
        whole = {b for k in joint.summing for b in k.outs}  # once all rows are added
        fresh = fresh and whole.isdisjoint(kernel.reads)
        if kernel.again:  # what is computed again is for another tile group than the first time
            fresh = fresh and not any(n in k.nodes for k in group.kernels for n in kernel.nodes)
        if free and related and fresh and _fits(group, kernel) and joint.try_join(kernel, written):
            group.kernels.append(kernel)
            written.update(kernel.outs)
            read.update(kernel.reads)
            continue
        passed.append(kernel)
        blocked_writes.update(kernel.outs)
        blocked_reads.update(kernel.reads)
    return passed


def _fits(group: TileGroup, kernel: Kernel) -> bool:
    """Whether tiles with rows enough for the products of a tile group, and of one more kernel,
    still fit into the cache. One image's patches may fill it, and a product of matrices wants 32
    images."""
    if not isinstance(group.rows, int) or not group.rows:
        return True
    kernels = [*group.kernels, kernel]
    rows = group.rows // _most_tiles(group.rows, kernels)
    if rows <= 1:
        return True
    made = [n for k in kernels for b in k.outs if isinstance(n := b.bytes, int)]
    return rows * (max(made, default=0) // group.rows) <= TUNING.tile_result_bytes


def _settle(group: TileGroup, cost: float) -> None:
    """Decide whether threads share a tile group, and into how many tiles its rows are cut."""
    if group.rows == 0 or cost < TUNING.parallel_grain_ns:
        group.rows = 0
        return
    if group.element_rows:
        rows = _rows_inside(group)
        if group.summing:
            blocks = max(min(rows, SUMS.group) // PRODUCTS.block, 1)
            group.row_multiple = rows = PRODUCTS.block << blocks.bit_length() - 1
        group.tiles = group.elements * -(-group.element_rows // rows)
        return
    if any(shared_destinations(n) is not None for k in group.kernels for n in k.nests):
        group.tiles, group.tile_rows = 0, EACH  # for each tile, all positions are looked at
        return
    touched: int | Dim = 0
    for buffer in group.reads | group.writes:
        touched = touched + buffer.bytes
    nests = [n for k in group.kernels for n in k.nests]
    products = [n for n in nests if isinstance(n, GemmNest) and not n.loops]
    wide = len(nests) == 1 and nests[0].vec == 0 and streams(nests[0])
    alone = wide or len(nests) == len(products) == 1 or any(map(_in_strips, products))
    if alone or isinstance(touched, Dim) or isinstance(group.rows, Dim):
        group.tiles = 0
        group.tile_rows = group.cached_rows = 0 if alone else _cached_rows(group, touched)
        if products and group.tile_rows:  # each tile copies all of the right matrix
            few = isinstance(group.rows, int) and group.rows < 4 * TUNING.gemm_tile_rows
            group.tile_rows = 0 if few else max(group.tile_rows, TUNING.gemm_tile_rows)
        return
    tiles = max(touched // TUNING.tile_bytes, 2)
    tiles = min(
        tiles, max(int(cost / TUNING.tile_grain_ns), 2), _most_tiles(group.rows, group.kernels)
    )
    group.tiles = tiles


def _in_strips(product: GemmNest) -> bool:
    """Whether tiles of a product read strips of a large matrix, a few numbers of each of its rows:
    the wider the better, since each lies in a memory page of its own. Where rows lie a power of two
    apart, strips share few places in the caches, too, so that they are read from memory again."""
    m, n, k = product.mnk
    if isinstance(m, Dim) or isinstance(n, Dim) or isinstance(k, Dim):
        return False
    itemsize = product.operands[0].type.dtype.itemsize
    shared = product.a.leading.attr * itemsize % TUNING.gemm_copy_stride_bytes == 0
    most = TUNING.strip_gemm_columns if shared else TUNING.narrow_gemm_columns
    return product.a.transposed and n <= most and m * k * itemsize > TUNING.tile_bytes


def _rows_inside(group: TileGroup) -> int:
    """Rows of a tile of an element: such that the largest of what they write stays in the cache,
    with what is made of it next, but products have rows enough."""
    assert isinstance(group.rows, int)
    products = any(isinstance(n, GemmNest) for k in group.kernels for n in k.nests)
    made = [b.bytes for k in group.kernels if not group.sums(k) for b in k.outs]
    row = max((n // group.rows for n in made if isinstance(n, int)), default=0)
    return max(TUNING.tile_bytes // max(row, 1), TUNING.gemm_tile_rows if products else 1)


def _cached_rows(group: TileGroup, touched: int | Dim) -> int:
    """Rows that fit into the cache, of what is touched row by row: where they are many, what is the
    same for all is little."""
    rows, size = known(group.rows), known(touched)
    return max(TUNING.tile_bytes * rows // max(size, 1), 1)


def _most_tiles(most: int, kernels: Sequence[Kernel]) -> int:
    """Tiles of so many rows at most that leave matrix products enough rows to be efficient, and
    sums of columns whole lines of the cache, several if there are."""
    for kernel in kernels:
        for nest in kernel.nests:
            if isinstance(nest, ColumnReduction) and nest.vec == 0 and not nest.is_contraction:
                few = min(most // TUNING.narrow_sum_columns, 2)
                most = max(most // TUNING.sum_columns, few, 1)
            if nest.vec == 0 and streams(nest):
                most = max(most // TUNING.streamed_tile_columns, 1)
            if isinstance(nest, GemmNest) and not nest.loops:
                rows = known(nest.mnk[0])
                most = min(most, max(rows // TUNING.gemm_tile_rows, min(rows, 2)))
    return most


def place_barriers(tile_groups: Sequence[TileGroup]) -> None:
    """Number the epochs of the tile groups."""
    epoch = 0
    # What was written and read since the latest barrier: by tile groups that threads share, and by
    # all. A tile group that one thread runs need not wait for others of that kind.
    shared, every = (set[Buffer](), set[Buffer]()), (set[Buffer](), set[Buffer]())
    for group in tile_groups:
        reads, writes = group.reads, group.writes
        written, read = every if group.shared else shared
        if not (written.isdisjoint(reads | writes) and read.isdisjoint(writes)):
            epoch += 1
            for touched in (*shared, *every):
                touched.clear()
        group.epoch = epoch
        for written, read in (every, shared) if group.shared else (every,):
            written |= writes
            read |= reads
