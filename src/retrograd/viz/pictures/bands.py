"""Which band of the picture each box stands in, and which row of its column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from retrograd.viz.pictures.box import DrawnBox
from retrograd.viz.pictures.rows import Rows


class Column:
    """The boxes of one column in rows, in the direction of its data flow, and the edges drawn."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.rows: Rows = []
        self.before: dict[int, list[int]] = {}
        self.after: dict[int, list[int]] = {}
        self.chains: list[tuple[list[int], str]] = []  # source, places in rows between, target

    def connect(self, chain: list[int], shape: str) -> None:
        self.chains.append((chain, shape))
        for a, b in pairwise(chain):
            self.after.setdefault(a, []).append(b)
            self.before.setdefault(b, []).append(a)


def assign_bands(boxes: Sequence[DrawnBox]) -> list[int]:
    """The band of each box, counted from the top."""
    band = [0] * len(boxes)
    users: list[list[int]] = [[] for _ in boxes]
    for i, box in enumerate(boxes):
        for x, _ in box.inputs:
            users[x].append(i)
        if box.column == 0:
            band[i] = max((band[x] + 1 for x, _ in box.inputs if not boxes[x].column), default=0)
    _sink(boxes, users, band)
    last = max((band[i] for i, box in enumerate(boxes) if box.column == 0), default=0)
    for i, box in enumerate(boxes):
        if box.updates:  # from the top, a row in each band
            above = [band[x] + 1 for x, _ in box.inputs if boxes[x].updates]
            band[i] = min(last, max(above, default=0))
        elif box.column:
            beside = box.origin
            if beside is not None and (beside < i or boxes[beside].column == 0):
                band[i] = band[beside]
            else:
                same = [band[x] for x, _ in box.inputs if boxes[x].column]
                band[i] = min(same, default=last)
    for i, box in enumerate(boxes):
        if box.column and not box.inputs and users[i] and box.origin is None:
            band[i] = band[users[i][0]]
    return band


def _sink(boxes: Sequence[DrawnBox], users: Sequence[Sequence[int]], band: list[int]) -> None:
    """Put inputs, what is made of one of them alone, and what depends on none right above their
    first user: the longest path places them at the top, far from where they are used."""
    fixed, loose = [False] * len(boxes), [False] * len(boxes)
    for i, box in enumerate(boxes):
        sources = {x for x, _ in box.inputs}
        fixed[i] = box.role not in ("input", "parameter") and all(fixed[x] for x in sources)
        single = len(sources) <= 1 and all(loose[x] and len(users[x]) == 1 for x in sources)
        loose[i] = box.column == 0 and (fixed[i] or single)
    for i in reversed(range(len(boxes))):
        below = [band[u] for u in users[i] if boxes[u].column == 0]
        if loose[i] and below:
            band[i] = max(0, min(below) - 1)


def assign_rows(
    boxes: Sequence[DrawnBox], band_of: Sequence[int]
) -> tuple[list[int], list[Column]]:
    """The row of each box in its column. A band has one row of forward boxes, and as many rows of
    gradient boxes as their longest path within it; odd columns run from bottom to top."""
    level = [0] * len(boxes)
    for i, box in enumerate(boxes):
        if box.column:
            inside = [
                level[x] + 1
                for x, _ in box.inputs
                if boxes[x].column == box.column and band_of[x] == band_of[i]
            ]
            level[i] = max(inside, default=0)
    row_of = [0] * len(boxes)
    columns = []
    for c in range(1 + max((box.column for box in boxes), default=0)):
        column, key = Column(c), None
        members = [i for i, box in enumerate(boxes) if box.column == c]
        sign = -1 if c % 2 else 1
        for i in sorted(members, key=lambda i: (sign * band_of[i], level[i], i)):
            if (band_of[i], level[i]) != key:
                key = band_of[i], level[i]
                column.rows.append([])
            row_of[i] = len(column.rows) - 1
            column.rows[-1].append(i)
        columns.append(column)
    return row_of, columns
