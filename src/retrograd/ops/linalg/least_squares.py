"""`least_factors` and `least_squares`: solutions of equations that may have none, or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, TensorType, declare
from retrograd.ops.complex import conj
from retrograd.ops.linalg.matrix import (
    Iterative,
    MatrixOp,
    adjoint,
    check_matrices,
    check_tall,
    product,
    side_by_side,
)
from retrograd.ops.shape import fail

MARGIN = 2  # by which bounds have to say more than singular values would


@declare
class LeastFactors(Iterative):
    """What `least_squares` needs of `x[..., m, n]`, of at least as many rows as columns: singular
    values up to `limit[..., 1, 1]` times the largest count as zero.

    Where that surely concerns none, these are `x = Q R` as LAPACK's `geqrf` leaves them: in
    `f[..., n, m + 1]` a row for each column of x, with R up to the diagonal, and behind it the
    vector of a reflection, whose factor comes last. Bounds of the largest singular value and of the
    inverse of the smallest one tell that, norms of R and `R^-1`, or, where these are too far apart,
    the singular values. Elsewhere f is the pseudo-inverse, with NaN in the last column. No
    derivative flows through it.
    """

    name = "least_factors"
    multiplications = staticmethod(lambda m, n, k: 2 * m * n * n - n * n * n // 3)
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, limit = types
        check_matrices(self, x, limit)
        check_tall(self, x)
        if limit.shape[-2:] != (1, 1):
            raise fail(self, limit, "the limit is one number for each matrix, [1, 1]")
        m, n = x.shape[-2:]
        return x.with_shape((*x.shape[:-2], n, m + 1))

    def reference(self, *arrays: Any) -> Any:
        m, n = arrays[0].shape[-2:]
        return self.stacked(self._value, (n, m + 1), *arrays)

    def _value(self, x: Any, limit: Any) -> Any:
        n = x.shape[1]
        rtol = limit.item().real
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        kept = s > rtol * s[:1]
        if kept.all():
            h, factors = np.linalg.qr(x, mode="raw")
            return np.concatenate([h, factors[:, None]], axis=1)
        inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
        p = (vh.conj().T * inverse) @ u.conj().T
        return np.concatenate([p, np.full((n, 1), np.nan, x.dtype)], axis=1)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return None, None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None


@declare
class LeastSquares(MatrixOp):
    """`y = x^+ b`, or with `adjoint` `y = (x^H)^+ b`, for the pseudo-inverse of `x[..., m, n]` by
    `f = least_factors(x, limit)`: of all y for which the sum of squares of `x y - b` is least, the
    smallest one.

    `b[..., m, k]` and `y[..., n, k]`, or the other way around. The derivative is that at constant
    rank (Golub, Pereyra: "The differentiation of pseudo-inverses", SIAM J. Numer. Anal. 10, 1973),
    written such that nothing is larger than x.
    """

    name = "least_squares"
    multiplications = staticmethod(lambda m, n, k: 4 * m * n * k)
    arity = 3
    adjoint: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        x, f, b = types
        check_matrices(self, x, f, b)
        check_tall(self, x)
        m, n = x.shape[-2:]
        if f.shape[-2:] != (n, m + 1):
            raise fail(self, f, f"the factors of {x} are {n} x {m + 1}")
        if b.shape[-2] != (n if self.adjoint else m):
            raise fail(self, b, f"it has as many {'columns' if self.adjoint else 'rows'} as {x}")
        return b.with_shape((*b.shape[:-2], m if self.adjoint else n, b.shape[-1]))

    def reference(self, *arrays: Any) -> Any:
        x, _, b = arrays
        rows = x.shape[-2 if self.adjoint else -1]
        return self.stacked(self._value, (rows, b.shape[-1]), *arrays)

    def _value(self, x: Any, f: Any, b: Any) -> Any:
        if np.isnan(f[:, -1]).any():
            p = f[:, :-1]
            return p.conj().T @ b if self.adjoint else p @ b
        q, r = np.linalg.qr(x)
        if self.adjoint:
            return q @ np.linalg.solve(r.conj().T, b)
        return np.linalg.solve(r, q.conj().T @ b)

    def _straight(self, x: Node, f: Node, b: Node, turned: bool) -> Node:
        """`A^+ b` for the matrix A that this op is about, or `(A^H)^+ b`."""
        y: Node = LeastSquares(self.adjoint != turned)(x, f, b)
        return y

    def _times(self, x: Node, b: Node) -> Node:
        """`A b`."""
        return product(adjoint(x) if self.adjoint else x, b)

    def _adjoint_times(self, x: Node, b: Node) -> Node:
        return product(x if self.adjoint else adjoint(x), b)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`gb = (A^H)^+ g` and
        `gA = -gb y^H + (b - A y) (A^+ gb)^H + (A^H)^+ y (g - A^H gb)^H`."""
        x, f, b = inputs
        g = conj(g)
        gb = self._straight(x, f, g, True)
        missed = b - self._times(x, y)
        outside = g - self._adjoint_times(x, gb)
        ga = -product(gb, adjoint(y))
        ga = ga + product(missed, adjoint(self._straight(x, f, gb, False)))
        ga = ga + product(self._straight(x, f, y, True), adjoint(outside))
        return conj(adjoint(ga) if self.adjoint else ga), None, conj(gb)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """`ty = A^+ (tb - tA y + (A^H)^+ tA^H (b - A y)) + (1 - A^+ A) tA^H (A^H)^+ y`."""
        (tx, _, tb), (x, f, b) = tangents, inputs
        if tx is None:
            return None if tb is None else self(x, f, tb)
        missed = b - self._times(x, y)
        right = self._straight(x, f, self._adjoint_times(tx, missed), True) - self._times(tx, y)
        outside = self._adjoint_times(tx, self._straight(x, f, y, True))
        right = right - self._times(x, outside)
        moved: Node = self(x, f, right if tb is None else right + tb) + outside
        return moved

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        if any(batched[:2]):
            return super().batch(size, batched, *inputs)
        return side_by_side(self, size, inputs[:2], inputs[2])
