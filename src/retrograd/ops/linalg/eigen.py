"""`eigh` and `eigvalsh`, eigenvalues of symmetric and hermitian matrices, with and without the
vectors.

Where eigenvalues are equal, nothing tells their vectors apart. What derivatives say there is true,
or NaN:

- *Values.* The tangents of eigenvalues along t are those of the values as they are returned, in
  order, for small steps: they belong to the vectors in which t, within the space of equal values,
  is diagonal (`turned`). The gradient is `V diag(g) V^H`, for which any vectors do where g is equal
  for equal values, as for symmetric functions; elsewhere it is that of LAPACK's vectors, as at any
  kink.
- *The gradient as a function*, `eigen_sum`, has such tangents too. So Hessians of symmetric
  functions, forward mode through a gradient, are complete. Reverse mode through it would have to
  know how g depends on the values: NaN, unless what it is asked for does not join such vectors.
- *Vectors* of equal values have no derivative. A tangent that joins two of them makes theirs NaN. A
  gradient is NaN, too, if it is asked to turn one into another. It is right for functions of the
  space that they span, which it asks for no turn, and nothing of the values. If it asks for no turn
  but something of both, as `V f(w) V^H` does, nobody knows here what f is near w: NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, declare, full, int64
from retrograd.ops.complex import conj, real
from retrograd.ops.elementwise import cast, eq, isfinite, lt, ne, select, zmul
from retrograd.ops.leaf import Constant, Iota
from retrograd.ops.linalg.matrix import (
    Anchor,
    Given,
    Iterative,
    adjoint,
    along,
    ambiguous,
    antisymmetric,
    check_matrices,
    clusters,
    diagonal,
    diagonal_of,
    gaps,
    noticed,
    orientation,
    pairs,
    product,
    rows,
    scaled_columns,
    size,
    symmetric,
    tied,
    transpose,
    undefined_if,
    unequal,
    without_rounding,
)
from retrograd.ops.reduce import ReduceAny, ReduceSum
from retrograd.ops.shape import Concat, Pad, fail, reshape


class _Symmetric(Iterative):
    """A function of the hermitian part of a matrix: of a real one, the symmetric part."""


@declare
class Eigh(_Symmetric):
    """Eigenvalues and eigenvectors of `(x + x^H) / 2`, for `x[..., n, n]`.

    They are packed into `y[..., n + 1, n]`: the eigenvalues in ascending order, then a row for each
    eigenvector, of length 1; the first of its components that are at least 0.6 times its largest is
    real and positive.

    In derivatives, eigenvalues that differ by less than `8 eps` times the sum of all magnitudes
    count as equal. Their vectors have no derivative: NaN, unless nothing is asked of them.
    """

    name = "eigh"
    multiplications = staticmethod(lambda m, n, k: 9 * n * n * n)

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_matrices(self, x, square=True)
        return x.with_shape((*x.shape[:-2], x.shape[-1] + 1, x.shape[-1]))

    def reference(self, *arrays: Any) -> Any:
        n = arrays[0].shape[-1]
        return self.stacked(self._value, (n + 1, n), *arrays)

    def _value(self, x: Any) -> Any:
        w, v = np.linalg.eigh((x + x.conj().T) / 2)
        return np.concatenate([w[None].astype(x.dtype), (v * orientation(v)).T])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V (diag(gw) + F * (V^H gV)) V^H` with `F[i, j] = 1 / (w[j] - w[i])`, made hermitian."""
        (x,) = inputs
        w, v = unpacked(y)
        gw, gv = unpacked(conj(g))
        w, gw = real(w), real(gw)
        gx = eigen_sum(x, gw)
        if first_row_only(g):
            return (conj(gx),)
        if v.dtype.is_complex:
            gv = Anchor(v).freed(gv)
        equal, asked = tied(w), product(adjoint(v), gv)
        turning = without_rounding(antisymmetric(asked), gv, equal)
        middle = zmul(turning, cast(gaps(w, equal), v.dtype))
        middle = undefined_if(ambiguous(gw, noticed(asked, gv), equal), middle)
        return (conj(gx + product(v, middle, adjoint(v))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """With `M = V^H t V`: `tw` is its diagonal, `tV = V (F * M)`."""
        (t,) = tangents
        if t is None:
            return None
        w, v = unpacked(y)
        w = real(w)
        middle = product(adjoint(v), symmetric(t), v)
        equal = tied(w)
        slopes = real(diagonal_of(middle))
        turning = without_rounding(middle, middle, equal)
        turning = zmul(turning, cast(gaps(w, equal), v.dtype))
        tv = product(v, undefined_if(equal & exchanged(slopes), turning))
        if v.dtype.is_complex:
            anchor = Anchor(v)
            tv = anchor.fixed(tv, anchor.turn(tv))
        return packed(cast(turned_slopes(w, middle), v.dtype), tv)


@declare
class Eigvalsh(_Symmetric):
    """Eigenvalues of `(x + x^H) / 2`, real numbers, in ascending order: `[..., n, n]` gives
    `[..., n]`.

    The gradient of a repeated eigenvalue is that of the one LAPACK's vectors belong to.
    """

    name = "eigvalsh"
    multiplications = staticmethod(lambda m, n, k: 4 * n * n * n // 3)

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
        return np.linalg.eigvalsh((x + x.conj().T) / 2)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V diag(g) V^H`."""
        return (conj(eigen_sum(inputs[0], g)),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The diagonal of `V^H t V`, for vectors in which that is diagonal for equal values."""
        (t,) = tangents
        if t is None:
            return None
        w, v = unpacked(Eigh()(*inputs))
        return turned_slopes(real(w), product(adjoint(v), t, v))


def unpacked(y: Node) -> tuple[Node, Node]:
    """Eigenvalues, and a matrix whose columns are the vectors."""
    n = y.shape[-1]
    return reshape(rows(y, 0, 1), (*y.shape[:-2], n)), transpose(rows(y, 1, n + 1))


def packed(w: Node, v: Node) -> Node:
    """The inverse of `unpacked`."""
    row = reshape(w, (*w.shape[:-1], 1, w.shape[-1]))
    return Concat(v.type.rank - 2)(row, transpose(v))


def first_row_only(g: Node) -> bool:
    """Whether the cotangent of a packed decomposition is known to be zero but for the first row:
    that of the values alone."""
    if not isinstance(g.prim, Pad):
        return False
    x, value = g.inputs
    zero = isinstance(value.prim, Constant) and not value.prim.value.any()
    return zero and x.shape[-2] == 1 and g.prim.low[-2] == 0


# -- equal values ---------------------------------------------------------------------------------
def exchanged(slopes: Node) -> Node:
    """Which pairs of values, in ascending order if they are equal, a small step along these slopes
    puts in the other order."""
    first, second = pairs(slopes)
    i, j = pairs(Iota(slopes.shape, slopes.type.rank - 1, int64)())
    down = select(lt(i, j), first - second, second - first)
    found: Node = unequal(slopes) & lt(full(0, down.type), down)
    return found


@declare
class Turn(Given):
    """The unitary `z[..., n, n]` that makes `m[..., n, n]`, hermitian, diagonal within groups of
    equal values `w[..., n]`, with the diagonal ascending there; it leaves other vectors alone.

    It is no continuous function of m where some are equal: its derivative is NaN there.
    """

    name = "turn"
    arity = 3

    def infer(self, *types: TensorType) -> TensorType:
        w, m, z = types
        check_matrices(self, m, z, square=True)
        if z != m or w.shape != m.shape[:-1]:
            raise fail(self, w, f"it holds the values that belong to the columns of {m}")
        return z

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """NaN where something is asked of vectors of equal values, among which alone y turns; else
        0."""
        asked = tied(inputs[0]) & ne(g, full(0, g.type))
        return None, undefined_if(asked, full(0, y.type)), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """NaN for vectors of equal values, else 0."""
        if tangents[1] is None:
            return None
        return product(y, undefined_if(tied(inputs[0]), full(0, y.type)))


def turned(w: Node, m: Node) -> Node:
    """The vectors in which m is diagonal for equal values w: by the eigenvectors of what joins
    these, with the groups set so far apart that their order stays."""
    i, j = pairs(clusters(w))
    magnitude = size(m)
    kept = eq(i, j) & isfinite(magnitude)
    blocks = select(kept, m, full(0, m.type))
    bound = ReduceSum((m.type.rank - 2, m.type.rank - 1))(size(blocks))
    apart = 4 * along(bound, w) * cast(clusters(w), w.dtype)
    _, z = unpacked(Eigh()(blocks + cast(diagonal(apart), m.dtype)))
    return Turn()(w, m, z)


def turned_slopes(w: Node, m: Node) -> Node:
    """The tangents of eigenvalues w for a tangent whose components are m, of which the hermitian
    part counts."""
    z = turned(w, m)
    several = ReduceAny((w.type.rank,))(tied(w))
    values = select(several, diagonal_of(product(adjoint(z), m, z)), diagonal_of(m))
    return real(values)


@declare
class EigenSum(Given):
    """`y = V diag(g) V^H`, for the eigenvectors V of the hermitian part of `x[..., n, n]` and
    `g[..., n]`, real: the gradient of a function of the eigenvalues w that has the gradient g.

    With `D[i, j] = (g[j] - g[i]) / (w[j] - w[i])` and `M = V^H t V` its tangent is
    `V (diag(tg) + D * M) V^H`, where V is such that M is diagonal for equal values: these are the
    tangents of a function whose g is equal for equal values; of others, NaN. In reverse mode, M
    joins such vectors as it may, and where it does, NaN.
    """

    name = "eigen_sum"
    arity = 3

    def infer(self, *types: TensorType) -> TensorType:
        x, g, y = types
        check_matrices(self, x, y, square=True)
        if g.shape != x.shape[:-1] or g.dtype.is_complex:
            raise fail(self, g, f"it holds a real number for each eigenvalue of {x}")
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`V (D * M) V^H` and the diagonal of M, for `M = V^H g V`."""
        x, slope, _ = inputs
        w, v = unpacked(Eigh()(x))
        m = product(adjoint(v), symmetric(conj(g)), v)
        equal = tied(real(w))
        middle = zmul(m, cast(undefined_if(equal, quotients(slope, real(w), equal)), m.dtype))
        return conj(product(v, middle, adjoint(v))), real(diagonal_of(m)), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """`V (diag(tg) + D * M) V^H`."""
        (t, tg, _), (x, g, _) = tangents, inputs
        if t is None:
            return None if tg is None else eigen_sum(x, tg)
        w, v = unpacked(Eigh()(x))
        w, m = real(w), product(adjoint(v), symmetric(t), v)
        z = turned(w, m)
        v, m = product(v, z), product(adjoint(z), m, z)
        equal = tied(w)
        d = undefined_if(equal & unequal(g), quotients(g, w, equal))
        middle = cast(d, m.dtype) * m
        if tg is not None:
            middle = middle + cast(diagonal(tg), m.dtype)
        return product(v, middle, adjoint(v))


def eigen_sum(x: Node, g: Node) -> Node:
    """`V diag(g) V^H` as a function of x and g."""
    _, v = unpacked(Eigh()(x))
    return EigenSum()(x, g, product(scaled_columns(v, g), adjoint(v)))


def quotients(g: Node, w: Node, equal: Node) -> Node:
    """`(g[j] - g[i]) / (w[j] - w[i])`; 0 where two are equal."""
    first, second = pairs(g)
    return select(equal, full(0, first.type), (second - first) * gaps(w, equal))
