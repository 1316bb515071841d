"""`svd` and `svdvals`, singular values with and without the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, TensorType, declare, full, symbolic_min
from retrograd.ops.complex import conj, real
from retrograd.ops.elementwise import cast, gt, le, zmul
from retrograd.ops.linalg.determinant import inner
from retrograd.ops.linalg.eigen import (
    exchanged,
    first_row_only,
    quotients,
    turned,
    turned_slopes,
)
from retrograd.ops.linalg.matrix import (
    Anchor,
    Given,
    Iterative,
    adjoint,
    along,
    ambiguous,
    antisymmetric,
    check_matrices,
    diagonal,
    diagonal_of,
    gaps,
    noticed,
    orientation,
    pairs,
    product,
    reciprocal_or_nan,
    rows,
    scaled_columns,
    symmetric,
    tied,
    tolerance,
    undefined_if,
    unequal,
    without_rounding,
)
from retrograd.ops.reduce import ReduceMax
from retrograd.ops.shape import Concat, expand, fail, reshape


class _Singular(Iterative):
    """A function of the singular values of a matrix."""

    def count(self, x: TensorType) -> int | Dim:
        """How many there are."""
        return symbolic_min(*x.shape[-2:])


@declare
class SVD(_Singular):
    """The factors of `x = U diag(s) V^H`, for `x[..., m, n]` and `k = min(m, n)`.

    `U[m, k]` and `V[n, k]` have orthonormal columns, s descends and is not negative. Of each column
    of U, the first component that is at least 0.6 times the largest is real and positive. They are
    packed into `y[..., 1 + m + n, k]`: s, the rows of U, the rows of V.

    In derivatives, singular values that differ by less than `8 eps` times their sum count as equal,
    and those below that as zero. Vectors of equal ones, and of zeros, have no derivative: NaN,
    unless nothing is asked of them.
    """

    name = "svd"
    multiplications = staticmethod(lambda m, n, k: 14 * m * n * k)

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x)
        m, n = x.shape[-2:]
        return x.with_shape((*x.shape[:-2], 1 + m + n, self.count(x)))

    def reference(self, *arrays: Any) -> Any:
        m, n = arrays[0].shape[-2:]
        return self.stacked(self._value, (1 + m + n, min(m, n)), *arrays)

    def _value(self, x: Any) -> Any:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        signs = orientation(u)
        v = vh.conj().T * signs
        return np.concatenate([s[None].astype(x.dtype), u * signs, v])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`U (diag(gs) + F * A + S * B) V^H`, with the antihermitian parts A of `U^H gU + V^H gV`
        and B of `U^H gU - V^H gV`, `F[i, j] = 1 / (s[j] - s[i])` and `S[i, j] = 1 / (s[i] +
        s[j])`, and what the columns owe to directions outside."""
        (x,) = inputs
        m, k = x.shape[-2], y.shape[-1]
        s, u, v = unpacked(y, m)
        gs, gu, gv = unpacked(conj(g), m)
        s, gs = real(s), real(gs)
        gx = singular_sum(x, gs)
        if first_row_only(g):
            return (conj(gx),)
        if u.dtype.is_complex:
            gu = Anchor(u).freed(gu, (gv, v))
        left, right = product(adjoint(u), gu), product(adjoint(v), gv)
        equal, both = tied(s), Concat(x.type.rank - 2)(gu, gv)
        same = without_rounding(antisymmetric(left + right), both, equal)
        other = without_rounding(antisymmetric(left - right), both, _vanishing_pairs(s))
        middle = zmul(same, cast(gaps(s, equal), u.dtype))
        middle = middle + zmul(other, cast(_inverse_sums(s), u.dtype))
        asked = noticed(left, both) | noticed(right, both)
        middle = undefined_if(ambiguous(gs, asked, equal), middle)
        gx = gx + product(u, middle, adjoint(v))
        if m != k:
            gx = gx + product(_over(gu - product(u, left), s, both), adjoint(v))
        if x.shape[-1] != k:
            gx = gx + product(u, adjoint(_over(gv - product(v, right), s, both)))
        return (conj(gx),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With H and K the hermitian and antihermitian part of `P = U^H t V`: `ts` is the diagonal
        of H, `tU = U (F * H + K / (s[i] + s[j]))`, `tV = V (F * H - K / (s[i] + s[j]))`, and what
        of t lies outside, divided by s."""
        (t,), (x,) = tangents, inputs
        if t is None:
            return None
        m, k = x.shape[-2], y.shape[-1]
        s, u, v = unpacked(y, m)
        s = real(s)
        p, equal = product(adjoint(u), t, v), tied(s)
        h = symmetric(p)
        same = zmul(without_rounding(h, p, equal), cast(gaps(s, equal), u.dtype))
        same = undefined_if(equal & exchanged(-real(diagonal_of(h))), same)
        other = without_rounding(antisymmetric(p), p, _vanishing_pairs(s))
        other = zmul(other, cast(_inverse_sums(s), u.dtype))
        tu, tv = product(u, same + other), product(v, same - other)
        if m != k:
            tu = tu + _over(product(t, v) - product(u, p), s, t)
        if x.shape[-1] != k:
            tv = tv + _over(product(adjoint(t), u) - product(v, adjoint(p)), s, t)
        if u.dtype.is_complex:
            anchor = Anchor(u)
            turn = anchor.turn(tu)
            tu, tv = anchor.fixed(tu, turn), anchor.fixed(tv, turn, v)
        return packed(cast(-turned_slopes(-s, -h), u.dtype), tu, tv)


@declare
class Svdvals(_Singular):
    """Singular values in descending order: `[..., m, n]` gives `[..., min(m, n)]`."""

    name = "svdvals"
    multiplications = staticmethod(lambda m, n, k: 4 * m * n * k)

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
        return np.linalg.svd(x, compute_uv=False)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`U diag(g) V^H`."""
        return (conj(singular_sum(inputs[0], g)),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `U^H t V`, for vectors in which its hermitian part is diagonal for equal
        values."""
        (t,) = tangents
        if t is None:
            return None
        s, u, v = unpacked(SVD()(*inputs), inputs[0].shape[-2])
        return -turned_slopes(-real(s), -product(adjoint(u), t, v))


def unpacked(y: Node, m: int | Dim) -> tuple[Node, Node, Node]:
    """`s`, `U` and `V` of a packed decomposition of matrices of m rows."""
    s = reshape(rows(y, 0, 1), (*y.shape[:-2], y.shape[-1]))
    return s, rows(y, 1, 1 + m), rows(y, 1 + m, y.shape[-2])


def packed(s: Node, u: Node, v: Node) -> Node:
    """The inverse of `unpacked`."""
    row = reshape(s, (*s.shape[:-1], 1, s.shape[-1]))
    return Concat(u.type.rank - 2)(row, u, v)


def _vanishing(s: Node) -> Node:
    """Which singular values count as zero."""
    return le(s, along(tolerance(s), s))


def _vanishing_pairs(s: Node) -> Node:
    """Of which pairs both do."""
    i, j = pairs(_vanishing(s))
    both: Node = i & j
    return both


def _inverse_sums(s: Node) -> Node:
    """`1 / (s[i] + s[j])` for `zmul`: NaN where both count as zero."""
    i, j = pairs(s)
    return reciprocal_or_nan(i + j, _vanishing_pairs(s))


def _over(x: Node, s: Node, of: Node) -> Node:
    """`x diag(1 / s)`, x being a product with `of`; NaN where something is divided by zero."""
    shape, axes = x.shape, (x.type.rank - 2,)
    zero, inverse = _vanishing(s), reciprocal_or_nan(s, _vanishing(s))
    x = without_rounding(x, of, expand(zero, shape, axes))
    return zmul(x, cast(expand(inverse, shape, axes), x.dtype))


@declare
class SingularSum(Given):
    """`y = U diag(g) V^H`, for the singular vectors of `x[..., m, n]` and real numbers `g[...,
    min(m, n)]`: the gradient of a function of the singular values s that has the gradient g.

    With H and K the hermitian and antihermitian part of `U^H t V`, its tangent has the components
    `tg + D * H + S * K` and, of what lies outside, `g / s`, for `D[i, j] = (g[j] - g[i]) / (s[j] -
    s[i])`, `S[i, j] = (g[i] + g[j]) / (s[i] + s[j])`. Equal values are dealt with as by
    `eigen_sum`; of zeros, what is 0 / 0 is NaN unless nothing is asked of them.
    """

    name = "singular_sum"
    arity = 3

    def infer(self, *types: TensorType) -> TensorType:
        x, g, y = types
        check_matrices(self, x, y)
        if g.shape != (*x.shape[:-2], symbolic_min(*x.shape[-2:])) or g.dtype.is_complex:
            raise fail(self, g, f"it holds a real number for each singular value of {x}")
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """The derivative is its own transpose."""
        x, slope, _ = inputs
        s, u, v = unpacked(SVD()(x), x.shape[-2])
        s, g = real(s), conj(g)
        h = symmetric(product(adjoint(u), g, v))
        d = undefined_if(tied(s), quotients(slope, s, tied(s)))
        gx = self._moved(x, slope, g, (s, u, v), zmul(h, cast(d, h.dtype)))
        return conj(gx), real(diagonal_of(h)), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t, tg, _), (x, g, _) = tangents, inputs
        if t is None:
            return None if tg is None else singular_sum(x, tg)
        s, u, v = unpacked(SVD()(x), x.shape[-2])
        s, h = real(s), symmetric(product(adjoint(u), t, v))
        z, equal = turned(-s, -h), tied(s)
        u, v, h = product(u, z), product(v, z), product(adjoint(z), h, z)
        d = undefined_if(equal & (unequal(g) | _vanishing_pairs(s)), quotients(g, s, equal))
        middle = zmul(h, cast(d, h.dtype))
        if tg is not None:
            middle = middle + cast(diagonal(tg), h.dtype)
        return self._moved(x, g, t, (s, u, v), middle)

    def _moved(
        self, x: Node, g: Node, t: Node, factors: tuple[Node, Node, Node], middle: Node
    ) -> Node:
        """`U middle V^H` and what belongs to the antihermitian part of t, and to what of it lies
        outside."""
        s, u, v = factors
        (m, n), k = x.shape[-2:], s.shape[-1]
        p = product(adjoint(u), t, v)
        i, j = pairs(g)
        other = without_rounding(antisymmetric(p), p, _vanishing_pairs(s))
        middle = middle + zmul(other, cast((i + j) * _inverse_sums(s), u.dtype))
        y = product(u, middle, adjoint(v))
        if m != k:
            outside = _over(product(t, v) - product(u, p), s, t)
            y = y + product(scaled_columns(outside, g), adjoint(v))
        if n != k:
            outside = _over(product(adjoint(t), u) - product(v, adjoint(p)), s, t)
            y = y + product(u, adjoint(scaled_columns(outside, g)))
        return y


def singular_sum(x: Node, g: Node) -> Node:
    """`U diag(g) V^H` as a function of x and g."""
    _, u, v = unpacked(SVD()(x), x.shape[-2])
    return SingularSum()(x, g, product(scaled_columns(u, g), adjoint(v)))


@declare
class SpectralNorm(Given):
    """`y`, which is the largest singular value of `x[..., m, n]`: its gradient is `u v^H`, for the
    singular vectors that belong to it; equal ones share it.

    The other singular values take no part, to any order: unlike `singular_sum`, which cannot tell
    a function that has no slope at zeros by chance from one that does not depend on them, the
    Hessian is finite where some of them are 0.
    """

    name = "spectral_norm"
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, y = types
        check_matrices(self, x)
        if y.shape != x.shape[:-2] or y.dtype.is_complex:
            raise fail(self, y, f"it is a real number for each matrix of {x}")
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        u = conj(self._slope(inputs[0]))
        return u * cast(along(g, u), u.dtype), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        t = tangents[0]
        return None if t is None else real(inner(conj(self._slope(inputs[0])), t))

    def _slope(self, x: Node) -> Node:
        s, u, v = unpacked(SVD()(x), x.shape[-2])
        s, largest = real(s), ReduceMax((s.type.rank - 1,))
        share = largest.weights(largest(s), s)
        taken = cast(gt(share, full(0, share.type)), share.dtype)
        return product(_chosen(u, share), adjoint(_chosen(v, taken)))


def _chosen(x: Node, factors: Node) -> Node:
    """Columns times factors, some of which are 0: these absorb derivatives of vectors, which those
    of zeros have not."""
    return zmul(cast(expand(factors, x.shape, (x.type.rank - 2,)), x.dtype), x)
