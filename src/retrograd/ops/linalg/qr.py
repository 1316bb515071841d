"""`qr`, orthogonal columns and a triangle, and `complement`, the columns that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, declare, full
from retrograd.ops.complex import complex_, conj, imag, real
from retrograd.ops.elementwise import cast
from retrograd.ops.linalg.lu import UPPER, over
from retrograd.ops.linalg.matrix import (
    MatrixOp,
    adjoint,
    check_matrices,
    check_tall,
    columns,
    diagonal,
    diagonal_of,
    lower,
    product,
    transpose,
    upper,
)
from retrograd.ops.shape import Concat


@declare
class QR(MatrixOp):
    """The factors of `x = Q R` for matrices `x[..., m, n]` of at least as many rows as columns.

    `Q[m, n]` has orthonormal columns, `R[n, n]` zeros below its diagonal, as LAPACK's Householder
    reflections give them. They are packed into `y[..., n, m + n]`: the transpose of Q, then R. The
    derivative exists where x has full rank; elsewhere it is refused, as R is singular there.
    """

    name = "qr"
    multiplications = staticmethod(lambda m, n, k: 4 * m * n * n - 4 * n * n * n // 3)
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x)
        check_tall(self, x)
        m, n = x.shape[-2:]
        return x.with_shape((*x.shape[:-2], n, m + n))

    def reference(self, *arrays: Any) -> Any:
        m, n = arrays[0].shape[-2:]
        return self.stacked(self._value, (n, m + n), *arrays)

    def _value(self, x: Any) -> Any:
        q, r = np.linalg.qr(x)
        return np.concatenate([q.T, r], axis=1)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`(gQ + Q mirror(R gR^H - gQ^H Q)) R^-H`, the mirror of the lower half above, with the
        real part of the diagonal, as R's is real."""
        q, r = unpacked(y)
        gq, gr = unpacked(conj(g))
        middle = product(r, adjoint(upper(gr))) - product(adjoint(gq), q)
        half = lower(middle, True)
        mirrored = half + adjoint(half) + cast(diagonal(real(diagonal_of(middle))), half.dtype)
        return (conj(adjoint(UPPER(r, adjoint(gq + product(q, mirrored))))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """`tQ = Q (O - Q^H s) + s`, `tR = (Q^H s - O) R` for `s = t R^-1`, O the antihermitian
        matrix with the lower half of `Q^H s` and the imaginary part of its diagonal."""
        (t,) = tangents
        if t is None:
            return None
        q, r = unpacked(y)
        s = over(t, r)
        inner = product(adjoint(q), s)
        half = lower(inner, True)
        turned = half - adjoint(half)
        if turned.dtype.is_complex:
            angles = imag(diagonal_of(inner))
            turned = turned + diagonal(complex_(full(0, angles.type), angles))
        tq = product(q, turned - inner) + s
        tr = upper(product(inner - turned, r))
        return Concat(y.type.rank - 1)(transpose(tq), tr)


def unpacked(y: Node) -> tuple[Node, Node]:
    """`Q` and `R` of a packed factorisation."""
    n, width = y.shape[-2:]
    return transpose(columns(y, 0, width - n)), columns(y, width - n, width)


@declare
class Complement(MatrixOp):
    """Orthonormal columns `c[..., m, m - k]` orthogonal to the orthonormal columns `q[..., m, k]`.

    Which ones is a choice, here that of Householder reflections. The derivative turns them no more
    than it takes to stay orthogonal: `t_c = -q t_q^H c`. It is exact for everything that does not
    depend on the choice, such as the projection `c c^H`.
    """

    name = "complement"
    multiplications = staticmethod(lambda m, n, k: 4 * m * m * n)
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        (q,) = types
        check_matrices(self, q)
        check_tall(self, q)
        m, k = q.shape[-2:]
        return q.with_shape((*q.shape[:-1], m - k))

    def reference(self, *arrays: Any) -> Any:
        m, k = arrays[0].shape[-2:]
        return self.stacked(self._value, (m, m - k), *arrays)

    def _value(self, q: Any) -> Any:
        return np.linalg.qr(q, mode="complete")[0][:, q.shape[1] :]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (q,) = inputs
        return (conj(-product(y, product(adjoint(conj(g)), q))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        if t is None:
            return None
        return -product(inputs[0], product(adjoint(t), y))
