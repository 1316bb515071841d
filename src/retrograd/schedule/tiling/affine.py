"""Which part of memory the rows of a nest touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from retrograd.ir import Dim
from retrograd.schedule.affine_index import AffineIndex, linear
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import (
    BlockedScatter,
    CallNest,
    GemmNest,
    LoopNest,
    ScatterNest,
    SortNest,
    Spread,
    live,
    shared_destinations,
)
from retrograd.schedule.ssa import CONJUNCTION, SSAOp, SSAValue


@dataclass(frozen=True, slots=True)
class RowSlice:
    """How a nest goes through rows: the loops `outer`, then `loop`, counted as one, `times` of
    their iterations for each row."""

    outer: tuple[int, ...]
    loop: int
    times: int | Dim = 1


Ranges = Mapping[int, "tuple[int, int | None]"]  # of loops, the first and the last counter


@dataclass(frozen=True, slots=True)
class Touch:
    """An access to a buffer: each iteration of a nest touches `extra` elements from `position` on;
    they may lie anywhere, where that is None. Of a `group` of iterations, all touch the same.
    Only where the counters of loops are in their `ranges` anything is touched."""

    buffer: Buffer
    position: AffineIndex | None
    extra: int | Dim = 1
    group: int = 1
    ranges: Ranges = field(default_factory=dict)

    def within(self, loops: Sequence[int | Dim], cut: RowSlice, share: int | Dim) -> bool:
        """Whether row `r` of a nest stays within elements `r * share` to `(r+1) * share`."""
        if self.position is None:
            return False
        steps = self.position.steps
        if self.group != 1:
            return self._within_group(loops, cut, share)
        step, length = steps.get(cut.loop, 0), loops[cut.loop]
        for k in reversed(cut.outer):
            if loops[k] != 1 and steps.get(k, 0) != step * length:
                return False
            length = length * loops[k]
        low = high = self.position.start
        for k, s in steps.items():
            if k == cut.loop or k in cut.outer:
                continue
            first, most = self.ranges.get(k, (0, None))
            last = loops[k] - 1 if most is None else most
            if not_negative(s):
                low, high = low + s * first, high + s * last
            elif isinstance(s, int):
                low, high = low + s * last, high + s * first
            else:
                return False
        end = high + step * (cut.times - 1) + self.extra
        return step * cut.times == share and not_negative(low) and not_negative(share - end)

    def _within_group(self, loops: Sequence[int | Dim], cut: RowSlice, share: int | Dim) -> bool:
        """The same where the steps of the position are from group to group."""
        assert self.position is not None
        start, step = self.position.start, self.position.steps.get(cut.loop, 0)
        whole = cut.loop == len(loops) - 1 and not cut.outer and cut.times % self.group == 0
        groups = cut.times // self.group
        end = start + step * (groups - 1) + self.extra
        own = not_negative(start) and not_negative(share - end)
        return whole and step * groups == share and own


def not_negative(size: int | Dim) -> bool:
    """Whether a number made of sizes is surely not negative."""
    if isinstance(size, Dim):
        return all(factor >= 0 for _, factor in size.terms)
    return size >= 0


def loops_of(nest: LoopNest, summed: bool = False) -> list[int | Dim]:
    """The loops of a nest; of a matrix product those over the batch, then that over the rows of the
    result, or, with `summed`, that over the products that are added; of a scatter whose places
    threads share, the places."""
    destinations = shared_destinations(nest)
    if destinations is not None:
        return [destinations]
    loops = list(nest.loops)
    if isinstance(nest, GemmNest):
        loops.append((nest.k if summed else nest.m).attr)
    return loops


def touches(nest: LoopNest, summed: bool = False) -> tuple[list[Touch], list[Touch]]:
    """What the iterations of `loops_of` a nest read and write."""
    if isinstance(nest, GemmNest):
        return _of_product(nest, summed)
    if isinstance(nest, CallNest):
        return _of_call(nest)
    if isinstance(nest, ScatterNest):
        return _of_scatter(nest)
    if isinstance(nest, SortNest):
        return _of_rows(nest)
    known: dict[SSAValue, AffineIndex | None] = {}
    reads = [t for v in live(nest) if v.op is SSAOp.LOAD for t in _of_load(v, nest.loops, known)]
    reads += [Touch(buffer, None) for buffer in nest.operands]
    return reads, [Touch(s.buffer, linear(s.offset, known)) for s in nest.stores]


def _of_load(
    load: SSAValue, loops: Sequence[int | Dim], known: dict[SSAValue, AffineIndex | None]
) -> list[Touch]:
    """What a load touches; one under a condition, also what it reads where that does not hold."""
    (position,), buffer = load.args, load.attr
    if position.op is not SSAOp.ISEL:
        return [Touch(buffer, linear(position, known))]
    guard, there, else_there = position.args
    ranges = _ranges(guard, loops, known)
    other = Touch(buffer, linear(else_there, known))
    if any(last is not None and last < first for first, last in ranges.values()):
        return [other]
    return [Touch(buffer, linear(there, known), ranges=ranges), other]


def _ranges(
    guard: SSAValue, loops: Sequence[int | Dim], known: dict[SSAValue, AffineIndex | None]
) -> dict[int, tuple[int, int | None]]:
    """Between which counters of loops a condition can hold, as far as comparisons of one counter
    say it."""
    found: dict[int, tuple[int, int | None]] = {}
    todo = [guard]
    while todo:
        v = todo.pop()
        if v.op == CONJUNCTION:
            todo += v.args
        if v.op not in (SSAOp.IGE, SSAOp.ILT):
            continue
        a, b = (linear(x, known) for x in v.args)
        if a is None or b is None or b.steps or list(a.steps.values()) != [1]:
            continue
        ((loop, _),), bound = a.steps.items(), b.start - a.start
        if isinstance(bound, Dim):
            continue
        first, last = found.get(loop, (0, None))
        if v.op is SSAOp.IGE:
            found[loop] = max(first, bound), last
        else:
            size = loops[loop]
            most = bound - 1 if isinstance(size, Dim) else min(bound, size) - 1
            found[loop] = first, most if last is None else min(last, most)
    return found


def _of_product(nest: GemmNest, summed: bool) -> tuple[list[Touch], list[Touch]]:
    m, n, k = nest.mnk
    left, right, out = nest.buffers
    (a, a_turned, a_lead), (b, b_turned, b_lead) = nest.a, nest.b
    lead, other = a_lead.attr, b_lead.attr
    if summed:
        # One step of the sum takes a column of `a` and a row of `b`.
        column = (lead, m) if a_turned else (1, _extent(m, 1, lead))
        row = (1, _extent(n, 1, other)) if b_turned else (other, n)
        reads = [_along(nest, left, a, *column), _along(nest, right, b, *row)]
        return reads, [_along(nest, out, nest.y, 0, m * n)]
    whole = _extent(n, k, other) if b_turned else _extent(k, n, other)
    if nest.packed:
        whole = right.type.size
    if nest.windows is not None:
        whole = 1 + sum((size - 1) * step for axes in nest.windows for size, step in axes)
    if nest.spread is not None:
        own = _of_spread(nest, nest.spread, left, a)
    else:
        own = _along(nest, left, a, 1 if a_turned else lead, _extent(k, 1, lead) if a_turned else k)
    return [own, _along(nest, right, b, 0, whole)], [_along(nest, out, nest.y, n, n)]


def _of_spread(nest: GemmNest, spread: Spread, buffer: Buffer, start: SSAValue) -> Touch:
    """How a product reads a left matrix whose rows are not evenly spaced: those of one iteration of
    their outermost axis, of one image that is, are a group."""
    rows, columns = spread
    extra = 1 + sum((size - 1) * step for size, step in columns)
    if nest.loops:  # all of a matrix
        extra += sum((size - 1) * step for size, step in rows)
        return _along(nest, buffer, start, 0, extra)
    (_, step), *inner = rows
    extra += sum((size - 1) * step for size, step in inner)
    touch = _along(nest, buffer, start, step, extra)
    return replace(touch, group=prod(size for size, _ in inner))


def _along(
    nest: LoopNest, buffer: Buffer, start: SSAValue, step: int | Dim, extra: int | Dim
) -> Touch:
    """An access of a product: by a position in each matrix, and by a step along the last loop."""
    index = linear(start)
    if index is None:
        return Touch(buffer, None)
    return Touch(buffer, AffineIndex(index.start, {**index.steps, len(nest.loops): step}), extra)


def _row(buffer: Buffer, size: int | Dim) -> Touch:
    """An access to so many elements in each iteration of the first loop."""
    return Touch(buffer, AffineIndex(0, {0: size}), size)


def _of_rows(nest: SortNest) -> tuple[list[Touch], list[Touch]]:
    """The accesses of sorting: a row of each buffer."""
    n = nest.n.attr
    rows = nest.outer if nest.loops else 1
    written = [*(s.buffer for s in nest.stores), *nest.work]
    own = [_row(b, b.type.size // rows if rows != 0 else n) for b in written]
    return [_row(b, n) for b in nest.operands], own


def _of_scatter(nest: ScatterNest) -> tuple[list[Touch], list[Touch]]:
    """The accesses of a scatter, whose positions are not known: what belongs to an iteration, or,
    where threads share the places that are written, to a place."""
    (store,), each = nest.stores, nest.slice_size
    loads = [v for v in live(nest) if v.op is SSAOp.LOAD]
    shared = nest.destinations is not None
    work = nest.work if isinstance(nest, BlockedScatter) else []
    reads = [Touch(v.attr, None if shared else linear(v.args[0])) for v in loads]
    own = [_row(b, n) for b, n in ((store.buffer, each), *work)]
    return [*reads, *own], own


def _of_call(nest: CallNest) -> tuple[list[Touch], list[Touch]]:
    """The accesses of a routine, which touches of every buffer what belongs to the item at hand."""
    found, given = [], len(nest.operands)
    for i, buffer in enumerate(nest.buffers):
        if given - nest.shared <= i < given:
            found.append(Touch(buffer, None))
            continue
        each = buffer.type.size // nest.loops[0]
        found.append(_row(buffer, each))
    return found[:given], found[given:]


def _extent(rows: int | Dim, columns: int | Dim, lead: int | Dim) -> int | Dim:
    return 0 if rows == 0 or columns == 0 else (rows - 1) * lead + columns
