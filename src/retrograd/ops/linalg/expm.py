"""`expm`, the exponential of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, declare, full
from retrograd.ops.linalg.matrix import SquareFunction, columns, rows, transpose
from retrograd.ops.shape import Concat

# The Pade approximation of degree 13 and the norm up to which it is exact in float64 (Higham: "The
# scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26,
# 2005). Divided by the first coefficient.
_COEFFICIENTS = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
PADE = tuple(b / _COEFFICIENTS[0] for b in _COEFFICIENTS)
REACH = 5.371920351148152


@declare
class Expm(SquareFunction):
    """`I + x + x^2 / 2 + x^3 / 6 + ...` for `x[..., n, n]`, by scaling, Pade approximation and
    squaring.

    Its derivative along t is a corner of the exponential of a matrix twice as large: that of `[[x,
    t], [0, x]]`.
    """

    name = "expm"
    multiplications = staticmethod(lambda m, n, k: 16 * n * n * n)

    def _value(self, x: Any) -> Any:
        norm = np.abs(x).sum(axis=0).max(initial=0)
        if not np.isfinite(norm):
            return np.full_like(x, np.nan)
        times = 0
        while norm > REACH:
            norm, times = norm / 2, times + 1
        x = x * x.dtype.type(0.5) ** times
        one, b = np.eye(len(x), dtype=x.dtype), np.array(PADE, x.dtype)
        x2 = x @ x
        x4, x6 = x2 @ x2, x2 @ x2 @ x2
        odd = x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2)
        odd = x @ (odd + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
        even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2)
        even = even + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
        y = np.linalg.solve(even - odd, even + odd)
        for _ in range(times):
            y = y @ y
        return y

    def _along(self, x: Node, t: Node) -> Node:
        axis, n = x.type.rank - 2, x.shape[-1]
        above = Concat(axis + 1)(x, t)
        below = Concat(axis + 1)(full(0, x.type), x)
        return columns(rows(self(Concat(axis)(above, below)), 0, n), n, 2 * n)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (self._along(transpose(inputs[0]), g),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return None if t is None else self._along(inputs[0], t)
