"""Sparse matrices of features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import FormatError, ShapeError
from retrograd.functions.segment_ops import segment_sum
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import as_tensor

FIELDS = ("values", "column", "row", "start", "width")


class CSR:
    """A matrix of which only what is not zero is stored, row after row: `values` `[nnz]`, `column`
    `[nnz]`, and `start` `[rows + 1]`, where each row starts.

    It is a tree of tensors, thus an ordinary argument of functions under `jit` and `grad`.
    `matrix @ dense` is differentiable in the dense operand and in the stored values. Products are
    added in the order in which they are stored.

    `ShapeError` where the lengths do not fit, `FormatError` for a column that is not there.

    >>> from retrograd import gnn
    >>> m = gnn.CSR.from_dense([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]])
    >>> m, (m @ [[1.0], [10.0]]).tolist()
    (CSR((3, 2), 3 stored), [[20.0], [0.0], [31.0]])
    """

    values: Tensor
    column: Tensor
    row: Tensor  # of each value
    start: Tensor
    width: Tensor  # as many elements as there are columns, so that their number is a shape

    def __init__(self, values: Any, column: Any, start: Any, shape: tuple[int, int]) -> None:
        rows, columns = shape
        where, begin = (np.array(a, np.int64, order="C") for a in (column, start))
        if begin.shape != (rows + 1,) or begin[0] != 0 or (np.diff(begin) < 0).any():
            raise ShapeError(f"CSR of {rows} rows: start has {rows + 1} numbers, from 0, ascending")
        if where.shape != (begin[-1],):
            raise ShapeError(f"CSR: there are {begin[-1]} values, but {where.shape} columns")
        outside = np.flatnonzero((where < 0) | (where >= columns))
        if outside.size:
            k = int(outside[0])
            raise FormatError(f"CSR: value {k} is in column {where[k]}, but there are {columns}")
        self.values = as_tensor(values)
        if self.values.shape != where.shape:
            raise ShapeError(f"CSR: {self.values.shape} values for {where.shape} columns")
        self.column, self.start = Tensor.of(where), Tensor.of(begin)
        self.row = Tensor.of(np.repeat(np.arange(rows), np.diff(begin)))
        self.width = Tensor.of(np.zeros(columns, np.bool_))

    @classmethod
    def from_dense(cls, matrix: Any) -> CSR:
        """What is not zero of a matrix."""
        array = np.asarray(as_tensor(matrix).numpy())
        if array.ndim != 2:
            raise ShapeError(f"CSR.from_dense takes a matrix, not an array of shape {array.shape}")
        row, column = np.nonzero(array)
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(array)))])
        return cls(array[row, column], column, start, array.shape)

    @classmethod
    def from_scipy(cls, matrix: Any) -> CSR:
        """The same of a sparse matrix of SciPy."""
        found = matrix.tocsr()
        return cls(found.data, found.indices, found.indptr, found.shape)

    @property
    def shape(self) -> tuple[Any, Any]:
        return self.start.shape[0] - 1, self.width.shape[0]

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def __matmul__(self, dense: Any) -> Any:
        dense = as_tensor(dense)
        if dense.ndim not in (1, 2) or dense.shape[0] != self.shape[1]:
            raise ShapeError(f"a product of CSR {self.shape} and {dense.shape}")
        values = self.values if dense.ndim == 1 else self.values[:, None]
        return segment_sum(dense[self.column] * values, self.row, self.shape[0])

    def to_dense(self) -> Tensor:
        """The matrix with its zeros."""
        rows, columns = self.shape
        flat = segment_sum(self.values, self.row * columns + self.column, rows * columns)
        return flat.reshape((rows, columns))

    def __repr__(self) -> str:
        return f"CSR({self.shape}, {self.values.shape[0]} stored)"


def _split(matrix: CSR) -> tuple[Sequence[Any], Any, Sequence[Any]]:
    return [getattr(matrix, name) for name in FIELDS], None, FIELDS


def _joined(_: Any, children: Iterable[Any]) -> CSR:
    new = object.__new__(CSR)
    for name, child in zip(FIELDS, children, strict=True):
        setattr(new, name, child)
    return new


pytree.register(CSR, _split, _joined, holds_state=True)
