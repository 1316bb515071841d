"""What the rows of a band are: each kernel that joins has to agree with those that are there."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Protocol

from retrograd.backends.kernel.buffer import Buffer
from retrograd.backends.kernel.kernel import Kernel
from retrograd.backends.kernel.rows import Rows, Sums, common, element
from retrograd.ir import Dim


class Joint(Protocol):
    """Kernels of a band so far. `rows` of them, in elements of `within` rows, over which the
    kernels in `summing` add up."""

    rows: int | Dim
    within: int
    summing: list[Kernel]

    def take(self, kernel: Kernel, written: set[Buffer]) -> bool:
        """Let a kernel join, if it goes by the same rows; `written` are the buffers that those
        before it write."""
        ...


class Outermost:
    """Rows are iterations of the outermost loops. `others` (by `id`) are better off elsewhere."""

    def __init__(
        self, first: Kernel, rows: Mapping[int, Rows], others: set[int], least: int
    ) -> None:
        self.rows: int | Dim = rows[id(first)].count
        self.within = 0
        self.summing: list[Kernel] = []
        self._all = rows
        self._others = others
        self._least = least

    def take(self, kernel: Kernel, written: set[Buffer]) -> bool:
        own = self._all[id(kernel)]
        count = common(self.rows, own.count) if own.count != 0 else 0
        if id(kernel) in self._others or not enough(count, self._least):
            return False
        if not own.follows(written):
            return False
        self.rows = count
        return True


class Inside:
    """Rows are iterations of several loops, as many as it takes for a row of what is written to be
    no more than `most` bytes."""

    def __init__(self, rows: Mapping[int, Rows], least: int, most: int) -> None:
        self.rows: int | Dim = 0
        self.within = 0
        self.summing: list[Kernel] = []
        self._all = rows
        self._least = least
        self._most = most
        self._kernels: list[Kernel] = []

    def take(self, kernel: Kernel, written: set[Buffer]) -> bool:
        own, sums = self._all[id(kernel)], Sums(kernel)
        # What reads large buffers by the terms of its sums, rather than by its results, adds up.
        far = {b for b in kernel.reads if b.kind == "temporary" and is_large(b, own.count, self._most)}
        for count in sums.counts() if not self.rows else [self.rows]:
            if far and isinstance(count, int) and sums.divides(count, written | far):
                return self._join(kernel, count, summed=True)
        count = gcd(self._number, own.finest)
        if own.finest and own.divides(count, written) and self._small(kernel, count):
            return self._join(kernel, count, summed=False)
        if self._number and sums.divides(self._number, written):
            return self._join(kernel, self._number, summed=True)
        return False

    @property
    def _number(self) -> int:
        assert isinstance(self.rows, int)
        return self.rows

    def _small(self, kernel: Kernel, count: int) -> bool:
        return not any(is_large(b, count, self._most) for b in kernel.outs)

    def _join(self, kernel: Kernel, count: int, summed: bool) -> bool:
        kernels = [*self._kernels, kernel]
        summing = [*self.summing, kernel] if summed else self.summing
        within = element(kernels, summing, count)
        if not (enough(count, self._least) and enough(within, self._least)):
            return False
        self.rows, self.within = count, within
        self._kernels, self.summing = kernels, summing
        return True


def enough(rows: int | Dim, least: int) -> bool:
    """Whether so many rows can be shared by several kernels."""
    return isinstance(rows, Dim) or rows >= least


def is_large(buffer: Buffer, rows: int | Dim, most: int) -> bool:
    """Whether one of so many rows of a buffer is more than `most` bytes."""
    size = buffer.bytes
    return isinstance(size, int) and isinstance(rows, int) and size // max(rows, 1) > most
