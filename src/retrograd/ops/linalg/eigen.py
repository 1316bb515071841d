"""`eigh` and `eigvalsh`, eigenvalues of symmetric matrices with and without the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, declare
from retrograd.ops.linalg.matrix import (
    MatrixOp,
    Refused,
    check_matrices,
    diagonal,
    diagonal_of,
    finite,
    gaps,
    iterated,
    orientation,
    product,
    rows,
    scaled_columns,
    symmetric,
    transpose,
)
from retrograd.ops.shape import Concat, reshape


class _Symmetric(MatrixOp):
    """A function of the symmetric part of a matrix."""

    arity = 1

    def reason(self, code: int) -> str:
        return iterated(code)


@declare
class Eigh(_Symmetric):
    """Eigenvalues and eigenvectors of `(x + x^T) / 2`, for `x[..., n, n]`.

    They are packed into `y[..., n + 1, n]`: the eigenvalues in ascending order, then a row for each
    eigenvector, of length 1; the first of its components that are at least 0.6 times its largest is
    positive.

    In derivatives, eigenvalues that differ by less than `8 eps` times the sum of all magnitudes
    count as equal, and vectors of equal eigenvalues do not turn into one another. So derivatives
    are finite, and those of first order exact for what depends only on the space that such vectors
    span; second derivatives lack what happens within it.
    """

    name = "eigh"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x, square=True)
        return x.with_shape((*x.shape[:-2], x.shape[-1] + 1, x.shape[-1]))

    def reference(self, *arrays: Any) -> Any:
        n = arrays[0].shape[-1]
        return self.stacked(self._value, (n + 1, n), *arrays)

    def _value(self, x: Any) -> Any:
        try:
            w, v = np.linalg.eigh((finite(x) + x.T) / 2)
        except np.linalg.LinAlgError:
            raise Refused(1) from None
        return np.concatenate([w[None], (v * orientation(v)).T])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V (diag(gw) + F * (V^T gV)) V^T` with `F[i, j] = 1 / (w[j] - w[i])`, symmetrised."""
        w, v = unpacked(y)
        gw, gv = unpacked(g)
        middle = product(transpose(v), gv) * gaps(w) + diagonal(gw)
        return (symmetric(product(v, middle, transpose(v))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With `M = V^T t V`: `tw` is its diagonal, `tV = V (F * M)`."""
        (t,) = tangents
        if t is None:
            return None
        w, v = unpacked(y)
        middle = product(transpose(v), symmetric(t), v)
        tv = product(v, middle * gaps(w))
        return packed(diagonal_of(middle), tv)


@declare
class Eigvalsh(_Symmetric):
    """Eigenvalues of `(x + x^T) / 2` in ascending order: `[..., n, n]` gives `[..., n]`.

    The gradient of a repeated eigenvalue is that of the one LAPACK's vectors belong to.
    """

    name = "eigvalsh"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x, square=True)
        return x.with_shape(x.shape[:-1])

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[0].shape[-1:], *arrays)

    def _value(self, x: Any) -> Any:
        try:
            return np.linalg.eigvalsh((finite(x) + x.T) / 2)
        except np.linalg.LinAlgError:
            raise Refused(1) from None

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V diag(g) V^T`."""
        _, v = unpacked(Eigh()(*inputs))
        return (product(scaled_columns(v, g), transpose(v)),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `V^T t V`."""
        (t,) = tangents
        if t is None:
            return None
        _, v = unpacked(Eigh()(*inputs))
        return diagonal_of(product(transpose(v), symmetric(t), v))


def unpacked(y: Node) -> tuple[Node, Node]:
    """Eigenvalues, and a matrix whose columns are the vectors."""
    n = y.shape[-1]
    return reshape(rows(y, 0, 1), (*y.shape[:-2], n)), transpose(rows(y, 1, n + 1))


def packed(w: Node, v: Node) -> Node:
    """The inverse of `unpacked`."""
    row = reshape(w, (*w.shape[:-1], 1, w.shape[-1]))
    return Concat(v.type.rank - 2)(row, transpose(v))
