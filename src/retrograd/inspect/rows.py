"""Items in rows, each row linked to the next: an order in which few links cross, and positions along
the rows that keep the links straight. Both are sweeps of linear time over the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Rows = list[list[int]]
Links = Mapping[int, Sequence[int]]  # for an item, its neighbours in the row before or after

SWEEPS = 4
GAP = 18.0


def order(rows: Rows, before: Links, after: Links) -> None:
    """Sort each row by the mean position of its items' neighbours, there and back several times."""
    spot = {item: i / max(1, len(row)) for row in rows for i, item in enumerate(row)}
    for k in range(SWEEPS):
        links = before if k % 2 == 0 else after
        for row in rows if k % 2 == 0 else reversed(rows):
            if len(row) > 1:
                mean = {
                    item: sum([spot[x] for x in links[item]]) / len(links[item])
                    if links.get(item)
                    else spot[item]
                    for item in row
                }
                row.sort(key=mean.__getitem__)
                for i, item in enumerate(row):
                    spot[item] = (i + 0.5) / len(row)


def align(
    rows: Rows, before: Links, after: Links, width: Mapping[int, float]
) -> dict[int, float]:
    """The middle of each item along its row; items keep their order and do not overlap."""
    x: dict[int, float] = {}
    for row in rows:
        total = sum(width[item] + GAP for item in row)
        start = -total / 2
        for item in row:
            x[item] = start + (width[item] + GAP) / 2
            start += width[item] + GAP
    for k in range(2 * SWEEPS + 1):
        last = k == 2 * SWEEPS
        for row in rows if k % 2 == 0 else reversed(rows):
            wish = []
            for item in row:
                near = before.get(item, ()) if k % 2 == 0 or last else ()
                if k % 2 or last:
                    near = [*near, *after.get(item, ())]
                wish.append(sum([x[n] for n in near]) / len(near) if near else x[item])
            for item, place in zip(row, _spread(wish, [width[i] for i in row]), strict=True):
                x[item] = place
    return x


def _spread(wish: Sequence[float], width: Sequence[float]) -> list[float]:
    """The positions nearest to the wished ones, in least squares, that keep order and distance.

    With the distances subtracted this is isotonic regression; pooling adjacent violators solves it.
    """
    offsets = [0.0]
    for a, b in zip(width, width[1:], strict=False):
        offsets.append(offsets[-1] + (a + b) / 2 + GAP)
    pools: list[tuple[float, int]] = []  # mean and size
    for w, offset in zip(wish, offsets, strict=False):
        mean, size = w - offset, 1
        while pools and pools[-1][0] > mean:
            m, n = pools.pop()
            mean, size = (mean * size + m * n) / (size + n), size + n
        pools.append((mean, size))
    flat = [mean for mean, size in pools for _ in range(size)]
    return [m + offset for m, offset in zip(flat, offsets, strict=False)]
