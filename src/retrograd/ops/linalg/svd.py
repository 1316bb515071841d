"""`svd` and `svdvals`, singular values with and without the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, TensorType, declare, full, least
from retrograd.ops.complex import complex_, conj, imag, real
from retrograd.ops.elementwise import cast
from retrograd.ops.linalg.matrix import (
    Anchor,
    MatrixOp,
    Refused,
    adjoint,
    along,
    check_matrices,
    diagonal,
    diagonal_of,
    finite,
    gaps,
    inverse_above,
    iterated,
    orientation,
    product,
    rows,
    scaled_columns,
    tolerance,
    transpose,
)
from retrograd.ops.shape import Concat, expand, reshape


class _Singular(MatrixOp):
    """A function of the singular values of a matrix."""

    arity = 1

    def count(self, x: TensorType) -> int | Dim:
        """How many there are."""
        return least(*x.shape[-2:])

    def reason(self, code: int) -> str:
        return iterated(code)


@declare
class SVD(_Singular):
    """The factors of `x = U diag(s) V^H`, for `x[..., m, n]` and `k = min(m, n)`.

    `U[m, k]` and `V[n, k]` have orthonormal columns, s descends and is not negative. Of each column
    of U, the first component that is at least 0.6 times the largest is real and positive. They are
    packed into `y[..., 1 + m + n, k]`: s, the rows of U, the rows of V.

    In derivatives, singular values that differ by less than `8 eps` times their sum count as equal,
    and those below that as zero; vectors of equal ones do not turn into one another, and those of
    zeros do not turn at all. So derivatives are finite, and those of first order exact for what
    depends only on the spaces that such vectors span.
    """

    name = "svd"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x)
        m, n = x.shape[-2:]
        return x.with_shape((*x.shape[:-2], 1 + m + n, self.count(x)))

    def reference(self, *arrays: Any) -> Any:
        m, n = arrays[0].shape[-2:]
        return self.stacked(self._value, (1 + m + n, min(m, n)), *arrays)

    def _value(self, x: Any) -> Any:
        try:
            u, s, vh = np.linalg.svd(finite(x), full_matrices=False)
        except np.linalg.LinAlgError:
            raise Refused(1) from None
        signs = orientation(u)
        v = vh.conj().T * signs
        return np.concatenate([s[None].astype(x.dtype), u * signs, v])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`U (diag(gs) + (F * skew(U^H gU)) S + S (F * skew(V^H gV))) V^H`, with
        `F[i, j] = 1 / (s[j]^2 - s[i]^2)`, and what the columns owe to directions outside."""
        (x,) = inputs
        m, k = x.shape[-2], y.shape[-1]
        s, u, v = unpacked(y, m)
        gs, gu, gv = unpacked(conj(g), m)
        s = real(s)
        inverse = inverse_above(s, along(tolerance(s), s))
        if u.dtype.is_complex:
            gu = Anchor(u).freed(gu, (gv, v))
        f = cast(_squared_gaps(s), u.dtype)
        left, right = product(adjoint(u), gu), product(adjoint(v), gv)
        middle = cast(diagonal(real(gs)), u.dtype)
        if u.dtype.is_complex:
            angles = imag(diagonal_of(left)) * inverse
            middle = middle + diagonal(complex_(full(0, angles.type), angles))
        middle = middle + scaled_columns(f * (left - adjoint(left)), s)
        middle = middle + transpose(scaled_columns(transpose(f * (right - adjoint(right))), s))
        gx = product(u, middle, adjoint(v))
        if m != k:
            outside = gu - product(u, left)
            gx = gx + product(scaled_columns(outside, inverse), adjoint(v))
        if x.shape[-1] != k:
            outside = gv - product(v, right)
            gx = gx + product(u, adjoint(scaled_columns(outside, inverse)))
        return (conj(gx),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With `P = U^H t V`: `ts` is its diagonal, `tU = U (F * (P S + S P^H))`, `tV = V (F * (S P
        + P^H S))`, and what of t lies outside, divided by s."""
        (t,), (x,) = tangents, inputs
        if t is None:
            return None
        m, k = x.shape[-2], y.shape[-1]
        s, u, v = unpacked(y, m)
        s = real(s)
        inverse = inverse_above(s, along(tolerance(s), s))
        p, f = product(adjoint(u), t, v), cast(_squared_gaps(s), u.dtype)
        ps, sp = scaled_columns(p, s), transpose(scaled_columns(transpose(p), s))
        tu = product(u, f * (ps + adjoint(ps)))
        tv = product(v, f * (sp + adjoint(sp)))
        if u.dtype.is_complex:
            angles = imag(diagonal_of(p)) * inverse
            tu = tu + scaled_columns(u, complex_(full(0, angles.type), angles))
        if m != k:
            outside = product(t, v) - product(u, p)
            tu = tu + scaled_columns(outside, inverse)
        if x.shape[-1] != k:
            outside = product(adjoint(t), u) - product(v, adjoint(p))
            tv = tv + scaled_columns(outside, inverse)
        if u.dtype.is_complex:
            anchor = Anchor(u)
            turn = anchor.turn(tu)
            tu, tv = anchor.fixed(tu, turn), anchor.fixed(tv, turn, v)
        return packed(cast(real(diagonal_of(p)), u.dtype), tu, tv)


@declare
class Svdvals(_Singular):
    """Singular values in descending order: `[..., m, n]` gives `[..., min(m, n)]`."""

    name = "svdvals"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x)
        kept = x.with_shape((*x.shape[:-2], self.count(x)))
        return kept.with_dtype(x.dtype.real) if x.dtype.is_complex else kept

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        dtype = x.real.dtype if x.dtype.kind == "c" else None
        return self.stacked(self._value, (min(x.shape[-2:]),), x, dtype=dtype)

    def _value(self, x: Any) -> Any:
        try:
            return np.linalg.svd(finite(x), compute_uv=False)
        except np.linalg.LinAlgError:
            raise Refused(1) from None

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`U diag(g) V^H`."""
        _, u, v = unpacked(SVD()(*inputs), inputs[0].shape[-2])
        return (conj(product(scaled_columns(u, g), adjoint(v))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `U^H t V`."""
        (t,) = tangents
        if t is None:
            return None
        _, u, v = unpacked(SVD()(*inputs), inputs[0].shape[-2])
        return real(diagonal_of(product(adjoint(u), t, v)))


def unpacked(y: Node, m: int | Dim) -> tuple[Node, Node, Node]:
    """`s`, `U` and `V` of a packed decomposition of matrices of m rows."""
    s = reshape(rows(y, 0, 1), (*y.shape[:-2], y.shape[-1]))
    return s, rows(y, 1, 1 + m), rows(y, 1 + m, y.shape[-2])


def packed(s: Node, u: Node, v: Node) -> Node:
    """The inverse of `unpacked`."""
    row = reshape(s, (*s.shape[:-1], 1, s.shape[-1]))
    return Concat(u.type.rank - 2)(row, u, v)


def _squared_gaps(s: Node) -> Node:
    """`1 / (s[j]^2 - s[i]^2)`, 0 where the two are not told apart."""
    n, shape = s.type.rank, (*s.shape, s.shape[-1])
    total = expand(s, shape, (n - 1,)) + expand(s, shape, (n,))
    squared: Node = gaps(s) * inverse_above(total, along(tolerance(s), total))
    return squared
