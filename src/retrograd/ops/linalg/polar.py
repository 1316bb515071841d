"""`polar`, the unitary factor of a matrix, and what its derivatives are made of.

None of these asks for singular vectors: they are solutions of equations that have one each where
singular values are equal, too, and so have their derivatives, of every order.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import Node, TensorType, declare
from retrograd.ops.complex import conj, real
from retrograd.ops.elementwise import cast, le, zmul
from retrograd.ops.linalg.determinant import inner
from retrograd.ops.linalg.eigen import Eigh, unpacked
from retrograd.ops.linalg.matrix import (
    Given,
    adjoint,
    along,
    check_matrices,
    check_tall,
    pairs,
    product,
    reciprocal_or_nan,
    scaled_columns,
    size,
    symmetric,
    tolerance,
)
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.linalg.svd import SVD
from retrograd.ops.linalg.svd import unpacked as factors_of
from retrograd.ops.shape import fail


@declare
class Lyapunov(Given):
    """`y`, which is the solution of `h y + y h = c`, for the hermitian part h of the first input.

    Matrices are `[..., n, n]`. Where two eigenvalues of h add up to zero there is no solution: NaN,
    unless nothing of c belongs to them.
    """

    name = "lyapunov"
    arity = 3

    def infer(self, *types: TensorType) -> TensorType:
        h, c, y = types
        check_matrices(self, h, c, y, square=True)
        if c != h or y != h:
            raise fail(self, c, f"it has the shape of {h}")
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """c: the solution s for g, h: `-(s y^H + y^H s)`, made hermitian."""
        h, _, _ = inputs
        s, turned = lyapunov(h, conj(g)), adjoint(y)
        gh = -symmetric(product(s, turned) + product(turned, s))
        return conj(gh), conj(s), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """The solution for `tc - th y - y th`."""
        (th, tc, _), (h, _, _) = tangents, inputs
        if th is not None:
            th = symmetric(th)
            moved = product(th, y) + product(y, th)
            tc = -moved if tc is None else tc - moved
        return None if tc is None else lyapunov(h, tc)


def lyapunov(h: Node, c: Node) -> Node:
    """The solution of `h y + y h = c` as a function of both."""
    w, v = unpacked(Eigh()(h))
    i, j = pairs(real(w))
    least = along(tolerance(real(w)), i)
    inverse = reciprocal_or_nan(i + j, le(size(i + j), least))
    middle = zmul(product(adjoint(v), c, v), cast(inverse, v.dtype))
    return Lyapunov()(h, c, product(v, middle, adjoint(v)))


@declare
class Polar(Given):
    """`u`, which is the unitary factor of `x = u p`, p hermitian and positive, for `x[..., m, n]`
    of at least as many rows as columns.

    With `z = u^H t` its tangent is `u s + (t - u z) p^-1`, for the solution s of `p s + s p = z -
    z^H`. A matrix of lower rank has no derivative: NaN.
    """

    name = "polar"
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, u = types
        check_matrices(self, x, u)
        check_tall(self, x)
        if u != x:
            raise fail(self, u, f"it has the shape of {x}")
        return u

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """The derivative is its own transpose."""
        return conj(self._moved(inputs[0], y, conj(g))), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        t = tangents[0]
        return None if t is None else self._moved(inputs[0], y, t)

    def _moved(self, x: Node, u: Node, t: Node) -> Node:
        p, z = symmetric(product(adjoint(u), x)), product(adjoint(u), t)
        y = product(u, lyapunov(p, z - adjoint(z)))
        if x.shape[-2] == x.shape[-1]:
            return y
        w, v = unpacked(Eigh()(p))
        none = le(real(w), along(tolerance(real(w)), w))
        inverse = product(scaled_columns(v, reciprocal_or_nan(real(w), none)), adjoint(v))
        outside: Node = product(t - product(u, z), Pinv()(p, inverse))
        return y + outside  # type: ignore[no-any-return]


def polar(x: Node) -> Node:
    """The unitary factor as a function of a matrix."""
    _, u, v = factors_of(SVD()(x), x.shape[-2])
    return Polar()(x, product(u, adjoint(v)))


@declare
class NuclearNorm(Given):
    """`y`, which is the sum of the singular values of `x[..., m, n]`, m not less than n: its
    gradient is the unitary factor of x. Where x has a lower rank it is one of several subgradients.
    """

    name = "nuclear_norm"
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, y = types
        check_matrices(self, x)
        check_tall(self, x)
        if y.shape != x.shape[:-2] or y.dtype.is_complex:
            raise fail(self, y, f"it is a real number for each matrix of {x}")
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        u = conj(polar(inputs[0]))
        return u * cast(along(g, u), u.dtype), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        t = tangents[0]
        return None if t is None else real(inner(conj(polar(inputs[0])), t))
