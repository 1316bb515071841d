"""Gradients of tables of which few rows were looked at."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from sys import getrefcount, maxsize
from typing import Any, NamedTuple

import numpy as np

from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array, leaf
from retrograd.eager.modes import grad_enabled
from retrograd.eager.program_cache import GRADIENTS
from retrograd.errors import IndexRangeError, ShapeError
from retrograd.functions.manipulation import concat
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Shape
from retrograd.ops.index import ScatterAdd
from retrograd.shared import assign


class RowSparse:
    """A tensor of a shape `[n, ...]` that is 0 but in some rows: row `rows[i]` holds `values[i]`,
    added up where a row occurs more than once.

    It is what `.grad` of a table is after lookups with `nn.functional.embedding(..., sparse=True)`.
    Optimizers move only these rows, and their state.

    `ShapeError` where rows and values do not fit the shape.

    >>> import retrograd as rg
    >>> rg.nn.RowSparse([1], [[2.0, 3.0]], (3, 2)).shape
    (3, 2)
    """

    def __init__(self, rows: Any, values: Any, shape: Shape) -> None:
        self.rows: Array = np.asarray(as_array(rows), np.int64)
        self.values: Tensor = values if isinstance(values, Tensor) else Tensor.of(as_array(values))
        self.shape = tuple(shape)
        if self.rows.ndim != 1 or self.values.shape != (len(self.rows), *self.shape[1:]):
            raise ShapeError(
                f"RowSparse of the shape {self.shape}: {self.rows.shape} rows and values of the "
                f"shape {self.values.shape} do not fit"
            )
        if len(self.rows) and not 0 <= self.rows.min() <= self.rows.max() < self.shape[0]:
            raise ShapeError(f"RowSparse: rows lie within 0 to {self.shape[0]}")

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    def coalesce(self) -> RowSparse:
        """The same with each row once, in ascending order."""
        rows, place = np.unique(self.rows, return_inverse=True)
        if len(rows) == len(self.rows) and bool((rows == self.rows).all()):
            return self
        values = self.values.value()
        nothing = np.zeros((len(rows), *self.shape[1:]), values.dtype)
        total = ScatterAdd(0).reference(nothing, place, values)
        return RowSparse(rows, Tensor.of(total), self.shape)

    def places(self) -> Array:
        """For each of `rows` a position in it where the same row stands, one for all that are
        equal: where values are added up, for as many as there are, whatever the rows."""
        of = np.empty(self.shape[0], np.int64)  # what is not written is not read
        of[self.rows] = np.arange(len(self.rows))
        return of[self.rows]

    def to_dense(self) -> Tensor:
        """The whole tensor."""
        once = self.coalesce()
        whole = np.zeros(self.shape, self.dtype.dtype)
        whole[once.rows] = once.values.value()
        return Tensor.of(whole)

    def numpy(self) -> Array:
        """The whole array."""
        return self.to_dense().numpy()

    def __add__(self, other: Any) -> Any:
        """With another one it stays sparse."""
        if isinstance(other, RowSparse) and other.shape == self.shape:
            rows = np.concatenate([self.rows, other.rows])
            return RowSparse(rows, concat([self.values, other.values], axis=0), self.shape)
        return self.to_dense() + other

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __repr__(self) -> str:
        return f"RowSparse({len(self.rows)} rows of {self.shape}, dtype={self.dtype})"


class Found(NamedTuple):
    """Rows of a table, and what was found for them."""

    rows: Array
    found: Any


class EmbeddingLeaf(Tensor):
    """The rows of one lookup, a leaf: what it gets as its gradient, the table gets."""

    __slots__ = ("data", "found", "rows", "table")

    data: Any

    def __init__(self, table: Any, rows: Array, values: Array) -> None:
        self.found: Any = None
        self.rows = rows
        self.table = weakref.ref(table)
        super().__init__(leaf(values), True)
        prim: Any = self.node.prim
        self.data = prim
        self.data.kept = self  # as long as something depends on it

    def _change(self, operation: Callable[..., Any], other: Any) -> Any:
        return operation(self, other)  # to its user it is computed

    @property
    def _grad(self) -> Any:
        return self.found

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self.found = value
        table = self.table()
        if value is None or table is None:
            return
        self.data.kept = None
        if all(x is not self for x in table.looked):
            table.looked.append(self)


def look_up(table: Any, index: Array) -> Tensor:
    """Rows of a parameter, which gets a `RowSparse` as its gradient."""
    outside = (index < 0) | (index >= table.shape[0])
    if outside.any():
        raise IndexRangeError(
            f"embedding: the index {int(index[outside][0])} lies outside of the {table.shape[0]} "
            "rows of the table"
        )
    # Taken at once, so that nothing that is recorded depends on the table as a whole, and steps may
    # change it in place.
    values = np.take(table.value(), index, axis=0)
    if not grad_enabled() or not table.requires_grad:
        return Tensor.of(values)
    return EmbeddingLeaf(table, index.reshape(-1), values)


def gathered(table: Any) -> RowSparse | None:
    """What lookups have left for a table so far."""
    total = None
    for found in table.looked:
        n = len(found.rows)
        one = RowSparse(found.rows, found.found.reshape((n, *table.shape[1:])), table.shape)
        total = one if total is None else total + one
    return total


def forget_gradients(tensors: Iterable[Any]) -> None:
    """Have no gradients, neither whole ones nor of rows."""
    changes: list[tuple[Any, str, Any]] = []
    for x in tensors:
        changes.append((x, "_grad", None))
        if getattr(x, "looked", None):
            changes.append((x, "looked", []))
    with GRADIENTS:
        assign(changes)


def with_rows(x: Tensor, rows: Array, new: Array, control: Tensor) -> Array:
    """The array of a tensor with other rows: changed in place where nobody else can see it, which
    is where there are no more references than to `control`, a fresh tensor held alike."""
    alone = x.is_source == control.is_source and _fewer(x, control)
    array = x.value() if alone else x.value().copy()
    array[rows] = new
    return array


def _fewer(x: Tensor, control: Tensor) -> bool:
    mine, theirs = _references(x), _references(control)
    return all(a <= b for a, b in zip(mine, theirs, strict=True))


def _references(x: Tensor) -> tuple[int, int]:
    array = x.value()
    if not (array.flags.writeable and array.flags.owndata):
        return maxsize, maxsize
    return getrefcount(array), getrefcount(x.node) if x.is_source else getrefcount(x)
