"""Scatters that replace, multiply, or keep the extremum; see `Scatter` for what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import Dim, Node, TensorType, Trait, declare, full, int64, product
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import (
    add,
    cast,
    drop_if,
    eq,
    keep_if,
    lt,
    ne,
    select,
    zmul,
)
from retrograd.ops.index import Gather, Scatter, ScatterAdd, gather_along
from retrograd.ops.leaf import Iota, SizeOf
from retrograd.ops.scan import LinearScan, shifted
from retrograd.ops.shape import expand, reshape
from retrograd.ops.sort import positions


@declare
class ScatterSet(Scatter):
    """Replace elements at given positions; where positions repeat, the last update stays.

    The gradient goes to the update that stays; an element that is replaced gets none.
    """

    name = "scatter_set"
    mode = "set"
    traits = frozenset({Trait.READS_MANY, Trait.REAL_LINEAR, Trait.DETERMINED, Trait.HANDS_ON})
    axis: int
    shared: int = 0

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return 0

    def meet(self, y: Any, at: tuple[Any, ...], updates: Any) -> None:
        # One index at a time: then the last assignment is the last update.
        flat = np.broadcast_to(np.ravel_multi_index(at, y.shape), updates.shape)
        y.reshape(-1)[flat.reshape(-1)] = updates.reshape(-1)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        _, index, updates = inputs
        zero = full(0, updates.type)
        number = numbered(updates, self.axis, index.type.rank - self.shared)
        holder = self(full(-1, TensorType(int64, g.shape)), index, number)
        stays = eq(self.read(holder, index), number)
        return self(g, index, zero), None, keep_if(stays, self.read(g, index))

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (tx, _, tu), (x, index, updates) = tangents, inputs
        if tx is None and tu is None:
            return None
        tx = full(0, x.type) if tx is None else tx
        return self(tx, index, full(0, updates.type) if tu is None else tu)


def numbered(updates: Node, axis: int, own: int) -> Node:
    """The number of each update among those of its row: the position along the index's own axes,
    which are `own` ones from `axis` on."""
    shape = updates.shape
    sizes = shape[axis : axis + own]
    number = reshape(Iota((product(sizes),), 0, int64)(), sizes)
    others = [i for i in range(len(shape)) if not axis <= i < axis + own]
    return expand(number, shape, others)


def real_numbers(op: Scatter, x: TensorType) -> TensorType:
    """The type of what is scattered into; complex numbers are refused."""
    if x.dtype.is_complex:
        raise DTypeError(f"{op.name} takes real numbers, not {x}")
    return x


class ScatterExtremum(Scatter):
    """Keep the extremum of what is there and the updates; NaN if one is NaN. Those that are equal
    to it share the gradient."""

    booleans = False

    def infer(self, *types: TensorType) -> TensorType:
        return real_numbers(self, super().infer(*types))

    def _shares(self, y: Node, x: Node, index: Node, updates: Node) -> tuple[Node, Node]:
        """The partial derivatives by x and by the updates."""
        here = cast(eq(x, y), x.dtype)
        there = cast(eq(updates, self.read(y, index)), x.dtype)
        each = 1 / self.add(here, index, there)  # a NaN equals nothing: 0 / 0 for all
        return here * each, there * self.read(each, index)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        here, there = self._shares(y, *inputs)
        return zmul(g, here), None, zmul(self.read(g, inputs[1]), there)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (tx, _, tu), (x, index, _) = tangents, inputs
        if tx is None and tu is None:
            return None
        here, there = self._shares(y, *inputs)
        own = full(0, x.type) if tx is None else zmul(tx, here)
        return own if tu is None else self.add(own, index, zmul(tu, there))


@declare
class ScatterMax(ScatterExtremum):
    """Keep the greatest of what is there and the updates at given positions."""

    name = "scatter_max"
    mode = "max"
    combine = el.max
    axis: int
    shared: int = 0

    def meet(self, y: Any, at: tuple[Any, ...], updates: Any) -> None:
        np.maximum.at(y, at, updates)


@declare
class ScatterMin(ScatterExtremum):
    """Keep the least of what is there and the updates at given positions."""

    name = "scatter_min"
    mode = "min"
    combine = el.min
    axis: int
    shared: int = 0

    def meet(self, y: Any, at: tuple[Any, ...], updates: Any) -> None:
        np.minimum.at(y, at, updates)


@declare
class ScatterMul(Scatter):
    """Multiply elements at given positions by updates.

    The partial by one update is the product of x and all other updates of its position, not a
    quotient: zeros are fine.
    """

    name = "scatter_mul"
    mode = "multiply"
    combine = el.mul
    booleans = False
    axis: int
    shared: int = 0

    def infer(self, *types: TensorType) -> TensorType:
        return real_numbers(self, super().infer(*types))

    def meet(self, y: Any, at: tuple[Any, ...], updates: Any) -> None:
        np.multiply.at(y, at, updates)

    def _by_x(self, x: Node, index: Node, updates: Node) -> Node:
        return self(full(1, x.type), index, updates)

    def _by_updates(self, x: Node, index: Node, updates: Node) -> Node:
        """Updates are sorted by position; what stands before and behind one is multiplied up."""
        axis, shared = self.axis, self.shared
        own = index.shape[shared:]
        n = product(own)
        index = reshape(counted(index, x.shape[axis]), (*index.shape[:shared], n))
        flat = reshape(updates, (*updates.shape[:axis], n, *updates.shape[axis + len(own) :]))
        order = positions(index, shared)
        slot = gather_along(index, order, shared)
        u = Gather(axis, shared)(flat, order)
        first = ne(slot, shifted(slot, shared, False, -1))
        last = ne(slot, shifted(slot, shared, True, -1))
        others = None
        for reverse, starts in ((False, first), (True, last)):
            starts = _widened(starts, u, axis, shared)
            kept = drop_if(starts, shifted(u, axis, reverse, 0))
            product_so_far = LinearScan(axis, reverse)(kept, keep_if(starts, full(1, u.type)))
            others = product_so_far if others is None else others * product_so_far
        assert others is not None
        weight = others * Gather(axis, shared)(x, slot)
        back = ScatterAdd(axis, shared)(full(0, flat.type), order, weight)
        return reshape(back, updates.shape)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        by_updates = zmul(self.read(g, inputs[1]), self._by_updates(*inputs))
        return zmul(g, self._by_x(*inputs)), None, by_updates

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (tx, _, tu), (x, index, _) = tangents, inputs
        if tx is None and tu is None:
            return None
        own = full(0, x.type) if tx is None else zmul(tx, self._by_x(*inputs))
        return own if tu is None else self.add(own, index, zmul(tu, self._by_updates(*inputs)))


def counted(index: Node, size: Any) -> Node:
    """Positions counted from the front, as int64."""
    index = cast(index, int64)
    n = expand(SizeOf(size, int64)(), index.shape, tuple(range(index.type.rank)))
    return select(lt(index, full(0, index.type)), add(index, n), index)


def _widened(flags: Node, like: Node, axis: int, shared: int) -> Node:
    """Flags of positions for each element along the axes that positions do not have."""
    rank = like.type.rank
    return expand(flags, like.shape, [i for i in range(rank) if i != axis and i >= shared])
