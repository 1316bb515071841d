"""Where temporaries live in the arena: memory of dead buffers is reused."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrograd.ir import Dim, evaluate
from retrograd.schedule.buffer import ALIGNMENT, Buffer

Time = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArenaLayout:
    """Offsets of the temporaries in bytes, and the size of the arena."""

    offsets: dict[Buffer, int]
    arena: int


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A temporary is written at the time `first` and last read at the time `last`. Times are those
    of kernels, or of epochs, each of which begins when the one before is finished, and behind that
    those of the kernels inside of one."""

    buffer: Buffer
    first: Time
    last: Time
    bytes: int | Dim


def layout(
    lifetimes: Sequence[Lifetime], sizes: Mapping[str, int], alignment: int = ALIGNMENT
) -> ArenaLayout:
    """Place temporaries, given in the order of their first time, for the given sizes.

    Each takes the smallest gap that fits, or extends the arena. One that is read for the last time
    when another is written never shares its memory.
    """
    offsets: dict[Buffer, int] = {}
    gaps: list[tuple[int, int]] = []  # (offset, bytes), sorted, never adjacent
    ending: list[tuple[Time, int, int]] = []  # (last kernel, offset, bytes), sorted
    end = 0
    for life in lifetimes:
        while ending and ending[0][0] < life.first:
            _, offset, size = ending.pop(0)
            _free(gaps, offset, size)
        size = max(evaluate(life.bytes, sizes), 1)
        size = -(-size // alignment) * alignment
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
        offsets[life.buffer] = offset
        bisect.insort(ending, (life.last, offset, size))
    return ArenaLayout(offsets, end)


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
