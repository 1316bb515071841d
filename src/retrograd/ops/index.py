"""Indexing by data: `gather` reads, `scatter_add` writes; each is the other's transpose. Positions
on several axes become one by `ravel_index`. Other ways for updates to meet what is there are in
`scatter.py`.

An index counts from the front, or from the back where it is negative. One outside of the axis is an
error when the program runs, on every backend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, IndexRangeError, ShapeError
from retrograd.ir import Dim, Node, Op, Shape, TensorType, Trait, bool_, declare, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.numerics.compensated_sum import is_wide, of_parts, scattered
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.shape import fail, inverse, permute, stack_front


def _check(op: Gather | Scatter, x: TensorType, index: TensorType) -> None:
    if not index.dtype.is_integer:
        raise DTypeError(f"{op.name} takes integers as indices, not {index}")
    if not 0 <= op.shared <= op.axis < x.rank or op.shared > index.rank:
        raise fail(op, x, f"with the indices {index}, the axes must satisfy shared <= axis < rank")
    if x.shape[: op.shared] != index.shape[: op.shared]:
        raise fail(op, x, f"the indices {index} have other shared axes")


def _result(op: Gather | Scatter, x: Shape, index: Shape) -> Shape:
    """The shape of what is read or written: `axis` replaced by the index's own axes."""
    return x[: op.axis] + index[op.shared :] + x[op.axis + 1 :]


# What indices of an axis may be called in errors, and what the axis has.
MEANINGS = {"label": "classes", "index": "embeddings"}


def out_of_range(
    name: str, axis: int, index: int, size: int, of: str = "", at: Sequence[int] | None = None
) -> IndexRangeError:
    """The error for an index of an axis, where it stands `at` among the indices if that is known.
    Those `of` a meaning count from the front only: negative ones have come as `index - size`."""
    if of:
        given = index + size if index < 0 else index
        where = "" if at is None else f" (at {list(map(int, at))})"
        allowed = f"they are 0 to {size - 1}" if size else "there are none"
        return IndexRangeError(
            f"{of} {given} is out of range for {size} {MEANINGS[of]}; {allowed}{where}"
        )
    allowed = f"its indices are -{size} to {size - 1}" if size else "it has no elements"
    return IndexRangeError(
        f"{name} with the index {index} on axis {axis} of size {size}; {allowed}"
    )


def first_outside(index: Any, size: int) -> tuple[int, ...] | None:
    """Where the first index stands that is out of range."""
    outside = (index < -size) | (index >= size)
    return tuple(np.argwhere(outside)[0]) if outside.any() else None


def _from_front(name: str, axis: int, index: Any, size: int, of: str = "", shared: int = 0) -> Any:
    """Positions counted from the front; checks the range."""
    at = first_outside(index, size)
    if at is not None:
        raise out_of_range(name, axis, int(index[at]), size, of, place_of(at, index.shape, shared))
    at = index.astype(np.int64)
    return np.where(at < 0, at + size, at)


def place_of(at: Sequence[int], shape: Sequence[Any], shared: int) -> Sequence[int]:
    """The position among what was asked for: of one index for each place along shared axes, the
    axis of that one is left out."""
    return at[:-1] if shared and len(at) == shared + 1 and shape[-1] == 1 else at


def _positions(op: Gather | Scatter, x: Any, index: Any) -> tuple[Any, ...]:
    """NumPy's index for the elements concerned."""
    own = index.ndim - op.shared
    grid = np.ogrid[tuple(slice(n) for n in _result(op, x.shape, index.shape))]
    of = getattr(op, "of", "")
    at = _from_front(op.name, op.axis, index, x.shape[op.axis], of, op.shared).reshape(
        index.shape[: op.shared]
        + (1,) * (op.axis - op.shared)
        + index.shape[op.shared :]
        + (1,) * (x.ndim - op.axis - 1)
    )
    return (*grid[: op.axis], at, *grid[op.axis + own :])


