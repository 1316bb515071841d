"""`det`, which gives a determinant the derivative it has, and `cofactor`, which is that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, declare
from retrograd.ops.linalg.lu import LU, Inv
from retrograd.ops.linalg.matrix import MatrixOp, along, check_matrices, product, transpose
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import fail


@declare
class Det(MatrixOp):
    """`d`, which is the determinant of `x[..., n, n]`, as a function of x.

    It passes on its second input and differentiates by the first, also where x is singular.
    """

    name = "det"
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
    """`d`, which is the logarithm of the magnitude of the determinant of `x[..., n, n]`, as a
    function of x: its derivative is `x^-T`, which is refused where x is singular."""

    name = "logabsdet"

    def slope(self, x: Node) -> Node:
        return transpose(Inv()(x, LU()(x)))


@declare
class Cofactor(MatrixOp):
    """The derivative of the determinant of `x[..., n, n]` by each element: `det(x) x^-T`.

    Singular matrices have one too: by singular values it is `det(U V) U diag(product of the other
    s) V^T`. Its own derivative is `(<c, t> c - c t^T c) / det(x)`, which is NaN for these.
    """

    name = "cofactor"
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        check_matrices(self, *types, square=True)
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[0].shape[-2:], *arrays)

    def _value(self, x: Any) -> Any:
        if not np.isfinite(x).all():
            return np.full_like(x, np.nan)
        u, s, vh = np.linalg.svd(x)
        others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))], x.dtype)
        return np.linalg.det(u) * np.linalg.det(vh) * (u * others) @ vh

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (self._turned(y, g, inputs[0]),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return None if t is None else self._turned(y, t, inputs[0])

    def _turned(self, y: Node, t: Node, x: Node) -> Node:
        """`(<y, t> y - y t^T y) / det(x)`: the derivative is its own transpose."""
        # Each row of x times its cofactors is the determinant.
        d = ReduceSum((x.type.rank - 1,))(x * y)
        turned = along(inner(y, t), y) * y - product(y, transpose(t), y)
        result: Node = turned / along(d, y)
        return result


def inner(a: Node, b: Node) -> Node:
    """The sum of the products of the elements of two matrices."""
    n = a.type.rank
    return ReduceSum((n - 2, n - 1))(a * b)
