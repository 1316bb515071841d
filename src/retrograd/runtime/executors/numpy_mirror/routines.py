"""The routines that compiled programs call for real matrices, in Python: the same calls of LAPACK,
with the same sizes, workspace and layouts, and between them the same operations in NumPy.

Each gets its operands and then its result, contiguous, and its sizes, as in the files of
`codegen/libcalls`, which say more of each. It returns 0, or what is wrong; below 0 it does not do
what it was asked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from retrograd.codegen.libcalls.inverse import HALVED
from retrograd.codegen.libcalls.lapack import (
    GIVEN,
    LEFT,
    LOWER,
    PLAIN,
    ROWS,
    TURNED,
    UNIT,
    UPPER,
)
from retrograd.codegen.libcalls.small_matrices import FACTORED, SOLVED
from retrograd.passes.lowering import linalg
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.numpy_mirror import substituting
from retrograd.runtime.executors.numpy_mirror.lapack import cblas, fortran

Routine = Callable[[Sequence[Array], Sequence[int]], int]

OTHERWISE = -1  # it is done in another way


def cholesky(upper: bool, data: Sequence[Array], sizes: Sequence[int]) -> int:
    (y,), (n,) = data, sizes
    if n <= FACTORED:
        return substituting.cholesky(y.T if upper else y)
    status = np.zeros(1, np.int32)
    fortran("potrf", y.dtype, "L" if upper else "U", n, y, n, status)
    return abs(int(status[0]))


def triangular_solve(
    upper: bool, transpose: bool, unit: bool, data: Sequence[Array], sizes: Sequence[int]
) -> int:
    (a, y), (n, _) = data, sizes
    zero = 0 if unit else _first_zero(a)
    if zero:
        return zero
    if n <= SOLVED:
        substituting.substitute(a.T if transpose else a, y, upper != transpose, unit)
    else:
        half, turned = UPPER if upper else LOWER, TURNED if transpose else PLAIN
        substitute(a, y, half, turned, UNIT if unit else GIVEN)
    return 0


def _first_zero(a: Array) -> int:
    """The position, counted from 1, of the first zero on the diagonal of a square, or 0."""
    zeros = np.flatnonzero(a.diagonal()[: a.shape[1]] == 0)
    return int(zeros[0]) + 1 if len(zeros) else 0


def substitute(a: Array, y: Array, half: int, turned: int, unit: int, lead: int = 0) -> None:
    """`y = a^-1 y` for a triangular matrix in rows of `lead` elements, or of as many as it has."""
    n, k = y.shape
    options, lead = (half, turned, unit), lead or n
    if k == 1:
        cblas("trsv", y.dtype, ROWS, *options, n, a, lead, y, 1)
    else:
        cblas("trsm", y.dtype, ROWS, LEFT, *options, n, k, 1.0, a, lead, y, max(k, 1))


def lu(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (y,), (m, n) = data, sizes
    order, exchanges = y[n], y[n + 1]
    order[:], exchanges[:] = np.arange(m), 0
    if m <= FACTORED:
        substituting.lu(y[:n].T, order, exchanges)
        return 0
    status, pivots = np.zeros(1, np.int32), np.zeros(n, np.int32)
    fortran("getrf", y.dtype, m, n, y, m, pivots, status)
    for i, j in enumerate((pivots - 1).tolist()):
        exchanges[i] = j
        order[[i, j]] = order[[j, i]]
    return 0


def solve(transpose: bool, data: Sequence[Array], sizes: Sequence[int]) -> int:
    (f, y), (n, _) = data, sizes
    zero = _first_zero(f[:n])
    if zero:
        return zero
    if not transpose:
        substituting.exchange_rows(f, y, back=False)
    # In memory lie U^T below the diagonal and on it, L^T above.
    if n <= SOLVED:
        at = f[:n] if transpose else f[:n].T
        substituting.substitute(at, y, False, not transpose)
        substituting.substitute(at, y, True, transpose)
    else:
        way = PLAIN if transpose else TURNED
        for half, unit in ((LOWER, GIVEN), (UPPER, UNIT))[:: 1 if transpose else -1]:
            substitute(f, y, half, way, unit)
    if transpose:
        substituting.exchange_rows(f, y, back=True)
    return 0


def inv(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (f, y), (n,) = data, sizes
    zero = _first_zero(f[:n])
    if zero:
        return zero
    if n <= SOLVED:
        y[...] = np.eye(n)
        return solve(False, [f, y], [n, n])
    if n >= HALVED:
        return OTHERWISE
    status, length = np.zeros(1, np.int32), n * linalg.BLOCK + 1
    columns, space = f[:n].copy(), np.empty(length, y.dtype)
    pivots = f[n + 1, :n].astype(np.int32) + np.int32(1)
    fortran("getri", y.dtype, n, columns, n, pivots, space, length, status)
    y[...] = columns.T
    return 0


def qr(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (y,), (m, n, length) = data, sizes
    status, lead = np.zeros(1, np.int32), m + n
    factors, space = np.empty(n, y.dtype), np.empty(length, y.dtype)
    fortran("geqrf", y.dtype, m, n, y, lead, factors, space, length, status)
    for i in range(n):
        y[i, m + i :] = y[i:, i]
    fortran("orgqr", y.dtype, m, n, n, y, lead, factors, space, length, status)
    return 0


def complete(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (y,), (m, k, length) = data, sizes
    status = np.zeros(1, np.int32)
    factors, space = np.empty(k, y.dtype), np.empty(length, y.dtype)
    fortran("geqrf", y.dtype, m, k, y, max(m, 1), factors, space, length, status)
    fortran("orgqr", y.dtype, m, m, k, y, max(m, 1), factors, space, length, status)
    return 0


ROUTINES: dict[str, Routine] = {
    "cholesky_lower": functools.partial(cholesky, False),
    "cholesky_upper": functools.partial(cholesky, True),
    "lu": lu,
    "solve": functools.partial(solve, False),
    "solve_transposed": functools.partial(solve, True),
    "inv": inv,
    "qr": qr,
    "complete": complete,
    **{
        f"triangular_solve_{upper}{transpose}{unit}": functools.partial(
            triangular_solve, bool(upper), bool(transpose), bool(unit)
        )
        for upper, transpose, unit in itertools.product((0, 1), repeat=3)
    },
}
