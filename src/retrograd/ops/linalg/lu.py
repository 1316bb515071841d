"""`lu`, Gaussian elimination with row exchanges, and `solve`, which uses its factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, TensorType, Trait, declare, full, int64
from retrograd.ops.complex import real
from retrograd.ops.elementwise import cast
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.linalg.matrix import (
    MatrixOp,
    Refused,
    check_matrices,
    check_tall,
    identity,
    lower,
    product,
    rows,
    side_by_side,
    transpose,
    upper,
)
from retrograd.ops.linalg.triangular import SMALL, TriangularSolve, substitute
from retrograd.ops.shape import Concat, fail, pad, reshape

LOWER = TriangularSolve(unit=True)
LOWER_T = TriangularSolve(transpose=True, unit=True)
UPPER = TriangularSolve(upper=True)
UPPER_T = TriangularSolve(upper=True, transpose=True)


@declare
class LU(MatrixOp):
    """The factors of `x[p] = L U` for matrices `x[..., m, n]` of at least as many rows as columns.

    `L[m, n]` has ones on its diagonal and zeros above it, `U[n, n]` zeros below its diagonal. In
    each step the row with the largest element (the first of several) comes up; of complex numbers,
    that with the largest sum of the magnitudes of both parts, as LAPACK has it. All is packed into
    `y[..., n + 2, m]`: the transpose of `L` and `U` in one matrix, then the permutation p, then the
    exchanges: in step i, row i changed places with row `y[n + 1, i]`. A singular matrix has factors
    as well, with a zero on the diagonal of `U`.
    """

    name = "lu"
    multiplications = staticmethod(lambda m, n, k: m * n * n - n * n * n // 3)
    traits = frozenset({Trait.EXPENSIVE})
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x)
        check_tall(self, x)
        return x.with_shape((*x.shape[:-2], x.shape[-1] + 2, x.shape[-2]))

    def reference(self, *arrays: Any) -> Any:
        m, n = arrays[0].shape[-2:]
        return self.stacked(self._value, (n + 2, m), *arrays)

    def _value(self, x: Any) -> Any:
        m, n = x.shape
        y, order, exchanges = x.copy(), np.arange(m), np.zeros(m, np.int64)
        _factor(y, exchanges)
        for i, j in enumerate(exchanges[:n]):
            order[[i, j]] = order[[j, i]]
        return np.concatenate([y.T, order[None].astype(x.dtype), exchanges[None].astype(x.dtype)])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """With `x[p] = [B1; B2]`, `L = [L1; L2]`: B2 determines L2 = B2 U^-1, and B1 = L1 U."""
        left, right = factors(y)
        m, n = left.shape[-2:]
        g = transpose(rows(g, 0, n))
        gu, parts = rows(g, 0, n), []  # of U in its upper half, which is all that is read
        if m != n:
            # gB2 = gL2 U^-T, and U takes part in L2: gU - L2^T gB2.
            below = transpose(UPPER(right, transpose(rows(g, n, m))))
            gu = gu - product(transpose(rows(left, n, m)), below)
            parts = [below]
        top = rows(left, 0, n)
        middle = lower(product(transpose(top), lower(rows(g, 0, n), True)), True)
        middle = middle + upper(product(gu, transpose(right)))
        above = LOWER_T(top, transpose(UPPER(right, transpose(middle))))
        gx = Concat(g.type.rank - 2)(above, *parts) if parts else above
        axis = gx.type.rank - 2
        return (ScatterAdd(axis, axis)(full(0, gx.type), order(y), gx),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """`tL1 = L1 low(M)`, `tU = up(M) U`, `tL2 = (tB2 - L2 tU) U^-1`, `M = L1^-1 tB1 U^-1`."""
        (t,) = tangents
        if t is None:
            return None
        left, right = factors(y)
        m, n = left.shape[-2:]
        axis = t.type.rank - 2
        t = Gather(axis, axis)(t, order(y))
        top = rows(left, 0, n)
        middle = over(LOWER(top, rows(t, 0, n)), right)
        tu = product(upper(middle), right)
        tangent = product(top, lower(middle, True)) + tu
        if m != n:
            below = over(rows(t, n, m) - product(rows(left, n, m), tu), right)
            tangent = Concat(axis)(tangent, below)
        none = (0,) * axis
        return pad(transpose(tangent), (*none, 0, 0), (*none, 2, 0))


def _length(x: Any) -> Any:
    """By what pivots are chosen."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def over(x: Node, right: Node) -> Node:
    """`x right^-1`, right an upper triangle."""
    return transpose(UPPER_T(right, transpose(x)))


def factors(y: Node) -> tuple[Node, Node]:
    """`L` and `U` of a packed factorisation."""
    n, m = y.shape[-2] - 2, y.shape[-1]
    both = transpose(rows(y, 0, n))
    left = lower(both, True) + identity(both.type)
    return left, upper(rows(both, 0, n) if m != n else both)


