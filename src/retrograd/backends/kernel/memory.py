"""Where temporaries live in the arena: memory of dead buffers is reused."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrograd.backends.kernel.buffer import ALIGNMENT, Buffer
from retrograd.ir import evaluate


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets of the temporaries in bytes, by number, and the size of the arena."""

    offsets: list[int]
    arena: int


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A temporary is written by kernel `first` and last read by kernel `last`."""

    buffer: Buffer
    first: int
    last: int


def layout(lifetimes: Sequence[Lifetime], sizes: Mapping[str, int]) -> Layout:
    """Place temporaries, given in the order of their first kernel, for the given sizes.

    Each takes the smallest gap that fits, or extends the arena. One that is read for the last time
    by the kernel that writes another never shares its memory.
    """
    offsets = [0] * len(lifetimes)
    gaps: list[tuple[int, int]] = []  # (offset, bytes), sorted, never adjacent
    ending: list[tuple[int, int, int]] = []  # (last kernel, offset, bytes), sorted
    end = 0
    for life in lifetimes:
        while ending and ending[0][0] < life.first:
            _, offset, size = ending.pop(0)
            _free(gaps, offset, size)
        size = max(evaluate(life.buffer.bytes, sizes), 1)
        size = -(-size // ALIGNMENT) * ALIGNMENT
        fit = min((g for g in gaps if g[1] >= size), key=lambda g: g[1], default=None)
        if fit is not None:
            gaps.remove(fit)
            offset = fit[0]
            if fit[1] > size:
                bisect.insort(gaps, (offset + size, fit[1] - size))
        else:
            last = bool(gaps) and gaps[-1][0] + gaps[-1][1] == end  # a gap to be made larger
            offset = gaps.pop()[0] if last else end
            end = offset + size
        offsets[life.buffer.number] = offset
        bisect.insort(ending, (life.last, offset, size))
    return Layout(offsets, end)


def _free(gaps: list[tuple[int, int]], offset: int, size: int) -> None:
    """Add a gap, joined with its neighbours."""
    at = bisect.bisect(gaps, (offset, size))
    if at < len(gaps) and gaps[at][0] == offset + size:
        size += gaps.pop(at)[1]
    if at and gaps[at - 1][0] + gaps[at - 1][1] == offset:
        offset, before = gaps.pop(at - 1)
        size += before
        at -= 1
    gaps.insert(at, (offset, size))
