"""Long sums in NumPy, in the orders that scatters and scans have everywhere
(`schedule/loop_nest.py`).

The error of `n` terms added one after the other grows with `n`. Here short blocks are added one
after the other and their totals, or all terms where there are no blocks, in twice the precision:
float32 in float64, float64 with what each addition rounded off kept beside the total. So the error
is that of a block, whatever the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 16  # terms that are added one after the other


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum, and what was rounded off: NaN where the sum is not finite."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product of float64, and what was rounded off: NaN from 2^996 on."""
    product = a * b
    (x, y), (u, v) = _halves(a), _halves(b)
    return product, ((x * u - product) + x * v + y * u) + y * v


def _halves(a: Any) -> tuple[Any, Any]:
    """Two numbers of half as many digits, of which a is the sum."""
    wide = a * 134217729.0  # 2^27 + 1
    high = wide - (wide - a)
    return high, a - high


def settled(total: Any, rest: Any) -> Any:
    """A total with what was rounded off on the way: as it is where that is zero, for the sign of a
    zero, and where it is not finite."""
    both = total + rest
    return np.where((rest != 0) & (both - both == 0), both, total)


def running(terms: Any, axis: int = 0) -> tuple[Any, Any]:
    """Running sums of float64, and of what each addition rounded off."""
    totals = np.add.accumulate(terms, axis)
    before = np.full_like(totals, -0.0)
    ahead, behind = ((*(slice(None),) * axis, s) for s in (slice(1, None), slice(None, -1)))
    before[ahead] = totals[behind]
    moved = totals - before
    lost = (before - (totals - moved)) + (terms - moved)
    return totals, np.add.accumulate(lost, axis)


def cumulative(x: Any, axis: int) -> Any:
    """The running sum of numbers one after the other."""
    if x.dtype.kind == "c":
        return of_parts(lambda parts: cumulative(parts, axis), x)
    if x.dtype.kind != "f" or not x.size:
        return np.cumsum(x, axis=axis, dtype=x.dtype)
    if x.dtype.itemsize < 8:
        return np.cumsum(x, axis=axis, dtype=np.float64).astype(x.dtype)
    return settled(*running(x, axis))


def by_halves(f: Any, x: Any) -> Any:
    """The running values of an associative function along the first axis, as a tree."""
    if len(x) < 2:
        return x
    y = np.empty_like(x)
    y[0], y[1::2] = x[0], by_halves(f, f(x[:-1:2], x[1::2]))
    y[2::2] = f(y[1:-1:2], x[2::2])
    return y


def of_parts(f: Any, *arrays: Any) -> Any:
    """A function of real arrays, of complex ones as real ones with one more axis at the end."""
    dtype = arrays[0].dtype
    real = np.dtype(f"f{dtype.itemsize // 2}")
    parts = [np.ascontiguousarray(x).view(real).reshape(*x.shape, 2) for x in arrays]
    return np.ascontiguousarray(f(*parts)).view(dtype)[..., 0]


def is_wide(x: Any, axis: int) -> bool:
    """Whether a scatter into an array, or a node, adds each update up in float64, without blocks:
    where it is a single number of 32 bits, that takes less time than to count the updates."""
    return bool(axis == len(x.shape) - 1 and x.dtype.itemsize == 4)


def scattered(rows: Any, places: Any, updates: Any, wide: bool) -> None:
    """Add rows of updates to those of an array at some places, in place. Each place takes its
    updates one after the other, in float64 or in blocks; see `schedule/loop_nest.py`."""
    if rows.dtype.kind != "f" or (len(places) <= BLOCK and not wide):
        np.add.at(rows, places, updates)
    elif wide:
        totals = rows.astype(np.float64)
        np.add.at(totals, places, updates)
        rows[...] = totals
    else:
        _in_blocks(rows, places, updates)


def _in_blocks(rows: Any, places: Any, updates: Any) -> None:
    order = np.argsort(places, kind="stable")
    places, updates = places[order], updates[order]
    starts = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    rank = np.arange(len(places)) - np.repeat(starts, np.diff([*starts, len(places)]))
    new = rank % BLOCK == 0
    block = np.cumsum(new) - 1  # of each update
    of, first = places[new], rank[new] == 0
    parts = np.where(first[:, None], rows[of], rows.dtype.type(-0.0))
    for k in range(min(BLOCK, int(rank.max()) + 1)):
        own = np.flatnonzero(rank % BLOCK == k)
        parts[block[own]] += updates[own]
    rows[of] = _totals(parts, np.flatnonzero(first))


def _totals(parts: Any, starts: Any) -> Any:
    """For each of the parts, the total of its group, one after the other. Groups start at some
    places."""
    sizes = np.diff([*starts, len(parts)])
    group = np.repeat(np.arange(len(starts)), sizes)
    if parts.dtype.itemsize < 8:
        totals = np.full((len(starts), *parts.shape[1:]), -0.0)
        np.add.at(totals, group, parts.astype(np.float64))
        return totals.astype(parts.dtype)[group]
    totals, rests = parts[starts], np.full((len(starts), *parts.shape[1:]), -0.0)
    several = np.flatnonzero(sizes > 1)
    if len(several) < sizes.max():
        for g in several:
            own = running(parts[starts[g] : starts[g] + sizes[g]])
            totals[g], rests[g] = own[0][-1], own[1][-1]
    else:
        for k in range(1, sizes.max()):
            longer = np.flatnonzero(sizes > k)
            totals[longer], lost = two_sum(totals[longer], parts[starts[longer] + k])
            rests[longer] += lost
    return settled(totals, rests)[group]
