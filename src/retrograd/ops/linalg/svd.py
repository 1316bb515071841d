"""`svd` and `svdvals`, singular values with and without the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, TensorType, declare
from retrograd.ops.linalg.matrix import (
    MatrixOp,
    Refused,
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
from retrograd.ops.shape import Concat, expand, fail, reshape


class _Singular(MatrixOp):
    """A function of the singular values of a matrix."""

    arity = 1

    def count(self, x: TensorType) -> int | Dim:
        """How many there are."""
        m, n = x.shape[-2:]
        if m == n:
            return m
        if isinstance(m, Dim) or isinstance(n, Dim):
            raise fail(self, x, "its last two sizes must be numbers, or the same symbol")
        return min(m, n)

    def reason(self, code: int) -> str:
        return iterated(code)


@declare
class SVD(_Singular):
    """The factors of `x = U diag(s) V^T`, for `x[..., m, n]` and `k = min(m, n)`.

    `U[m, k]` and `V[n, k]` have orthonormal columns, s descends and is not negative. Of each column
    of U, the first component that is at least 0.6 times the largest is positive. They are packed
    into `y[..., 1 + m + n, k]`: s, the rows of U, the rows of V.

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
        return np.concatenate([s[None], u * signs, vh.T * signs])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`U (diag(gs) + (F * skew(U^T gU)) S + S (F * skew(V^T gV))) V^T`, with
        `F[i, j] = 1 / (s[j]^2 - s[i]^2)`, and what the columns owe to directions outside."""
        (x,) = inputs
        m = x.shape[-2]
        s, u, v = unpacked(y, m)
        gs, gu, gv = unpacked(g, m)
        f = _squared_gaps(s)
        left, right = product(transpose(u), gu), product(transpose(v), gv)
        middle = diagonal(gs)
        middle = middle + scaled_columns(f * (left - transpose(left)), s)
        middle = middle + transpose(scaled_columns(transpose(f * (right - transpose(right))), s))
        gx = product(u, middle, transpose(v))
        k = y.shape[-1]
        inverse = inverse_above(s, along(tolerance(s), s))
        if m != k:
            outside = gu - product(u, left)
            gx = gx + product(scaled_columns(outside, inverse), transpose(v))
        if x.shape[-1] != k:
            outside = gv - product(v, right)
            gx = gx + product(u, transpose(scaled_columns(outside, inverse)))
        return (gx,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With `P = U^T t V`: `ts` is its diagonal, `tU = U (F * (P S + S P^T))`, `tV = V (F * (S P
        + P^T S))`, and what of t lies outside, divided by s."""
        (t,), (x,) = tangents, inputs
        if t is None:
            return None
        m = x.shape[-2]
        s, u, v = unpacked(y, m)
        p, f = product(transpose(u), t, v), _squared_gaps(s)
        ps, sp = scaled_columns(p, s), transpose(scaled_columns(transpose(p), s))
        tu = product(u, f * (ps + transpose(ps)))
        tv = product(v, f * (sp + transpose(sp)))
        k = y.shape[-1]
        inverse = inverse_above(s, along(tolerance(s), s))
        if m != k:
            outside = product(t, v) - product(u, p)
            tu = tu + scaled_columns(outside, inverse)
        if x.shape[-1] != k:
            outside = product(transpose(t), u) - product(v, transpose(p))
            tv = tv + scaled_columns(outside, inverse)
        return packed(diagonal_of(p), tu, tv)


@declare
class Svdvals(_Singular):
    """Singular values in descending order: `[..., m, n]` gives `[..., min(m, n)]`."""

    name = "svdvals"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x)
        return x.with_shape((*x.shape[:-2], self.count(x)))

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, (min(arrays[0].shape[-2:]),), *arrays)

    def _value(self, x: Any) -> Any:
        try:
            return np.linalg.svd(finite(x), compute_uv=False)
        except np.linalg.LinAlgError:
            raise Refused(1) from None

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`U diag(g) V^T`."""
        _, u, v = unpacked(SVD()(*inputs), inputs[0].shape[-2])
        return (product(scaled_columns(u, g), transpose(v)),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `U^T t V`."""
        (t,) = tangents
        if t is None:
            return None
        _, u, v = unpacked(SVD()(*inputs), inputs[0].shape[-2])
        return diagonal_of(product(transpose(u), t, v))


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
