"""Sorting along an axis, and searching in what is sorted.

The order is that of numbers, with NaN at the end, whether ascending or descending; 0.0 and -0.0 are
equal. Sorting is stable: what is equal keeps its order, in descending order too. The gradient of an
element goes to where it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Node, Op, TensorType, Trait, as_dtype, declare, int64
from retrograd.ops.index import gather_along, scatter_along
from retrograd.ops.numerics.half import is_half
from retrograd.ops.shape import fail, stack_front

MOST = 2**32  # elements along an axis whose order is wanted: positions take 32 bits


def comparable(x: Any) -> Any:
    """An array that NumPy sorts, in the same order; it does not know half precision well."""
    return x.astype(np.float32) if is_half(x) else x


@declare
class Sort(Op):
    """The elements along an axis in order."""

    name = "sort"
    traits = frozenset({Trait.READS_MANY, Trait.DETERMINED, Trait.HANDS_ON})
    arity = 1
    axis: int
    descending: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype.is_complex:
            raise DTypeError(f"{self.name} compares real numbers, not {x}")
        if not 0 <= self.axis < x.rank:
            raise fail(self, x, f"the axis must lie within its {x.rank}")
        return x

    def order(self, x: Any) -> Any:
        """The stable permutation of an array."""
        x = comparable(x)
        if self.descending:
            x = np.negative(x) if x.dtype.kind == "f" else np.invert(x)
        return np.argsort(x, self.axis, kind="stable").astype(np.int64)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        return np.take_along_axis(x, self.order(x), self.axis)

    def positions(self, x: Node) -> Node:
        """Where each element of the result comes from."""
        return positions(x, self.axis, self.descending)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return (scatter_along(g, self.positions(x), self.axis, x.type),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return None if t is None else gather_along(t, self.positions(*inputs), self.axis)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return type(self)(self.axis + 1, self.descending)(*inputs)


@declare
class ArgSort(Sort):
    """The permutation, int64, that sorts the elements along an axis; equal ones keep their order.

    With a `count`, the first so many of its places; -1 means all. An axis of 2**32 elements or more
    is refused.
    """

    name = "argsort"
    traits = frozenset({Trait.READS_MANY, Trait.DETERMINED, Trait.SIZED})
    axis: int
    descending: bool = False
    count: int | Dim = -1

    def infer(self, *types: TensorType) -> TensorType:
        x = super().infer(*types)
        n = x.shape[self.axis]
        if isinstance(n, int) and n >= MOST:
            raise fail(self, x, "the axis has more elements than are numbered")
        if self.count == -1:
            return x.with_dtype(int64)
        if any(not isinstance(d, Dim) and d < 0 for d in (self.count, n - self.count)):
            raise fail(self, x, f"{self.count} places are not among the {n} of its axis")
        shape = (*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :])
        return TensorType(int64, shape)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        order = self.order(x)
        if self.count == -1:
            return order
        self.infer(TensorType(as_dtype(x.dtype), x.shape))
        return np.take(order, np.arange(index(self.count)), self.axis)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return ArgSort(self.axis + 1, self.descending, self.count)(*inputs)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None


def positions(x: Node, axis: int, descending: bool = False) -> Node:
    """Where the elements in order come from."""
    return ArgSort(axis, descending)(x)


@declare
class SearchSorted(Op):
    """How many elements of a sorted row come before each value, as int64.

    `y[s..., i...]` counts the elements of `row[s...]` that are less than `values[s..., i...]` or,
    with `right`, not greater. The first `shared` axes run together; the row is the last axis. The
    row must be sorted in ascending order, NaN at the end; the result for one that is not sorted is
    some position within it.
    """

    name = "searchsorted"
    traits = frozenset({Trait.READS_MANY})
    arity = 2
    right: bool = False
    shared: int = 0

    def infer(self, *types: TensorType) -> TensorType:
        row, values = types
        if row.dtype.is_complex:
            raise DTypeError(f"searchsorted compares real numbers, not {row}")
        if row.dtype is not values.dtype:
            raise DTypeError(f"searchsorted takes inputs of one dtype, not {row} and {values}")
        if row.rank != self.shared + 1 or values.rank < self.shared:
            raise fail(self, row, f"it has {self.shared} shared axes and one to search along")
        if row.shape[:-1] != values.shape[: self.shared]:
            raise ShapeError(f"searchsorted in {row} for {values}: the shared axes differ")
        return values.with_dtype(int64)

    def reference(self, *arrays: Any) -> Any:
        row, values = map(comparable, arrays)
        y = np.empty(values.shape, np.int64)
        for i in np.ndindex(row.shape[:-1]):
            y[i] = np.searchsorted(row[i], values[i], "right" if self.right else "left")
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return None, None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        if self.shared == 0 and not batched[0]:
            return self(*inputs)
        return SearchSorted(self.right, self.shared + 1)(*stack_front(size, batched, inputs))
