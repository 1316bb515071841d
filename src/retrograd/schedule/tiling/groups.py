"""Bands: kernels that go through their rows together, and on several threads.

The rows of a band are a number that divides the outermost loop of each of its kernels. Row by row,
a kernel reads of what the band itself writes nothing but the same row. So the rows can be cut into
blocks: a thread takes a block through all the kernels while it is in the cache, and no thread waits
for another. What only the kernels of a band use need not exist as a whole: each thread keeps a
block of it.

Rows are first taken to be iterations of outermost loops. Where such a row is itself more than the
cache can hold, as that of the scores of attention is for long sequences, rows are iterations of
several loops (`analysis.py`), and the blocks are cut within `elements`; sums over such rows are
taken block after block, all of an element by one thread.

A kernel that has no rows, or too little work to share, is a band by itself, run by one thread.
Between bands of which one needs the other's results, all blocks have to be finished: `epochs` count
these barriers.

Nothing here depends on the number of threads, so no result does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS, SUMS
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.cost_model import known, nanoseconds
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import LoopNest
from retrograd.schedule.tiling.analysis import Rows
from retrograd.schedule.tiling.partition import (
    Inside,
    Outermost,
    RowPartition,
    enough,
    families,
    is_large,
)

GRAIN = 15_000  # nanoseconds of work from which on threads share it
BLOCK = 20_000  # the least for a block
CACHE = 1 << 19  # bytes that a block may touch
FULL = 1 << 22  # bytes of one result in a block that no cache near by holds
ROW = 1 << 19  # bytes from which on a row is cut further
LEAST_ROWS = 8  # of a band of several kernels
EACH = 1 << 62  # rows of a piece, where each thread takes one, however many rows there are
SHORT = 64  # bytes of a row that is as well in memory as in the cache
PRODUCT_ROWS = 64  # of a matrix product that is cut into blocks
NARROW = 48  # columns of a product up to which a block reads its left matrix from where it is
MOST_KERNELS = 200  # of a band: the time to compile its loop grows faster than they do
WINDOW = 40  # kernels that may be overtaken by one that joins a band


@dataclass(slots=True)
class TileGroup:
    """Kernels in order. `rows` is 0 where one thread runs them as they are. `blocks` is 0 where
    it depends on sizes that are not known: then about `piece` rows are a block; if that is 0 too,
    each thread takes one block, or a few, as of a matrix product by itself, which goes through its
    rows in an order of its own; one and no more if it is `EACH`. `local` are the buffers that each
    thread has a block of.

    A band that is `together` is a region with bands of its own that threads share.

    Of `piece` rows, so many are `near`: all that they touch stays in the cache.

    No block has rows of two elements, of `within` rows each, unless that is 0. The kernels in
    `summing` add up over the rows of an element: its blocks are for one thread, in order. These
    begin where blocks of the sums do (`ops/numerics/summation.py`): each has `unit` rows, the last
    one what is left."""

    kernels: list[Kernel]
    rows: int | Dim = 0
    blocks: int = 1
    piece: int = 0
    near: int = 0
    epoch: int = 0
    local: list[Buffer] = field(default_factory=list)
    within: int = 0
    unit: int = 1
    summing: list[Kernel] = field(default_factory=list)
    together: bool = False

    @property
    def shared(self) -> bool:
        """Whether threads share it."""
        return self.rows != 0 or self.together

    @property
    def elements(self) -> int:
        """Parts that blocks do not reach beyond."""
        assert isinstance(self.rows, int)
        return self.rows // self.within if self.within else 1

    @property
    def pieces(self) -> int:
        """Blocks of each element."""
        return self.blocks // self.elements

    @property
    def many(self) -> Dim | None:
        """How many blocks there are, where that does not follow from the number of rows: rows are
        of sizes that are not known, and nothing is kept of a block only."""
        if self.blocks or self.piece in (0, EACH) or self.local:
            return None
        touched: int | Dim = 0
        for buffer in self.reads | self.writes:
            touched = touched + buffer.bytes
        blocks = touched // CACHE if isinstance(touched // self.rows, Dim) else 0
        return blocks if isinstance(blocks, Dim) else None

    @property
    def least_rows(self) -> int:
        """The fewest rows of a block, of those that count where there are `many` rows."""
        products = any(n.kind == "gemm" and not n.loops for k in self.kernels for n in k.nests)
        return PRODUCT_ROWS if products else 1

    @property
    def sizes(self) -> set[Dim]:
        """The sizes by which a band is cut."""
        return {d for d in (self.rows, self.many) if isinstance(d, Dim)}

    @property
    def block_rows(self) -> int:
        """Rows of the largest block, at most; 0 where there is no limit."""
        if not self.blocks:
            # What is left over, less than a block, is divided among them; of two at least.
            return 0 if self.piece == EACH else self.piece + self.piece // 2
        assert isinstance(self.rows, int)
        length = self.within or self.rows
        return min(-(-length // self.unit // self.pieces) * self.unit, length)

    def row_bytes(self, buffer: Buffer) -> int:
        """Bytes of a row of a buffer; 0 where they are not known, or where there may be fewer rows
        than in a block, and they are so short that it does not matter where they are."""
        size = buffer.bytes // self.rows
        if not isinstance(size, int) or size * self.rows != buffer.bytes:
            return 0
        return size if isinstance(self.rows, int) or size >= SHORT else 0

    def sums(self, kernel: Kernel) -> bool:
        """Whether a kernel adds up over rows."""
        return any(k is kernel for k in self.summing)

    @property
    def reads(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.reads}

    @property
    def writes(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.outs}


def make_bands(kernels: Sequence[Kernel], window: int = WINDOW) -> list[TileGroup]:
    """Kernels, in order, as bands, in an order that respects what they need of each other. One that
    joins a band overtakes at most so many others (`window`)."""
    cost = {id(k): nanoseconds(k) for k in kernels}
    if sum(cost.values()) < GRAIN:
        return [TileGroup([k]) for k in kernels]
    rows = {id(k): Rows(k) for k in kernels}
    family = families(kernels, rows, ROW)
    deep = _deep(kernels, rows, family, window)
    left = list(kernels)
    bands: list[TileGroup] = []
    while left:
        first = left.pop(0)
        inside = Inside(rows, family, LEAST_ROWS, ROW)
        if id(first) in deep and inside.try_join(first, set()):
            band, left = _grow(inside, first, left, window)
        else:
            outermost = Outermost(first, rows, deep, LEAST_ROWS)
            band, left = _grow(outermost, first, left, window)
        _settle(band, sum(cost[id(k)] for k in band.kernels))
        bands.append(band)
    return bands


def _deep(
    kernels: Sequence[Kernel], rows: Mapping[int, Rows], family: Mapping[int, int], window: int
) -> set[int]:
    """The kernels (by `id`) that are better joined by rows of several loops: where a row of the
    outermost loop is too large, and large buffers are written and read by the smaller ones."""
    found: set[int] = set()
    for at, first in enumerate(kernels):
        count = rows[id(first)].count
        large = any(is_large(b, count, ROW) for b in (*first.outs, *first.reads))
        inside = Inside(rows, family, LEAST_ROWS, ROW)
        if id(first) in found or not large or not inside.try_join(first, set()):
            continue
        others = [k for k in kernels[at + 1 :] if id(k) not in found]
        band, _ = _grow(inside, first, others, window)
        made = {b for k in band.kernels if not band.sums(k) for b in k.outs}
        if any(is_large(b, 1, ROW) for b in made & band.reads):
            found |= {id(k) for k in band.kernels}
    return found


def _grow(
    joint: RowPartition, first: Kernel, left: list[Kernel], window: int
) -> tuple[TileGroup, list[Kernel]]:
    """A band of a kernel and later ones that join it; and those that do not."""
    band = TileGroup([first], joint.rows)
    if enough(joint.rows, LEAST_ROWS):
        left = _join(joint, band, left, window)
    band.rows, band.within, band.summing = joint.rows, joint.within, joint.summing
    return band, left


def _join(joint: RowPartition, band: TileGroup, left: list[Kernel], window: int) -> list[Kernel]:
    """Let later kernels join; returns those that do not."""
    written = set(band.kernels[0].outs)
    read = set(band.kernels[0].reads)
    passed: list[Kernel] = []
    blocked_writes: set[Buffer] = set()  # of kernels that were passed over
    blocked_reads: set[Buffer] = set()
    for at, kernel in enumerate(left):
        if len(passed) > window or len(band.kernels) >= MOST_KERNELS:
            return passed + left[at:]
        free = not (
            blocked_writes.intersection(kernel.reads)
            or blocked_writes.intersection(kernel.outs)
            or blocked_reads.intersection(kernel.outs)
        )
        # Joining pays where it continues what the band wrote or read.
        related = not written.isdisjoint(kernel.reads) or not read.isdisjoint(kernel.reads)
        related = related or joint.should_join(kernel)
        fresh = written.isdisjoint(kernel.outs) and read.isdisjoint(kernel.outs)
        whole = {b for k in joint.summing for b in k.outs}  # once all rows are added
        fresh = fresh and whole.isdisjoint(kernel.reads)
        if kernel.again:  # what is computed again is for another band than the first time
            fresh = fresh and not any(n in k.nodes for k in band.kernels for n in kernel.nodes)
        if free and related and fresh and _fits(band, kernel) and joint.try_join(kernel, written):
            band.kernels.append(kernel)
            written.update(kernel.outs)
            read.update(kernel.reads)
            continue
        passed.append(kernel)
        blocked_writes.update(kernel.outs)
        blocked_reads.update(kernel.reads)
    return passed


def _fits(band: TileGroup, kernel: Kernel) -> bool:
    """Whether blocks with rows enough for the products of a band, and of one more kernel, still fit
    into the cache. One image's patches may fill it, and a product of matrices wants 32 images."""
    if not isinstance(band.rows, int) or not band.rows:
        return True
    kernels = [*band.kernels, kernel]
    rows = band.rows // _most_blocks(band.rows, kernels)
    sizes = [b.bytes // band.rows for k in kernels for b in k.outs if isinstance(b.bytes, int)]
    return rows <= 1 or rows * max(sizes, default=0) <= FULL


def _settle(band: TileGroup, cost: float) -> None:
    """Decide whether threads share a band, and into how many blocks its rows are cut."""
    if band.rows == 0 or cost < GRAIN:
        band.rows = 0
        return
    if band.within:
        rows = _rows_inside(band)
        if band.summing:
            blocks = max(min(rows, SUMS.group) // PRODUCTS.block, 1)
            band.unit = rows = PRODUCTS.block << blocks.bit_length() - 1
        band.blocks = band.elements * -(-band.within // rows)
        return
    if any("places" in n.info for k in band.kernels for n in k.nests):
        band.blocks, band.piece = 0, EACH  # for each block, all positions are looked at
        return
    touched: int | Dim = 0
    for buffer in band.reads | band.writes:
        touched = touched + buffer.bytes
    nests = [n for k in band.kernels for n in k.nests]
    products = [n for n in nests if n.kind == "gemm" and not n.loops]
    alone = len(nests) == len(products) == 1 or any(map(_in_strips, products))
    if alone or isinstance(touched, Dim) or isinstance(band.rows, Dim):
        band.blocks = 0
        band.piece = band.near = 0 if alone else _piece(band, touched)
        if products and band.piece:  # each block copies all of the right matrix
            few = isinstance(band.rows, int) and band.rows < 4 * PRODUCT_ROWS
            band.piece = 0 if few else max(band.piece, PRODUCT_ROWS)
        return
    blocks = max(touched // CACHE, 2)
    blocks = min(blocks, max(int(cost / BLOCK), 2), _most_blocks(band.rows, band.kernels))
    band.blocks = blocks


def _in_strips(product: LoopNest) -> bool:
    """Whether blocks of a product read strips of a large matrix, a few numbers of each of its rows:
    the wider the better, since each lies in a page of its own."""
    m, n, k = (product.info[s].attr for s in "mnk")
    if isinstance(m, Dim) or isinstance(n, Dim) or isinstance(k, Dim):
        return False
    turned = bool(product.info["a"][1])
    return turned and n <= NARROW and m * k * product.info["buffers"][0].type.dtype.itemsize > CACHE


def _rows_inside(band: TileGroup) -> int:
    """Rows of a block of an element: such that the largest of what they write stays in the cache,
    with what is made of it next, but products have rows enough."""
    assert isinstance(band.rows, int)
    made = [b.bytes for k in band.kernels if not band.sums(k) for b in k.outs]
    row = max((n // band.rows for n in made if isinstance(n, int)), default=0)
    return max(CACHE // max(row, 1), PRODUCT_ROWS)


def _piece(band: TileGroup, touched: int | Dim) -> int:
    """Rows that fit into the cache, of what is touched row by row: where they are many, what is the
    same for all is little."""
    rows, size = known(band.rows), known(touched)
    return max(CACHE * rows // max(size, 1), 1)


def _most_blocks(most: int, kernels: Sequence[Kernel]) -> int:
    """Blocks of so many rows at most that leave matrix products enough rows to be efficient."""
    for kernel in kernels:
        for nest in kernel.nests:
            if nest.kind == "gemm" and not nest.loops:
                rows = known(nest.info["m"].attr)
                most = min(most, max(rows // PRODUCT_ROWS, min(rows, 2)))
    return most


def place_barriers(bands: Sequence[TileGroup]) -> None:
    """Number the epochs of the bands."""
    epoch = 0
    # What was written and read since the latest barrier: by bands that threads share, and by all. A
    # band that one thread runs need not wait for others of that kind.
    shared, every = (set[Buffer](), set[Buffer]()), (set[Buffer](), set[Buffer]())
    for band in bands:
        reads, writes = band.reads, band.writes
        written, read = every if band.shared else shared
        if not (written.isdisjoint(reads | writes) and read.isdisjoint(writes)):
            epoch += 1
            for touched in (*shared, *every):
                touched.clear()
        band.epoch = epoch
        for written, read in (every, shared) if band.shared else (every,):
            written |= writes
            read |= reads
