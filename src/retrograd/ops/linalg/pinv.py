"""`pinv`, which gives a pseudo-inverse the derivative it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Node, TensorType, Trait, declare
from retrograd.ops.complex import conj
from retrograd.ops.linalg.matrix import MatrixOp, adjoint, check_matrices, product
from retrograd.ops.shape import fail


@declare
class Pinv(MatrixOp):
    """`p`, which is the pseudo-inverse of `x[..., m, n]`, as a function of x.

    It passes on its second input and differentiates by the first (Golub, Pereyra: "The
    differentiation of pseudo-inverses", SIAM J. Numer. Anal. 10, 1973). The rank of x must not
    change; nothing else is asked of it, while singular vectors have no derivative where singular
    values are equal.
    """

    name = "pinv"
    traits = frozenset({Trait.FREE})
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, p = types
        check_matrices(self, x, p)
        if p.shape[-2:] != (x.shape[-1], x.shape[-2]):
            raise fail(self, p, f"it has the shape of the transpose of {x}")
        return p

    def reference(self, *arrays: Any) -> Any:
        return arrays[1]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`-P^H g P^H + (I - x P) g^H P P^H + P^H P g^H (I - P x)`."""
        x, _ = inputs
        g = conj(g)
        p, gt = adjoint(y), adjoint(g)
        gx = -product(p, g, p)
        left = product(gt, y, p)
        right = product(p, y, gt)
        gx = gx + left - product(x, y, left) + right - product(right, y, x)
        return conj(gx), None

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """`-P t P + P P^H t^H (I - x P) + (I - P x) t^H P^H P`."""
        (t, _), (x, _) = tangents, inputs
        if t is None:
            return None
        p, tt = adjoint(y), adjoint(t)
        left, right = product(y, p, tt), product(tt, p, y)
        return right - product(y, x, right) + left - product(left, x, y) - product(y, t, y)  # type: ignore[no-any-return]
