"""`cholesky`, the square root of a positive definite matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, Trait, declare
from retrograd.ops.complex import conj
from retrograd.ops.linalg.matrix import (
    Refused,
    SquareFunction,
    adjoint,
    halved,
    lower,
    product,
    symmetric,
)
from retrograd.ops.linalg.triangular import SMALL, TriangularSolve, substitute


@declare
class Cholesky(SquareFunction):
    """`L` with a positive diagonal and `L L^H = (x + x^H) / 2`; `L^H` if `upper`.

    It is a function of the hermitian part of x, for real numbers the symmetric part, and so is its
    gradient. A matrix whose hermitian part is not positive definite is refused when the program
    runs.
    """

    name = "cholesky"
    multiplications = staticmethod(lambda m, n, k: n * n * n // 3)
    traits = frozenset({Trait.EXPENSIVE})
    upper: bool = False

    def _value(self, x: Any) -> Any:
        y = _factor((x + x.conj().T) / 2)
        return y.conj().T if self.upper else y

    def reason(self, code: int) -> str:
        return (
            f"it is not positive definite, as its leading minor of order {code} shows; adding a "
            "small multiple of the identity helps where rounding is to blame"
        )

    def _factor(self, y: Node) -> Node:
        return adjoint(y) if self.upper else y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """`L^-H sym(P) L^-1` with `P` the lower half of `L^H g`, its diagonal halved."""
        y, g = self._factor(y), lower(self._factor(conj(g)))
        middle = symmetric(halved(product(adjoint(y), g)))
        back, turned = TriangularSolve(transpose=True), conj(y)
        left = back(turned, middle)
        return (conj(back(turned, adjoint(left))),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """`L halved(L^-1 t L^-H)`."""
        (t,) = tangents
        if t is None:
            return None
        y = self._factor(y)
        solve = TriangularSolve()
        left = solve(y, symmetric(t))
        middle = solve(y, adjoint(left))  # hermitian
        return self._factor(product(y, halved(middle)))


def _factor(s: Any, before: int = 0) -> Any:
    """The lower factor of a hermitian array, by halves; `before` rows come before it."""
    n, y = len(s), np.zeros_like(s)
    if n > SMALL:
        half = n // 2
        y[:half, :half] = _factor(s[:half, :half], before)
        below = s[:half, half:].copy()
        substitute(y[:half, :half], below, backward=False)
        y[half:, :half] = below.conj().T
        y[half:, half:] = _factor(s[half:, half:] - below.conj().T @ below, before + half)
        return y
    for j in range(n):
        column = s[j:, j] - y[j:, :j] @ y[j, :j].conj()
        if not column[0].real > 0:
            raise Refused(before + j + 1)
        y[j:, j] = column / np.sqrt(column[0].real)
        y[j, j] = y[j, j].real
    return y
