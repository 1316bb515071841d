"""Items in rows, each linked to items of the rows beside it: an order in which few links cross, and
places along the rows that keep links straight. Both are sweeps over the rows, in linear time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Rows = list[list[int]]
Links = Mapping[int, Sequence[int]]  # for an item, its neighbours in the row before or after

SWEEPS = 4
GAP = 18.0
LEAST = 0.02  # the weight of an item at the end of a path; in the middle of it, its length


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
    rows: Rows, before: Links, after: Links, sides: Mapping[int, tuple[float, float]]
) -> dict[int, float]:
    """The place of each item along its row. Items keep their order and do not overlap; `sides` says
    how far each reaches to the left and to the right of its place.

    Each item is drawn towards its neighbours, but only to those in line with the longest paths:
    if every input and every side branch pulled, a long chain would run askew.
    """
    depth, height = _lengths(rows, before), _lengths(rows[::-1], after)
    weight = {item: LEAST + min(depth[item], height[item]) for row in rows for item in row}
    near = _trunk(before, depth), _trunk(after, height)
    x: dict[int, float] = {}
    for row in rows:
        at = 0.0
        for item in row:
            left, right = sides[item]
            x[item] = at + left
            at += left + right + GAP
        middle = sum([x[i] * weight[i] for i in row]) / sum([weight[i] for i in row])
        x.update({item: x[item] - middle for item in row})
    for k in range(2 * SWEEPS + 1):
        used = near[k % 2 : k % 2 + 1] if k < 2 * SWEEPS else near
        for row in rows if k % 2 == 0 else reversed(rows):
            wish = []
            for item in row:
                places = [x[n] for links in used for n in links.get(item, ())]
                wish.append(sum(places) / len(places) if places else x[item])
            found = _spread(wish, [weight[i] for i in row], [sides[i] for i in row])
            x.update(zip(row, found, strict=True))
    return x


def _lengths(rows: Rows, before: Links) -> dict[int, int]:
    """How many links the longest path to each item has."""
    length: dict[int, int] = {}
    for row in rows:
        for item in row:
            length[item] = max([length[n] + 1 for n in before.get(item, ())], default=0)
    return length


def _trunk(links: Links, length: Mapping[int, int]) -> Links:
    """The links to neighbours on paths at least half as long as the longest."""
    kept = {}
    for item, near in links.items():
        half = max(length[n] for n in near) / 2
        kept[item] = [n for n in near if length[n] >= half]
    return kept


def _spread(
    wish: Sequence[float], weight: Sequence[float], sides: Sequence[tuple[float, float]]
) -> list[float]:
    """The places nearest to the wished ones, in least squares, that keep order and distance.

    With the distances subtracted this is isotonic regression; pooling adjacent violators solves it.
    """
    offsets = [0.0]
    for (_, right), (left, _) in pairwise(sides):
        offsets.append(offsets[-1] + right + left + GAP)
    pools: list[tuple[float, float, int]] = []  # mean, weight and size
    for place, total, offset in zip(wish, weight, offsets, strict=True):
        mean, size = place - offset, 1
        while pools and pools[-1][0] > mean:
            m, w, n = pools.pop()
            mean, total, size = (mean * total + m * w) / (total + w), total + w, size + n
        pools.append((mean, total, size))
    flat = [mean for mean, _, size in pools for _ in range(size)]
    return [m + offset for m, offset in zip(flat, offsets, strict=True)]
