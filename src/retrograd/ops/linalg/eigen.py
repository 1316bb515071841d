"""`eigh` and `eigvalsh`, eigenvalues of symmetric and hermitian matrices, with and without the
vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, declare
from retrograd.ops.complex import conj, real
from retrograd.ops.elementwise import cast
from retrograd.ops.linalg.matrix import (
    Anchor,
    MatrixOp,
    Refused,
    adjoint,
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
    """A function of the hermitian part of a matrix: of a real one, the symmetric part."""

    arity = 1

    def reason(self, code: int) -> str:
        return iterated(code)


@declare
class Eigh(_Symmetric):
    """Eigenvalues and eigenvectors of `(x + x^H) / 2`, for `x[..., n, n]`.

    They are packed into `y[..., n + 1, n]`: the eigenvalues in ascending order, then a row for each
    eigenvector, of length 1; the first of its components that are at least 0.6 times its largest is
    real and positive.

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
            w, v = np.linalg.eigh((finite(x) + x.conj().T) / 2)
        except np.linalg.LinAlgError:
            raise Refused(1) from None
        return np.concatenate([w[None].astype(x.dtype), (v * orientation(v)).T])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V (diag(gw) + F * (V^H gV)) V^H` with `F[i, j] = 1 / (w[j] - w[i])`, made hermitian."""
        w, v = unpacked(y)
        gw, gv = unpacked(conj(g))
        if v.dtype.is_complex:
            gv = Anchor(v).freed(gv)
        middle = product(adjoint(v), gv) * cast(gaps(real(w)), v.dtype)
        middle = middle + cast(diagonal(real(gw)), v.dtype)
        return (conj(symmetric(product(v, middle, adjoint(v)))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With `M = V^H t V`: `tw` is its diagonal, `tV = V (F * M)`."""
        (t,) = tangents
        if t is None:
            return None
        w, v = unpacked(y)
        middle = product(adjoint(v), symmetric(t), v)
        tv = product(v, middle * cast(gaps(real(w)), v.dtype))
        if v.dtype.is_complex:
            anchor = Anchor(v)
            tv = anchor.fixed(tv, anchor.turn(tv))
        return packed(cast(real(diagonal_of(middle)), v.dtype), tv)


@declare
class Eigvalsh(_Symmetric):
    """Eigenvalues of `(x + x^H) / 2`, real numbers, in ascending order: `[..., n, n]` gives
    `[..., n]`.

    The gradient of a repeated eigenvalue is that of the one LAPACK's vectors belong to.
    """

    name = "eigvalsh"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x, square=True)
        kept = x.with_shape(x.shape[:-1])
        return kept.with_dtype(x.dtype.real) if x.dtype.is_complex else kept

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        dtype = x.real.dtype if x.dtype.kind == "c" else None
        return self.stacked(self._value, x.shape[-1:], x, dtype=dtype)

    def _value(self, x: Any) -> Any:
        try:
            return np.linalg.eigvalsh((finite(x) + x.conj().T) / 2)
        except np.linalg.LinAlgError:
            raise Refused(1) from None

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V diag(g) V^H`."""
        _, v = unpacked(Eigh()(*inputs))
        return (conj(product(scaled_columns(v, g), adjoint(v))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `V^H t V`."""
        (t,) = tangents
        if t is None:
            return None
        _, v = unpacked(Eigh()(*inputs))
        return real(diagonal_of(product(adjoint(v), symmetric(t), v)))


def unpacked(y: Node) -> tuple[Node, Node]:
    """Eigenvalues, and a matrix whose columns are the vectors."""
    n = y.shape[-1]
    return reshape(rows(y, 0, 1), (*y.shape[:-2], n)), transpose(rows(y, 1, n + 1))


def packed(w: Node, v: Node) -> Node:
    """The inverse of `unpacked`."""
    row = reshape(w, (*w.shape[:-1], 1, w.shape[-1]))
    return Concat(v.type.rank - 2)(row, transpose(v))