def _row(y: Node, number: int | Dim) -> Node:
    """A row of a packed factorisation as integers."""
    row = rows(y, number, number + 1)
    return cast(real(reshape(row, (*row.shape[:-2], row.shape[-1]))), int64)


def order(y: Node) -> Node:
    """The permutation `p` of a packed factorisation: row i of `L U` is row `p[i]` of x."""
    return _row(y, y.shape[-2] - 2)


def exchanges(y: Node) -> Node:
    """With which row each row changed places, step by step."""
    return _row(y, y.shape[-2] - 1)


def _factor(y: Any, exchanges: Any) -> None:
    """The factors of an array in its place, by halves of its columns."""
    n = y.shape[1]
    if n > SMALL:
        half = n // 2
        left, right = y[:, :half], y[:, half:]
        _factor(left, exchanges[:half])
        _exchange(right, exchanges[:half])
        substitute(left[:half], right[:half], backward=False, unit=True)
        right[half:] -= left[half:] @ right[:half]
        _factor(right[half:], exchanges[half:])
        _exchange(left[half:], exchanges[half:n])
        exchanges[half:n] += half
        return
    for i in range(n):
        best = exchanges[i] = i + int(np.argmax(_length(y[i:, i])))
        y[[i, best]] = y[[best, i]]
        if y[i, i] != 0:
            y[i + 1 :, i] /= y[i, i]
        y[i + 1 :, i + 1 :] -= np.outer(y[i + 1 :, i], y[i, i + 1 :])


def _exchange(y: Any, exchanges: Any) -> None:
    for i, j in enumerate(exchanges):
        if i != j:
            y[[i, j]] = y[[j, i]]


@declare
class Solve(MatrixOp):
    """The solution `y` of `a y = b`, or of `a^T y = b`, by the factors `f = lu(a)`.

    `a[..., n, n]`, `f[..., n + 2, n]`, `b` and `y` `[..., n, k]`. The factors are there to be used
    again, by other right sides and by derivatives; nothing flows back through them. A singular
    matrix (one with a zero on the diagonal of its factor U) is refused when the program runs.
    """

    name = "solve"
    multiplications = staticmethod(lambda m, n, k: 2 * n * n * k)
    traits = frozenset({Trait.EXPENSIVE})
    arity = 3
    transpose: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        a, f, b = types
        check_matrices(self, a, f, b, square=True)
        n = a.shape[-1]
        if f.shape[-2:] != (n + 2, n):
            raise fail(self, f, f"the factors of {a} are {n + 2} x {n}, as lu() gives them")
        if b.shape[-2] != n:
            raise fail(self, b, f"it has as many rows as {a}")
        return b

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[2].shape[-2:], *arrays)

    def _value(self, a: Any, f: Any, b: Any) -> Any:
        refuse_zeros(f)
        return np.linalg.solve(a.T if self.transpose else a, b)

    def reason(self, code: int) -> str:
        return no_inverse(code)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        a, f, _ = inputs
        gb = Solve(not self.transpose)(a, f, g)
        pair = (y, gb) if self.transpose else (gb, y)
        return -product(pair[0], transpose(pair[1])), None, gb

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (ta, _, tb), (a, f, _) = tangents, inputs
        right = tb
        if ta is not None:
            moved = product(transpose(ta) if self.transpose else ta, y)
            right = -moved if right is None else right - moved
        return None if right is None else self(a, f, right)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        if any(batched[:2]):
            return super().batch(size, batched, *inputs)
        return side_by_side(self, size, inputs[:2], inputs[2])


@declare
class Inv(MatrixOp):
    """The inverse of `a[..., n, n]` by the factors `f = lu(a)`; nothing flows back through these.

    A singular matrix is refused as by `solve`.
    """

    name = "inv"
    multiplications = staticmethod(lambda m, n, k: 4 * n * n * n // 3)
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        a, f = types
        check_matrices(self, a, f, square=True)
        n = a.shape[-1]
        if f.shape[-2:] != (n + 2, n):
            raise fail(self, f, f"the factors of {a} are {n + 2} x {n}, as lu() gives them")
        return a

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[0].shape[-2:], *arrays)

    def _value(self, a: Any, f: Any) -> Any:
        refuse_zeros(f)
        return np.linalg.inv(a)

    def reason(self, code: int) -> str:
        return no_inverse(code)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        turned = transpose(y)
        return -product(turned, g, turned), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        t = tangents[0]
        return None if t is None else -product(y, t, y)


def refuse_zeros(f: Any) -> None:
    """Refuse the factors of a singular matrix."""
    pivots = np.diagonal(f[: f.shape[1]])
    if not pivots.all():
        raise Refused(1 + int(np.argmin(pivots != 0)))


def no_inverse(code: int) -> str:
    """What is wrong, for the number of the pivot that is zero."""
    return (
        f"it is singular: pivot {code - 1} of its LU factorisation is 0; rg.linalg.lstsq and "
        "rg.linalg.pinv do without an inverse"
    )
