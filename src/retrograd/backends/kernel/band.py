"""Bands: kernels that go through their rows together, and on several threads.

The rows of a band are a number that divides the outermost loop of each of its kernels. Row by row,
a kernel reads of what the band itself writes nothing but the same row. So the rows can be cut into
blocks: a thread takes a block through all the kernels while it is in the cache, and no thread waits
for another. What only the kernels of a band use need not exist as a whole: each thread keeps a
block of it.

A kernel that has no rows, or too little work to share, is a band by itself, run by one thread.
Between bands of which one needs the other's results, the threads wait for each other: `epochs`
count these barriers.

Nothing here depends on the number of threads, so no result does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from retrograd.backends.kernel.access import Touch, touches
from retrograd.backends.kernel.buffer import Buffer
from retrograd.backends.kernel.cost import nanoseconds
from retrograd.backends.kernel.kernel import Kernel
from retrograd.ir import Dim

GRAIN = 15_000  # nanoseconds of work from which on threads share it
BLOCK = 20_000  # the least for a block
CACHE = 1 << 19  # bytes that a block may touch
LEAST_ROWS = 8  # of a band of several kernels
PRODUCT_ROWS = 64  # of a matrix product that is cut into blocks
MOST_KERNELS = 200  # of a band: the time to compile its loop grows faster than they do
WINDOW = 40  # kernels that may be overtaken by one that joins a band


@dataclass(slots=True)
class Band:
    """Kernels in order. `rows` is 0 where one thread runs them as they are. `blocks` is 0 where
    the number of rows is not known: then each thread takes one block, or, of matrix `products`, as
    many as the rows are worth. `local` are the buffers that each thread has a block of."""

    kernels: list[Kernel]
    rows: int | Dim = 0
    blocks: int = 1
    epoch: int = 0
    local: list[Buffer] = field(default_factory=list)

    @property
    def block_rows(self) -> int:
        """Rows of the largest block."""
        assert isinstance(self.rows, int)
        return -(-self.rows // self.blocks)

    @property
    def products(self) -> bool:
        """Whether rows of one matrix product are among its rows."""
        nests = (n for k in self.kernels for n in k.nests)
        return any(n.kind == "gemm" and not n.loops for n in nests)

    @property
    def reads(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.reads}

    @property
    def writes(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.outs}


class Rows:
    """What a kernel touches row by row; `count` is 0 where it has no rows."""

    def __init__(self, kernel: Kernel) -> None:
        self.reads: list[tuple[Touch, int | Dim]] = []  # with the length of the outermost loop
        self.count: int | Dim = 0
        for k, nest in enumerate(kernel.nests):
            length = nest.outer
            if length == 0:
                self.count = 0
                return
            reads, writes = touches(nest)
            if not all(t.within(share(t, length)) for t in writes):
                self.count = 0
                return
            self.reads += [(t, length) for t in reads]
            self.count = common(self.count, length) if k else length

    def follows(self, written: set[Buffer]) -> bool:
        """Whether it reads of these buffers only the row at hand."""
        return all(t.within(share(t, length)) for t, length in self.reads if t.buffer in written)


def share(touch: Touch, length: int | Dim) -> int | Dim:
    """The elements of the buffer for each iteration of a loop, -1 where that is not a number."""
    size = touch.buffer.type.size
    return size // length if size % length == 0 else -1


def common(a: int | Dim, b: int | Dim) -> int | Dim:
    """The largest number known to divide both; 0 if none is known."""
    if isinstance(a, int) and isinstance(b, int):
        return gcd(a, b)
    for x, y in ((a, b), (b, a)):
        if y == x or (y != 0 and isinstance(y, Dim) and x % y == 0):
            return y
    return 0


def make_bands(kernels: Sequence[Kernel]) -> list[Band]:
    """Kernels, in order, as bands, in an order that respects what they need of each other."""
    cost = {id(k): nanoseconds(k) for k in kernels}
    if sum(cost.values()) < GRAIN:
        return [Band([k]) for k in kernels]
    rows = {id(k): Rows(k) for k in kernels}
    left = list(kernels)
    bands: list[Band] = []
    while left:
        first = left.pop(0)
        band = Band([first], rows[id(first)].count)
        if enough(band.rows):
            left = _grow(band, left, rows)
        _settle(band, sum(cost[id(k)] for k in band.kernels))
        bands.append(band)
    return bands


def enough(rows: int | Dim) -> bool:
    """Whether so many rows can be shared by several kernels."""
    return isinstance(rows, Dim) or rows >= LEAST_ROWS


def _grow(band: Band, left: list[Kernel], rows: dict[int, Rows]) -> list[Kernel]:
    """Let later kernels join; returns those that do not."""
    written = set(band.kernels[0].outs)
    read = set(band.kernels[0].reads)
    passed: list[Kernel] = []
    blocked_writes: set[Buffer] = set()  # of kernels that were passed over
    blocked_reads: set[Buffer] = set()
    for at, kernel in enumerate(left):
        if len(passed) > WINDOW or len(band.kernels) >= MOST_KERNELS:
            return passed + left[at:]
        own = rows[id(kernel)]
        count = common(band.rows, own.count) if own.count != 0 else 0
        free = not (
            blocked_writes.intersection(kernel.reads)
            or blocked_writes.intersection(kernel.outs)
            or blocked_reads.intersection(kernel.outs)
        )
        # Joining pays where it continues what the band wrote or read.
        related = not written.isdisjoint(kernel.reads) or not read.isdisjoint(kernel.reads)
        fresh = written.isdisjoint(kernel.outs) and read.isdisjoint(kernel.outs)
        if enough(count) and free and related and fresh and own.follows(written):
            band.kernels.append(kernel)
            band.rows = count
            written.update(kernel.outs)
            read.update(kernel.reads)
            continue
        passed.append(kernel)
        blocked_writes.update(kernel.outs)
        blocked_reads.update(kernel.reads)
    return passed


def _settle(band: Band, cost: float) -> None:
    """Decide whether threads share a band, and into how many blocks its rows are cut."""
    if band.rows == 0 or cost < GRAIN:
        band.rows = 0
        return
    if any("places" in n.info for k in band.kernels for n in k.nests):
        band.blocks = 0  # each block goes through all positions: the fewer, the better
        return
    touched: int | Dim = 0
    for buffer in band.reads | band.writes:
        touched = touched + buffer.bytes
    if isinstance(touched, Dim) or isinstance(band.rows, Dim):
        band.blocks = 0
        return
    blocks = max(touched // CACHE, 2)
    blocks = min(blocks, max(int(cost / BLOCK), 2), _most_blocks(band))
    band.blocks = blocks


def _most_blocks(band: Band) -> int:
    """Blocks that leave matrix products enough rows to be efficient."""
    most = band.rows
    assert isinstance(most, int)
    for kernel in band.kernels:
        for nest in kernel.nests:
            if nest.kind == "gemm" and not nest.loops:
                rows = nest.info["m"].attr
                most = min(most, max(rows // PRODUCT_ROWS, min(rows, 2)))
    return most


def place_barriers(bands: Sequence[Band]) -> None:
    """Number the epochs of the bands."""
    epoch = 0
    pending: list[Band] = []
    for band in bands:
        reads, writes = band.reads, band.writes
        for before in pending:
            if band.rows == 0 and before.rows == 0:
                continue  # the same thread
            if before.writes & (reads | writes) or before.reads & writes:
                epoch += 1
                pending = []
                break
        band.epoch = epoch
        pending.append(band)
