"""The rows of a trace as instructions: rows that do the same thing at the same time are one.

1. A tree of additions whose inner results nobody else wants is one sum, and products that only a
   sum wants become factors of it: a row of a linear layer is a contraction.
2. Rows go by depth. What has the same depth and operation is a batch, whose results lie side by
   side; leaves that are factors lie in the order in which a contraction goes through them, so that
   most operands lie side by side too.
3. A way back is the batches before it, in reverse, as far as their rows are in its cone.

All of it takes time in proportion to the rows; sums are not taken in the recorded order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.scalar.machine import BY_NAME, CONSTANT, LEAF
from retrograd.scalar.machine.opcodes import GRADIENT, NUMBER, START, STOP
from retrograd.scalar.trace_rows import ARITY, Columns, Event, cone

Rows = Any  # arrays of int64, one entry for each row
DOT = 200  # the code of a contraction, in a schedule only
_ADD, _MUL = BY_NAME["add"].code, BY_NAME["mul"].code
_GIVEN = (CONSTANT, LEAF, NUMBER, START)
MOST = 4096  # batches whose slots are shared; the search for room takes their square


@dataclass
class Batch:
    """Rows that do the same thing. `rows` are in the order of their slots."""

    code: int
    rows: Rows
    segment: int
    events: int  # a bit for each way back whose cone these rows are in
    a: Rows  # operands, as rows; of a contraction (rows, size)
    b: Rows
    init: Rows | None = None


@dataclass
class InstructionSchedule:
    """Batches in order, and the slot of each row that has one. The last two slots are those of
    the constants 1 and 0."""

    batches: list[Batch]
    slot: Rows
    slots: int
    given: Rows  # rows whose value is given, in the order of their slots from 0 on
    ends: list[int]  # for each segment how many slots there are up to its end


def schedule(
    columns: Columns, events: Sequence[Event], wanted: Sequence[int]
) -> InstructionSchedule:
    """`wanted` are rows whose value somebody reads in the end."""
    n = len(columns.code)
    code, a, b = (x.astype(np.int64) for x in (columns.code, columns.a, columns.b))
    _powers(code, a, b, columns.numbers)
    mask = _masks(code, a, b, events)
    _settle(code, a, b)
    arity = ARITY[code]
    same = _copies(code, a, b, arity, mask)
    a[:] = np.where((arity > 0) | (code == GRADIENT), same[a], a)
    b[:] = np.where(arity > 1, same[b], b)
    read_last: list[int] = same[list(wanted)].tolist()
    needed = _needed(code, a, b, arity, events, read_last)
    arity[~needed] = 0
    uses = np.bincount(a[arity > 0], minlength=n) + np.bincount(b[arity > 1], minlength=n)
    read = np.zeros(n, bool)
    read[read_last] = True
    read[[e.root for e in events]] = True
    read[a[(code == GRADIENT) & needed]] = True
    segment = np.searchsorted([e.rows for e in events], np.arange(n), side="right")
    late = code == GRADIENT  # the next way back overwrites what they read
    segment[late] = b[late] + 1
    sums = _sums(code, a, b, arity, needed & ~read & (uses == 1), segment)
    depth = _depth(a, b, arity, sums.inner)
    plan = _with_slots(code, a, b, arity, needed, segment, depth, mask, sums)
    _share(plan, read_last, len(events))
    plan.slot[:n] = plan.slot[same]
    return plan


def _masks(code: Rows, a: Rows, b: Rows, events: Sequence[Event]) -> Rows:
    """For each row a bit for each way back that comes to it."""
    mask = np.zeros(len(code), np.int64)
    last = max([e.root for e in events], default=-1) + 1
    columns = code[:last].tolist(), a[:last].tolist(), b[:last].tolist()
    for k, event in enumerate(events):
        mask[cone(*columns, event.root)] |= 1 << min(k, 62)
    return mask


def _settle(code: Rows, a: Rows, b: Rows) -> None:
    """Leaves that were set are what they were set to."""
    aliased = (code == LEAF) & (b != 0)
    code[aliased], a[aliased] = STOP, b[aliased]
    b[aliased] = 0
    given = np.isin(code, (LEAF, START))
    a[given] = b[given] = 0


def _powers(code: Rows, a: Rows, b: Rows, numbers: Any) -> None:
    """Squares are products, and powers of 1/2 roots."""
    rows = np.flatnonzero(code == BY_NAME["powc"].code)
    exponents = numbers[b[rows]]
    squares = rows[exponents == 2.0]
    code[squares], b[squares] = _MUL, a[squares]
    code[rows[exponents == 0.5]] = BY_NAME["sqrt"].code


def _copies(code: Rows, a: Rows, b: Rows, arity: Rows, mask: Rows) -> Rows:
    """For each row the one that it is a copy of, where no gradient tells the two apart."""
    rows = np.arange(len(code))
    told_apart = mask != 0
    told_apart[a[(arity > 0) & (mask != 0)]] = True
    told_apart[b[(arity > 1) & (mask != 0)]] = True
    same = np.where((code == STOP) & ~told_apart, a, rows)
    while not np.array_equal(further := same[same], same):
        same = further
    return same


def _share(plan: InstructionSchedule, wanted: list[int], last: int) -> None:
    """Let what is computed after the last way back take the slots of what nobody reads any more.

    Nothing is differentiated there, so a value has to be there only until its last reader.
    """
    batches = [x for x in plan.batches if x.segment == last]
    if not batches or len(batches) > MOST:
        return
    first = int(plan.slot[batches[0].rows[0]])
    home = np.full(plan.slots, -1)  # for each slot the batch that it belongs to
    ends = {i: i for i in range(len(batches))}
    for i, batch in enumerate(batches):
        home[plan.slot[batch.rows]] = i
    for i, batch in enumerate(batches):
        read = [] if batch.code == GRADIENT else [batch.a.ravel()]
        if batch.code == DOT:
            read += [batch.b.ravel(), batch.init]
        elif ARITY[batch.code] > 1:
            read.append(batch.b)
        for x in read:
            for owner in np.unique(home[plan.slot[x]]).tolist():
                if owner >= 0:
                    ends[owner] = max(ends[owner], i)
    for owner in np.unique(home[plan.slot[wanted]]).tolist() if wanted else []:
        if owner >= 0:
            ends[owner] = len(batches)
    free: list[tuple[int, int]] = []  # size and slot
    busy: list[tuple[int, int, int]] = []  # end, size, slot
    top = first
    for i, batch in enumerate(batches):
        for end, size, slot in [x for x in busy if x[0] < i]:
            busy.remove((end, size, slot))
            free.append((size, slot))
        size = len(batch.rows)
        fitting = min([x for x in free if x[0] >= size], default=None)
        if fitting is None:
            slot, top = top, top + size
        else:
            free.remove(fitting)
            slot = fitting[1]
            if fitting[0] > size:
                free.append((fitting[0] - size, slot + size))
        busy.append((ends[i], size, slot))
        plan.slot[batch.rows] = slot + np.arange(size)
    plan.slot[-2:] = top, top + 1
    plan.slots = top + 2


def _needed(
    code: Rows, a: Rows, b: Rows, arity: Rows, events: Sequence[Event], wanted: list[int]
) -> Rows:
    """Whether a row leads to what is wanted."""
    seen = bytearray(len(code))
    for i in wanted:
        seen[i] = 1
    gradient = code == GRADIENT
    count = np.where(gradient, 3, arity).tolist()
    ca, cb = a.tolist(), b.tolist()
    for i in range(len(seen) - 1, -1, -1):
        if seen[i] and (m := count[i]):
            seen[ca[i]] = 1
            if m == 2:
                seen[cb[i]] = 1
            elif m == 3:
                seen[events[cb[i]].root] = 1
    return np.frombuffer(seen, bool)


@dataclass
class _Sums:
    """`inner` are rows that have gone into a sum. Terms are sorted by sum, then as recorded."""

    inner: Rows
    root: Rows  # of each term
    a: Rows  # its factors; of a term that is no product the row itself and -1
    b: Rows


def _sums(code: Rows, a: Rows, b: Rows, arity: Rows, single: Rows, segment: Rows) -> _Sums:
    n = len(code)
    rows = np.arange(n)
    user = np.full(n, -1)  # of what has a single user
    user[a[arity > 0]] = rows[arity > 0]
    user[b[arity > 1]] = rows[arity > 1]
    adds = (code == _ADD) & (arity == 2)
    into = single & (user >= 0) & adds[user] & (segment == segment[user])
    inner = into & adds
    root = np.where(inner, user, rows)
    while True:
        further = root[root]
        if np.array_equal(further, root):
            break
        root = further
    owner = np.concatenate([rows[adds], rows[adds]])
    side = np.repeat([0, 1], int(adds.sum()))
    term = np.concatenate([a[adds], b[adds]])
    keep = ~inner[term]
    owner, side, term = owner[keep], side[keep], term[keep]
    order = np.lexsort((side, owner, root[owner]))
    owner, term = owner[order], term[order]
    top = root[owner]
    worth = np.bincount(top, minlength=n) >= 3  # two terms are an addition
    chosen = worth[top]
    top, term = top[chosen], term[chosen]
    inner &= worth[root]
    product = into[term] & (code[term] == _MUL) & (arity[term] == 2)
    gone = inner.copy()
    gone[term[product]] = True
    return _Sums(gone, top, np.where(product, a[term], term), np.where(product, b[term], -1))


def _depth(a: Rows, b: Rows, arity: Rows, inner: Rows) -> Rows:
    """The length of the longest way to a row; what has gone into a sum takes none."""
    found: list[int] = []
    add = found.append
    lists = arity.tolist(), a.tolist(), b.tolist(), (~inner).astype(int).tolist()
    for n, x, y, step in zip(*lists, strict=True):
        if n == 2:
            p, q = found[x], found[y]
            add((p if p > q else q) + step)
        elif n:
            add(found[x] + step)
        else:
            add(0)
    return np.array(found)


def _with_slots(
    code: Rows, a: Rows, b: Rows, arity: Rows, needed: Rows, segment: Rows, depth: Rows,
    mask: Rows, sums: _Sums,
) -> InstructionSchedule:  # fmt: skip
    n = len(code)
    rows = np.arange(n)
    size = np.zeros(n, np.int64)  # factors of a contraction
    kind = code.astype(np.int64)
    dots = _contractions(sums, n)
    for k, (owners, _, _, _) in dots.items():
        kind[owners], size[owners] = DOT, k
    given = rows[needed & np.isin(code, _GIVEN)]
    given = given[np.lexsort((given, _factor_order(dots, n)[given], code[given]))]
    busy = rows[needed & ~sums.inner & ~np.isin(code, _GIVEN)]
    order = np.lexsort((busy, mask[busy], size[busy], kind[busy], depth[busy], segment[busy]))
    busy = busy[order]
    slot = np.full(n + 2, -1)
    slot[given] = np.arange(len(given))
    slot[busy] = len(given) + np.arange(len(busy))
    slots = len(given) + len(busy) + 2
    slot[n], slot[n + 1] = slots - 2, slots - 1
    keys = np.stack([kind[busy], segment[busy], depth[busy], size[busy], mask[busy]])
    starts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
    batches = []
    for group in np.split(busy, starts) if len(busy) else []:
        first = group[0]
        batch = Batch(
            int(kind[first]), group, int(segment[first]), int(mask[first]), a[group], b[group]
        )
        if batch.code == DOT:
            owners, batch.init, batch.a, batch.b = dots[int(size[first])]
            at = np.searchsorted(owners, group)
            batch.init, batch.a, batch.b = batch.init[at], batch.a[at], batch.b[at]
        batches.append(batch)
    counts = np.bincount(segment[busy], minlength=int(segment.max(initial=0)) + 1)
    return InstructionSchedule(
        batches, slot, slots, given, (len(given) + np.cumsum(counts)).tolist()
    )


Contractions = dict[int, tuple[Rows, Rows, Rows, Rows]]


def _contractions(sums: _Sums, n: int) -> Contractions:
    """By number of factors: the rows of contractions in order, their first summands, and factors.
    `n` stands for 1, `n + 1` for 0."""
    root, a, b = sums.root, sums.a, sums.b.copy()
    plain = b < 0
    products = np.bincount(root[~plain], minlength=n)
    alone = np.bincount(root[plain], minlength=n)
    # One summand beside products goes first; others are products with 1.
    first = plain & (products[root] > 0) & (alone[root] == 1)
    init = np.full(n, n + 1)
    init[root[first]] = a[first]
    root, a, b = root[~first], a[~first], b[~first]
    b[b < 0] = n
    count = np.bincount(root, minlength=n)[root]
    found: Contractions = {}
    for k in np.unique(count).tolist():
        chosen = count == k
        owners = root[chosen].reshape(-1, k)[:, 0]
        found[k] = owners, init[owners], a[chosen].reshape(-1, k), b[chosen].reshape(-1, k)
    return found


def _factor_order(dots: Contractions, n: int) -> Rows:
    """An order in which rows that are factors come as the first contraction with them has them."""
    found = np.full(n + 2, np.iinfo(np.int64).max)
    longest = max(dots, default=0)
    for k, (owners, _, a, b) in dots.items():
        for side, factors in enumerate((a, b)):
            key = (2 * owners[:, None] + side) * longest + np.arange(k)[None, :]
            np.minimum.at(found, factors, key)
    return found[:n]
