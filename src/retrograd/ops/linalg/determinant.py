"""`det`, which gives a determinant the derivative it has, and `cofactor`, which is that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, Trait, declare
from retrograd.ops.linalg.lu import LU, Inv
from retrograd.ops.linalg.matrix import (
    MatrixOp,
    SquareFunction,
    along,
    check_matrices,
    product,
    transpose,
)
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import fail


@declare
class Det(MatrixOp):
    """`d`, which is the determinant of `x[..., n, n]`, as a function of x.

    It passes on its second input and differentiates by the first, also where x is singular.
    """

    name = "det"
    traits = frozenset({Trait.FREE})
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, d = types
        check_matrices(self, x, square=True)
        if d != x.with_shape(x.shape[:-2]):
            raise fail(self, d, f"it is a number for each matrix of {x}")
        return d

    def reference(self, *arrays: Any) -> Any:
        return arrays[1]

    def slope(self, x: Node) -> Node:
        """The derivative by each element."""
        return Cofactor()(x)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        slope = self.slope(inputs[0])
        return slope * along(g, slope), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        t = tangents[0]
        return None if t is None else inner(self.slope(inputs[0]), t)


@declare
class LogAbsDet(Det):
    """`d`, which is the logarithm of the magnitude of the determinant of `x[..., n, n]`, of a
    complex one the logarithm of the determinant, as a function of x: its derivative is `x^-T`,
    which is refused where x is singular."""

    name = "logabsdet"

    def slope(self, x: Node) -> Node:
        return transpose(Inv()(x, LU()(x)))


@declare
class Cofactor(SquareFunction):
    """The derivative of the determinant of `x[..., n, n]` by each element: `det(x) x^-T`.

    Singular matrices have one too: by singular values it is `det(U V) U diag(product of the other
    s) V^T`. Its own derivative is `cofactor_slope`.
    """

    name = "cofactor"
    multiplications = staticmethod(lambda m, n, k: 2 * n * n * n)

    def _value(self, x: Any) -> Any:
        if not np.isfinite(x).all():
            return np.full_like(x, np.nan)
        u, s, vh = np.linalg.svd(x)
        others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))], x.dtype)
        return np.linalg.det(u) * np.linalg.det(vh) * (u.conj() * others) @ vh.conj()

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """The derivative is its own transpose."""
        return (CofactorSlope()(inputs[0], g),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return None if t is None else CofactorSlope()(inputs[0], t)


@declare
class CofactorSlope(MatrixOp):
    """The derivative of the cofactors of `x[..., n, n]` along t: `(<c, t> c - c t^T c) / det(x)`.

    Singular matrices have one too, and it is computed without the quotient. Cofactors of a product
    are products of the cofactors, those of diagonal matrices are simple: with `x = U diag(s) V^H`,
    `p = U^H t V` and `q[i, j]` the product of all s but the i-th and the j-th, 0 for i = j, it is
    `det(U V^H) conj(U) (diag(q diag(p)) - q * p^T) V^T`. Its own derivative in x is NaN where x is
    singular.
    """

    name = "cofactor_slope"
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, t = types
        check_matrices(self, x, t, square=True)
        if t != x:
            raise fail(self, t, f"it has the shape of {x}")
        return x

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[0].shape[-2:], *arrays)

    def _value(self, x: Any, t: Any) -> Any:
        if not np.isfinite(x).all() or not x.size:
            return np.full_like(x, np.nan)
        u, s, vh = np.linalg.svd(x)
        n = len(s)
        others = np.zeros((n, n), x.dtype)
        for i in range(n):
            for j in range(i):
                others[i, j] = others[j, i] = np.prod(np.delete(s, (i, j)))
        p = u.conj().T @ t @ vh.conj().T
        middle = np.diag(others @ np.diagonal(p)) - others * p.T
        return np.linalg.det(u) * np.linalg.det(vh) * u.conj() @ middle @ vh.conj()

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        x, t = inputs
        return self._further(x, t, g), CofactorSlope()(x, g)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (tx, tt), (x, t) = tangents, inputs
        parts = [self._further(x, t, tx)] if tx is not None else []
        parts += [CofactorSlope()(x, tt)] if tt is not None else []
        return sum(parts[1:], parts[0]) if parts else None

    def _further(self, x: Node, a: Node, b: Node) -> Node:
        """The derivative of the cofactors along a and b, symmetric in these and its own transpose:
        that of the quotient."""
        c, ca, cb = Cofactor()(x), CofactorSlope()(x, a), CofactorSlope()(x, b)
        # Each row of x times its cofactors is the determinant.
        d = along(ReduceSum((x.type.rank - 1,))(x * c), c)
        at = transpose(a)
        moved = along(inner(cb, a), c) * c + along(inner(c, a), c) * cb
        moved = moved - product(cb, at, c) - product(c, at, cb)
        return (moved - ca * along(inner(c, b), c)) / d  # type: ignore[no-any-return]


def inner(a: Node, b: Node) -> Node:
    """The sum of the products of the elements of two matrices."""
    n = a.type.rank
    return ReduceSum((n - 2, n - 1))(a * b)