@declare
class Gather(Op):
    """Read along one axis at given positions.

    `y[s..., p..., i..., q...] = x[s..., p..., index[s..., i...], q...]`: the first `shared` axes of
    `x` and `index` run together, `axis` of `x` is replaced by the remaining axes of `index`. `of`
    is what errors call an index, one of `MEANINGS`.
    """

    name = "gather"
    traits = frozenset({Trait.REAL_LINEAR, Trait.DETERMINED, Trait.HANDS_ON, Trait.FREE})
    arity = 2
    axis: int
    shared: int = 0
    of: str = ""

    def infer(self, *types: TensorType) -> TensorType:
        x, index = types
        _check(self, x, index)
        return x.with_shape(_result(self, x.shape, index.shape))

    def reference(self, *arrays: Any) -> Any:
        x, index = arrays
        return x[_positions(self, x, index)]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        x, index = inputs
        return ScatterAdd(self.axis, self.shared, self.of)(full(0, x.type), index, g), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return self(tangents[0], inputs[1]) if tangents[0] is not None else None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        x, index = inputs
        if self.shared == 0 and not batched[1]:  # the samples are one more axis of x
            return Gather(self.axis + 1, 0, self.of)(x, index)
        if self.shared == 0 and not batched[0]:  # a table read by many: one more axis of index
            y = self(x, index)
            return permute(y, (self.axis, *(i for i in range(y.type.rank) if i != self.axis)))
        x, index = stack_front(size, batched, (x, index))
        return Gather(self.axis + 1, self.shared + 1, self.of)(x, index)


@declare
class RavelIndex(Op):
    """One position for a position on each of several axes, as if these were one: in row-major
    order, counted from the front.

    `y[i...] = index[0][i...] * sizes[1] * sizes[2] * ... + index[1][i...] * sizes[2] * ... + ...`.
    So what is read at several index arrays is one `gather` from an array of which these axes are
    joined, and its gradient one `scatter_add`. `axis` is the first of the axes, for errors.
    """

    name = "ravel_index"
    traits = frozenset({Trait.DETERMINED})
    sizes: Shape
    axis: int = 0

    def infer(self, *types: TensorType) -> TensorType:
        if not types or len(types) != len(self.sizes):
            given = ", ".join(map(str, types))
            raise ShapeError(f"{self} takes indices for each of its axes, not ({given})")
        first = types[0]
        for t in types:
            if not t.dtype.is_integer:
                raise DTypeError(f"{self.name} takes integers as indices, not {t}")
            if t.shape != first.shape:
                raise fail(self, first, f"other indices are {t}")
        return TensorType(int64, first.shape)

    def reference(self, *arrays: Any) -> Any:
        place = np.zeros(arrays[0].shape, np.int64)
        for axis, (index, size) in enumerate(zip(arrays, self.sizes, strict=True), self.axis):
            place = place * int(size) + _from_front(self.name, axis, index, int(size))
        return place

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,) * len(inputs)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*stack_front(size, batched, inputs))


class Scatter(Op):
    """Updates that meet what is there, at given positions, in the order of the updates.

    `y = x`, then for one update after the other `y[s..., p..., index[s..., i...], q...]` becomes
    its combination with `updates[s..., p..., i..., q...]`. Positions may repeat; the order is
    fixed, so the result is reproducible to the bit.
    """

    traits = frozenset({Trait.READS_MANY})
    arity = 3
    axis: int
    shared: int
    mode: str  # what functions call it
    booleans = True  # whether it takes them
    combine: el.Elementwise | None = None  # what is there and an update; None: it is replaced

    def infer(self, *types: TensorType) -> TensorType:
        x, index, updates = types
        _check(self, x, index)
        if x.dtype is bool_ and not self.booleans:
            raise DTypeError(f"{self.name} takes numbers, not {x}; cast first")
        expected = x.with_shape(_result(self, x.shape, index.shape))
        if updates != expected:
            if updates.dtype is not x.dtype:
                raise DTypeError(f"{self.name} into {x} takes updates of its dtype, not {updates}")
            raise fail(self, x, f"the updates must be {expected}, not {updates}")
        return x

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return types[2].size

    def reference(self, *arrays: Any) -> Any:
        x, index, updates = arrays
        y = x.copy()
        with np.errstate(all="ignore"):
            self.meet(y, _positions(self, x, index), updates)
        return y

    def meet(self, y: Any, at: tuple[Any, ...], updates: Any) -> None:
        """Let updates meet what is in an array, in place."""
        raise NotImplementedError(self.name)

    def read(self, x: Node, index: Node) -> Node:
        """The elements that updates meet."""
        return Gather(self.axis, self.shared)(x, index)

    def add(self, x: Node, index: Node, updates: Node) -> Node:
        """The sum of updates, where this op would put them."""
        return ScatterAdd(self.axis, self.shared)(x, index, updates)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        kind: Any = type(self)
        x, index, updates = inputs
        if self.shared == 0 and not batched[1]:
            x, updates = stack_front(size, (batched[0], batched[2]), (x, updates))
            return kind(self.axis + 1)(x, index, updates)  # type: ignore[no-any-return]
        stacks = stack_front(size, batched, (x, index, updates))
        return kind(self.axis + 1, self.shared + 1)(*stacks)  # type: ignore[no-any-return]


