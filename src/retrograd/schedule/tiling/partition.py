"""What the rows of a tile group are: each kernel that joins has to agree with those that are
there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Protocol

from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.tiling.analysis import Rows, Sums, common, element


class RowPartition(Protocol):
    """Kernels of a tile group so far. `rows` of them, in elements of `within` rows, over which the
    kernels in `summing` add up."""

    rows: int | Dim
    within: int
    summing: list[Kernel]

    def try_join(self, kernel: Kernel, written: set[Buffer]) -> bool:
        """Let a kernel join, if it goes by the same rows; `written` are the buffers that those
        before it write."""
        ...

    def should_join(self, kernel: Kernel) -> bool:
        """Whether a kernel should join even if it reads nothing that the others touch."""
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

    def try_join(self, kernel: Kernel, written: set[Buffer]) -> bool:
        own = self._all[id(kernel)]
        count = common(self.rows, own.count) if own.count != 0 else 0
        if id(kernel) in self._others or not enough(count, self._least):
            return False
        if not own.follows(written):
            return False
        self.rows = count
        return True

    def should_join(self, kernel: Kernel) -> bool:
        return False


class Inside:
    """Rows are iterations of several loops, as many as it takes for a row of what is written to be
    no more than `most` bytes. `family` says (by `id`) which kernels large buffers connect."""

    def __init__(
        self, rows: Mapping[int, Rows], family: Mapping[int, int], least: int, most: int
    ) -> None:
        self.rows: int | Dim = 0
        self.within = 0
        self.summing: list[Kernel] = []
        self._all = rows
        self._least = least
        self._most = most
        self._kernels: list[Kernel] = []
        self._family = family

    def should_join(self, kernel: Kernel) -> bool:
        return id(kernel) in self._family and self._family[id(kernel)] == self._family.get(
            id(self._kernels[0])
        )

    def try_join(self, kernel: Kernel, written: set[Buffer]) -> bool:
        own, sums = self._all[id(kernel)], Sums(kernel)
        # What reads large buffers by the terms of its sums, rather than by its results, adds up.
        far = {b for b in kernel.reads if is_large(b, own.count, self._most)}
        for count in sums.counts() if not self.rows else [self.rows]:
            assert isinstance(count, int)
            if far and sums.divides(count, written | far) and self._join(kernel, count, True):
                return True
        count = gcd(self._number, own.finest)
        if own.finest and own.divides(count, written) and self._small(kernel, count):
            return self._join(kernel, count, False)
        possible = self._number and sums.divides(self._number, written)
        return bool(possible) and self._join(kernel, self._number, True)

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
    """Whether one of so many rows of a temporary is more than `most` bytes."""
    size = buffer.bytes
    if buffer.kind != "temporary" or isinstance(size, Dim) or isinstance(rows, Dim):
        return False
    return size // max(rows, 1) > most


def families(kernels: Sequence[Kernel], rows: Mapping[int, Rows], most: int) -> dict[int, int]:
    """For the kernels (by `id`) that touch buffers of which a row is larger than `most` bytes, the
    number of the family that such buffers connect them to."""
    large = {b for k in kernels for b in k.outs if is_large(b, rows[id(k)].count, most)}
    members: list[tuple[list[Kernel], set[Buffer]]] = []
    for kernel in kernels:
        own, touched = [kernel], large.intersection((*kernel.outs, *kernel.reads))
        if not touched:
            continue
        apart = []
        for others, theirs in members:
            if theirs.isdisjoint(touched):
                apart.append((others, theirs))
            else:
                own, touched = others + own, theirs | touched
        members = [*apart, (own, touched)]
    return {id(k): n for n, (own, _) in enumerate(members) for k in own}
