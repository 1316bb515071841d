"""`triangular_solve`, forward and backward substitution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, TensorType, Trait, declare
from retrograd.ops.linalg.matrix import (
    MatrixOp,
    Refused,
    check_matrices,
    lower,
    product,
    side_by_side,
    transpose,
    upper,
)
from retrograd.ops.shape import fail


@declare
class TriangularSolve(MatrixOp):
    """The solution `y` of `a y = b`, or of `a^T y = b`, for a triangular matrix a.

    Of `a[..., n, n]` the lower half is read, or the upper one; with `unit`, its diagonal is taken
    for ones. `b` and `y` are `[..., n, k]`. A zero on the diagonal is refused when the program
    runs.
    """

    name = "triangular_solve"
    multiplications = staticmethod(lambda m, n, k: n * n * k)
    traits = frozenset({Trait.EXPENSIVE})
    arity = 2
    upper: bool = False
    transpose: bool = False
    unit: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        check_matrices(self, a, b, square=True)
        if a.shape[-1] != b.shape[-2]:
            raise fail(self, b, f"it has as many rows as {a}")
        return b

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[1].shape[-2:], *arrays)

    def _value(self, a: Any, b: Any) -> Any:
        y = b.copy()
        if not self.unit and not np.diagonal(a).all():
            raise Refused(1 + int(np.argmin(np.diagonal(a) != 0)))
        a = a.T if self.transpose else a
        substitute(a, y, self.upper != self.transpose, self.unit)
        return y

    def reason(self, code: int) -> str:
        return f"it is singular: element {code - 1} of its diagonal is 0"

    def _half(self, a: Node) -> Node:
        return upper(a, self.unit) if self.upper else lower(a, self.unit)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        a, _ = inputs
        gb = TriangularSolve(self.upper, not self.transpose, self.unit)(a, g)
        pair = (y, gb) if self.transpose else (gb, y)
        return self._half(-product(pair[0], transpose(pair[1]))), gb

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (ta, tb), (a, _) = tangents, inputs
        right = tb
        if ta is not None:
            half = self._half(ta)
            moved = product(transpose(half) if self.transpose else half, y)
            right = -moved if right is None else right - moved
        return None if right is None else self(a, right)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        if batched[0]:
            return super().batch(size, batched, *inputs)
        return side_by_side(self, size, inputs[:1], inputs[1])


SMALL = 16  # rows up to which a reference goes row by row; larger matrices are cut in halves


def substitute(a: Any, y: Any, backward: bool, unit: bool = False) -> None:
    """`y = a^-1 y` in place, for an array that is triangular: above the diagonal if `backward`."""
    n = len(a)
    if n > SMALL:
        halves = slice(0, n // 2), slice(n // 2, n)
        first, last = halves[::-1] if backward else halves
        substitute(a[first, first], y[first], backward, unit)
        y[last] -= a[last, first] @ y[first]
        substitute(a[last, last], y[last], backward, unit)
        return
    for i in reversed(range(n)) if backward else range(n):
        known = slice(i + 1, n) if backward else slice(0, i)
        y[i] -= a[i, known] @ y[known]
        if not unit:
            y[i] /= a[i, i]
