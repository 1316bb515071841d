"""The cotangent of an array that is read by slices: as much work as the slices have elements.

The reverse rule of a slice pads its cotangent with zeros, so that an array that is read by `T`
slices receives `T` contributions of its own size, most of whose elements are zero. Where these are
added up, what lies in the slices is put side by side instead: a `concat` of the sums of those that
are there. The bits are those of the plain sum: to add zero changes no number but -0.0, which
becomes 0.0, so 0.0 is added wherever the plain sum adds a zero.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.ir import Dim, Node, TensorType, full
from retrograd.ops.leaf import Constant
from retrograd.ops.shape import Concat, Pad, Slice, reshape, slice_axis

GAIN = 2  # how many times more elements the plain sum adds, at least
PIECES = 4  # into how many pieces contributions that overlap are cut, at most, for each of them

Span = tuple[Any, Any]  # of an axis a first place, and the one behind the last


class Placed(NamedTuple):
    """A contribution. If it is zero outside of a box: what lies inside, and for each axis of which
    the box is a part the first place, the number of places, and their distance (0: there is
    one)."""

    whole: Node
    inside: Node
    box: Mapping[int, tuple[int, int, int]]


class Cell(NamedTuple):
    """A part of a sum: parts side by side along an axis, or numbers of contributions, added up."""

    spans: list[Span]
    axis: int
    parts: list[Cell]
    added: list[int]

    def leaves(self) -> Iterator[Cell]:
        """The parts in which contributions are added up."""
        if self.axis < 0:
            yield self
        for part in self.parts:
            yield from part.leaves()


def sum_of(contributions: Sequence[Node]) -> Node:
    """The sum of contributions in their order, to the bit."""
    total: Node | None = None
    for _, group in itertools.groupby(map(_placed, contributions), lambda p: bool(p.box)):
        total = _added(total, list(group))
    assert total is not None
    return total


def _placed(part: Node) -> Placed:
    op = part.prim
    if not isinstance(op, Pad) or not _is_zero(part.inputs[1]):
        return Placed(part, part, {})
    inside, box = part.inputs[0], {}
    for axis, (low, high, gap) in enumerate(zip(op.low, op.high, op.interior, strict=True)):
        if low == 0 and high == 0 and gap == 0:
            continue
        n = inside.shape[axis]
        if isinstance(low, Dim) or isinstance(n, Dim) or isinstance(part.shape[axis], Dim):
            return Placed(part, part, {})
        if n == 0:  # nothing lies in the box
            return Placed(part, part, {})
        box[axis] = low, n, gap + 1 if n > 1 else 0
    return Placed(part, inside, box)


def _is_zero(value: Node) -> bool:
    """Whether it is 0.0, not -0.0."""
    if not isinstance(value.prim, Constant):
        return False
    number = complex(value.prim.value)
    return number == 0 and math.copysign(1, number.real) == math.copysign(1, number.imag) == 1


def _added(total: Node | None, run: Sequence[Placed]) -> Node:
    """What came before, and contributions, of all or none of which the box is known."""
    if len(run) > 1 and run[0].box:
        assembled = _assembled(total, run)
        if assembled is not None:
            return assembled
        kinds = [list(group) for _, group in itertools.groupby(run, lambda p: p.box.keys())]
        if len(kinds) > 1:
            for same in kinds:
                total = _added(total, same)
            assert total is not None
            return total
    for part in run:
        total = part.whole if total is None else total + part.whole
    assert total is not None
    return total


def _assembled(total: Node | None, run: Sequence[Placed]) -> Node | None:
    """The same, put together of what lies in the boxes; None where that is no less work."""
    grid = Grid.of(run)
    if grid is None or sum(grid.share(p.box) for p in run) * GAIN > len(run):
        return None
    inside = [grid.inside(p) for p in run]
    boxes = [grid.spans(p.box) for p in run]
    cell = _divided(range(len(run)), boxes, grid.whole, grid.order)
    if total is not None and any(len(leaf.added) > 1 for leaf in cell.leaves()):
        if grid.steps:
            return None
        inside, boxes = [total, *inside], [grid.whole, *boxes]  # the order of sums starts with it
        cell = _divided(range(len(boxes)), boxes, grid.whole, grid.order)
        total = None
    if sum(1 + len(leaf.added) for leaf in cell.leaves()) > (PIECES + 1) * len(run):
        return None
    found = grid.back(_emitted(cell, inside, boxes))
    return found if total is None else total + found


class Grid:
    """The axes of a sum of boxes. An axis on which places are apart has two: places of the same
    rest modulo their distance lie side by side on the first, and the second is that rest."""

    def __init__(self, type: TensorType, cut: Sequence[int], steps: Mapping[int, int]) -> None:
        self.type, self.steps = type, steps
        self._sizes = {axis: int(type.shape[axis]) for axis in cut}
        self.whole: list[Span] = []
        self.order: list[int] = []  # in which axes are divided
        for axis, n in enumerate(type.shape):
            step = steps.get(axis, 1)
            if axis in self._sizes:
                self.order.append(len(self.whole))
            if step > 1:
                self.order.insert(0, len(self.whole) + 1)
                self.whole += [(0, -(-n // step)), (0, step)]
            else:
                self.whole.append((0, n))

    @staticmethod
    def of(run: Sequence[Placed]) -> Grid | None:
        """The grid of boxes; None where places are apart in more than one way."""
        steps: dict[int, int] = {}
        for part in run:
            for axis, (_, _, step) in part.box.items():
                if step and steps.setdefault(axis, step) != step:
                    return None
        steps = {axis: step for axis, step in steps.items() if step > 1}
        if any(axis not in part.box for axis in steps for part in run):
            return None
        cut = sorted({axis for part in run for axis in part.box})
        return Grid(run[0].whole.type, cut, steps)

    def share(self, box: Mapping[int, tuple[int, int, int]]) -> float:
        """Which part of all elements lies in a box."""
        return math.prod(n / self._sizes[axis] for axis, (_, n, _) in box.items())

    def spans(self, box: Mapping[int, tuple[int, int, int]]) -> list[Span]:
        """A box by the axes of the grid."""
        found: list[Span] = []
        for axis, n in enumerate(self.type.shape):
            first, count, _ = box.get(axis, (0, n, 1))
            step = self.steps.get(axis, 1)
            found.append((first // step, first // step + count))
            if step > 1:
                found.append((first % step, first % step + 1))
        return found

    def inside(self, part: Placed) -> Node:
        """What lies in a box, with the axes of the grid."""
        shape: list[int | Dim] = []
        for axis, n in enumerate(part.inside.shape):
            shape += [n, 1] if axis in self.steps else [n]
        return reshape(part.inside, tuple(shape))

    def back(self, y: Node) -> Node:
        """A sum with its own axes."""
        shape = self.type.shape
        wide = [n + -n % self.steps.get(axis, 1) for axis, n in enumerate(shape)]
        y = reshape(y, tuple(wide))
        for axis in self.steps:
            if wide[axis] != shape[axis]:
                y = slice_axis(y, axis, 0, shape[axis])
        return y


def _divided(
    among: Sequence[int], boxes: Sequence[list[Span]], spans: list[Span], order: Sequence[int]
) -> Cell:
    """What is added up where within spans: divided along the first axis on which a box ends."""
    for k, axis in enumerate(order):
        start, end = spans[axis]
        begin: dict[int, list[int]] = {}
        places = {start, end}
        for i in among:
            low, high = max(boxes[i][axis][0], start), min(boxes[i][axis][1], end)
            begin.setdefault(low, []).append(i)
            places |= {low, high}
        if len(places) > 2:
            parts, here = [], list[int]()
            for low, high in itertools.pairwise(sorted(places)):
                here = sorted([i for i in here if boxes[i][axis][1] > low] + begin.get(low, []))
                own = [*spans[:axis], (low, high), *spans[axis + 1 :]]
                parts.append(_divided(here, boxes, own, order[k + 1 :]))
            return Cell(spans, axis, parts, [])
    return Cell(spans, -1, [], list(among))


def _emitted(cell: Cell, inside: Sequence[Node], boxes: Sequence[list[Span]]) -> Node:
    """The node of a part of a sum."""
    if cell.axis >= 0:
        return Concat(cell.axis)(*[_emitted(part, inside, boxes) for part in cell.parts])
    found: Node | None = None
    for i in cell.added:
        part = _cut(inside[i], boxes[i], cell.spans)
        found = part if found is None else found + part
    shape = tuple(b - a for a, b in cell.spans)
    zero = full(0, TensorType(inside[0].dtype, shape))
    if found is None:
        return zero
    return found if len(cell.added) == len(inside) else found + zero


def _cut(x: Node, box: Sequence[Span], spans: Sequence[Span]) -> Node:
    """The elements of a box within spans."""
    starts = tuple(a - low for (low, _), (a, _) in zip(box, spans, strict=True))
    stops = tuple(b - low for (low, _), (_, b) in zip(box, spans, strict=True))
    if starts == (0,) * len(box) and stops == x.shape:
        return x
    return Slice(starts, stops, (1,) * len(box))(x)
