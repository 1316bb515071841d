"""`eig` and `eigvals`, eigenvalues of any square matrices, with and without the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import Node, TensorType, declare
from retrograd.ops.complex import conj, real
from retrograd.ops.elementwise import cast, le, zmul
from retrograd.ops.linalg.eigen import packed, unpacked
from retrograd.ops.linalg.lu import LU, Solve
from retrograd.ops.linalg.matrix import (
    Anchor,
    Iterative,
    along,
    ambiguous,
    check_matrices,
    diagonal,
    diagonal_of,
    gaps,
    noticed,
    orientation,
    others,
    pairs,
    product,
    size,
    tolerance,
    transpose,
    undefined_if,
    without_rounding,
)
from retrograd.ops.reduce import ReduceAny


class _General(Iterative):
    """A function of the eigenvalues of a square matrix: complex numbers."""

    def check(self, x: TensorType) -> None:
        """Refuse what has no eigenvalues in a dtype that there is."""
        check_matrices(self, x, square=True)
        if x.dtype.is_half:
            raise DTypeError(
                f"{self.name} gives complex numbers, of which there are none of halves: cast {x} "
                "to float32"
            )


@declare
class Eig(_General):
    """Eigenvalues w and eigenvectors of `x[..., n, n]`, complex numbers: `x V = V diag(w)`.

    They are packed into `y[..., n + 1, n]`: the eigenvalues in LAPACK's order, then a row for each
    eigenvector, of length 1; the first of its components that are at least 0.6 times its largest is
    real and positive.

    In derivatives, eigenvalues that differ by less than `8 eps` times the sum of all magnitudes
    count as equal. Their vectors have no derivative: NaN, unless nothing is asked of them. A matrix
    whose vectors are dependent (a defective one) has no derivative: it is refused where its
    computed vectors are singular to the last bit, and gives huge numbers where they nearly are.
    """

    name = "eig"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        self.check(x)
        n = x.shape[-1]
        return TensorType(x.dtype.complex, (*x.shape[:-2], n + 1, n))

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        n = x.shape[-1]
        return self.stacked(self._value, (n + 1, n), x, dtype=np.result_type(x, np.complex64))

    def _value(self, x: Any) -> Any:
        w, v = np.linalg.eig(x)
        v = v.astype(np.result_type(x, np.complex64))
        return np.concatenate([w[None], (v * orientation(v)).T])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V^-T (diag(gw) + F * (V^T gV)) V^T` with `F[i, j] = 1 / (w[j] - w[i])`, where of gV is
        left what does not make vectors longer or turn them by a factor."""
        (x,) = inputs
        w, v = unpacked(y)
        gw, gv = unpacked(g)
        gv = conj(Anchor(v, unit=True).freed(conj(gv)))
        equal = _equal(w)
        # A function of the space that vectors span turns none of them into another, and neither
        # does `V f(w) V^-1`: so what tells is whether they are asked for at all.
        asked, _ = pairs(ReduceAny((v.type.rank - 2,))(noticed(gv, gv)))
        turning = without_rounding(product(transpose(v), gv), gv, equal)
        middle = undefined_if(ambiguous(gw, asked, equal), zmul(turning, gaps(w, equal)))
        middle = diagonal(gw) + middle
        gx = Solve(transpose=True)(v, LU()(v), product(middle, transpose(v)))
        return (gx if x.dtype.is_complex else real(gx),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With `M = V^-1 t V`: `tw` is its diagonal, `tV = V (F * M)`, and then what keeps the
        vectors as they are normalised."""
        (t,) = tangents
        if t is None:
            return None
        w, v = unpacked(y)
        middle = Solve()(v, LU()(v), product(cast(t, v.dtype), v))
        equal = _equal(w)
        turning = without_rounding(middle, middle, equal)
        tv = product(v, zmul(turning, gaps(w, equal)))
        anchor = Anchor(v, unit=True)
        tv = anchor.fixed(tv, anchor.turn(tv))
        return packed(diagonal_of(middle), tv)


@declare
class Eigvals(_General):
    """Eigenvalues of `x[..., n, n]`, complex numbers `[..., n]`, in LAPACK's order.

    The gradient of a repeated eigenvalue is that of the one LAPACK's vectors belong to.
    """

    name = "eigvals"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        self.check(x)
        return TensorType(x.dtype.complex, x.shape[:-1])

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        dtype = np.result_type(x, np.complex64)
        return self.stacked(self._value, x.shape[-1:], x, dtype=dtype)

    def _value(self, x: Any) -> Any:
        return np.linalg.eigvals(x)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V^-T diag(g) V^T`."""
        (x,) = inputs
        _, v = unpacked(Eig()(x))
        gx = Solve(transpose=True)(v, LU()(v), product(diagonal(g), transpose(v)))
        return (gx if x.dtype.is_complex else real(gx),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `V^-1 t V`."""
        (t,) = tangents
        if t is None:
            return None
        _, v = unpacked(Eig()(*inputs))
        return diagonal_of(Solve()(v, LU()(v), product(cast(t, v.dtype), v)))


def _equal(w: Node) -> Node:
    """Which pairs of two eigenvalues are equal."""
    i, j = pairs(w)
    return others(le(size(i - j), along(tolerance(w), i)))