@declare
class ScatterAdd(Scatter):
    """Add updates into an array at given positions, in the order of the updates.

    Of more than `BLOCK` updates of a place, blocks of so many are added one after the other, and
    their totals in twice the precision: the error is that of a block, whatever their number. Where
    a place is a single number, float32 is added up in float64 as it is.
    """

    name = "scatter_add"
    mode = "add"
    combine = el.add
    traits = frozenset({Trait.READS_MANY, Trait.REAL_LINEAR, Trait.KEPT})
    booleans = False
    axis: int
    shared: int = 0
    of: str = ""

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(self._added, arrays)

    def _added(self, x: Any, index: Any, updates: Any) -> Any:
        """By rows: what belongs to a place, for all along the axes that the index does not have."""
        if x.dtype.kind == "c":
            return of_parts(lambda x, updates: self._added(x, index, updates), x, updates)
        size, apart = x.shape[self.axis], self.shared
        at = _from_front(self.name, self.axis, index, size, self.of, self.shared)
        samples, before, behind = (
            math.prod(x.shape[a:b])
            for a, b in ((0, apart), (apart, self.axis), (self.axis + 1, x.ndim))
        )
        many = math.prod(index.shape[apart:])

        def rows(a: Any, n: int) -> Any:
            moved = a.reshape(samples, before, n, behind).transpose(0, 2, 1, 3)
            return moved.reshape(samples * n, before * behind)

        y = np.array(rows(x, size))
        places = at.reshape(samples, many) + np.arange(samples)[:, None] * size
        wide = is_wide(x, self.axis)
        scattered(y, places.reshape(-1), rows(updates, many), wide)
        back = y.reshape(samples, size, before, behind).transpose(0, 2, 1, 3)
        return np.ascontiguousarray(back).reshape(x.shape)

    def read(self, x: Node, index: Node) -> Node:
        return Gather(self.axis, self.shared, self.of)(x, index)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        y = super().batch(size, batched, *inputs)
        return replace(y.prim, of=self.of)(*y.inputs)  # type: ignore[type-var]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return g, None, self.read(g, inputs[1])

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (tx, _, tu), (x, index, updates) = tangents, inputs
        if tx is None and tu is None:
            return None
        tx = full(0, x.type) if tx is None else tx
        return self(tx, index, full(0, updates.type) if tu is None else tu)


def gather_along(x: Node, index: Node, axis: int) -> Node:
    """`y[p..., k, q...] = x[p..., index[p..., k, q...], q...]`, all other axes together."""
    order = _last(x.type.rank, axis)
    rank = x.type.rank - 1
    return permute(Gather(rank, rank)(permute(x, order), permute(index, order)), inverse(order))


def scatter_along(g: Node, index: Node, axis: int, like: TensorType) -> Node:
    """The transpose of `gather_along`: `g` added up where it was read from."""
    order = _last(like.rank, axis)
    rank = like.rank - 1
    zero = full(0, TensorType(g.dtype, tuple(like.shape[i] for i in order)))
    added = ScatterAdd(rank, rank)(zero, permute(index, order), permute(g, order))
    return permute(added, inverse(order))


def _last(rank: int, axis: int) -> tuple[int, ...]:
    """The permutation that puts an axis last."""
    return (*(i for i in range(rank) if i != axis), axis)
