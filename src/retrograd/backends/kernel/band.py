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

GRAIN = 15_000  # nanoseconds of work from which on threads share it
BLOCK = 20_000  # the least for a block
CACHE = 1 << 19  # bytes that a block may touch
LEAST_ROWS = 8  # of a band of several kernels
PRODUCT_ROWS = 64  # of a matrix product that is cut into blocks
WINDOW = 40  # kernels that may be overtaken by one that joins a band


@dataclass(slots=True)
class Band:
    """Kernels in order. `rows` is 0 where one thread runs them as they are. `local` are the buffers
    that each thread has a block of."""

    kernels: list[Kernel]
    rows: int = 0
    blocks: int = 1
    epoch: int = 0
    local: list[Buffer] = field(default_factory=list)

    @property
    def block_rows(self) -> int:
        """Rows of the largest block."""
        return -(-self.rows // self.blocks)

    @property
    def reads(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.reads}

    @property
    def writes(self) -> set[Buffer]:
        return {b for k in self.kernels for b in k.outs}


class Rows:
    """What a kernel touches row by row; `count` is 0 where it has no rows."""

    def __init__(self, kernel: Kernel) -> None:
        self.reads: list[tuple[Touch, int]] = []  # with the length of the outermost loop
        self.count = 0
        counts = []
        for nest in kernel.nests:
            length = nest.outer
            if not length:
                return
            reads, writes = touches(nest)
            for t in writes:
                size = t.buffer.type.size
                assert isinstance(size, int)
                if not t.within(size // length) or size % length:
                    return
            self.reads += [(t, length) for t in reads]
            counts.append(length)
        self.count = gcd(*counts)

    def follows(self, written: set[Buffer]) -> bool:
        """Whether it reads of these buffers only the row at hand."""
        for touch, length in self.reads:
            if touch.buffer in written:
                size = touch.buffer.type.size
                assert isinstance(size, int)
                if size % length or not touch.within(size // length):
                    return False
        return True


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
        count = rows[id(first)].count
        band = Band([first], count)
        if count >= LEAST_ROWS:
            left = _grow(band, left, rows)
        _settle(band, sum(cost[id(k)] for k in band.kernels))
        bands.append(band)
    return bands


def _grow(band: Band, left: list[Kernel], rows: dict[int, Rows]) -> list[Kernel]:
    """Let later kernels join; returns those that do not."""
    written = set(band.kernels[0].outs)
    read = set(band.kernels[0].reads)
    passed: list[Kernel] = []
    blocked_writes: set[Buffer] = set()  # of kernels that were passed over
    blocked_reads: set[Buffer] = set()
    for at, kernel in enumerate(left):
        if len(passed) > WINDOW:
            return passed + left[at:]
        own = rows[id(kernel)]
        count = gcd(band.rows, own.count)
        free = not (
            blocked_writes.intersection(kernel.reads)
            or blocked_writes.intersection(kernel.outs)
            or blocked_reads.intersection(kernel.outs)
        )
        # Joining pays where it continues what the band wrote or read.
        related = not written.isdisjoint(kernel.reads) or not read.isdisjoint(kernel.reads)
        if own.count and free and related and count >= LEAST_ROWS and own.follows(written):
            if written.isdisjoint(kernel.outs) and read.isdisjoint(kernel.outs):
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
    if not band.rows or cost < GRAIN:
        band.rows = 0
        return
    touched = sum(b.bytes for b in band.reads | band.writes)
    assert isinstance(touched, int)
    blocks = max(touched // CACHE, 2)
    blocks = min(blocks, max(int(cost / BLOCK), 2), _most_blocks(band))
    band.blocks = blocks


def _most_blocks(band: Band) -> int:
    """Blocks that leave matrix products enough rows to be efficient."""
    most = band.rows
    for kernel in band.kernels:
        for nest in kernel.nests:
            if nest.kind == "gemm" and not nest.loops:
                rows = nest.info["m"].attr
                most = min(most, max(rows // PRODUCT_ROWS, min(rows, 2)))
    return most


def place_barriers(bands: Sequence[Band]) -> int:
    """Number the epochs of the bands; returns how many there are."""
    epoch = 0
    pending: list[Band] = []
    for band in bands:
        reads, writes = band.reads, band.writes
        for before in pending:
            if not band.rows and not before.rows:
                continue  # the same thread
            if before.writes & (reads | writes) or before.reads & writes:
                epoch += 1
                pending = []
                break
        band.epoch = epoch
        pending.append(band)
    return epoch + 1
