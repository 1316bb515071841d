"""Factorisations of small matrices, and triangles by substitution: what
`codegen/libcalls/small_matrices.py` writes, in NumPy, with the same operations on each element in
the same order.

Rows and columns are those of views: a matrix that lies in memory in columns is turned around first.
"""

from __future__ import annotations

import numpy as np

from retrograd.runtime.backend import Array


def cholesky(y: Array) -> int:
    """The lower half of `y`, in place; 0, or the order of the minor that is not positive."""
    for j in range(len(y)):
        rest = y[j:, j].copy()
        for p in range(j):
            rest = rest - y[j:, p] * y[j, p]
        if not rest[0] > 0:
            return j + 1
        top = np.sqrt(rest[0])
        y[j, j] = top
        y[j + 1 :, j] = rest[1:] / top
    return 0


def lu(y: Array, order: Array, exchanges: Array) -> None:
    """The factors of a matrix, in place, with the exchanges of its rows."""
    m, n = y.shape
    for k in range(n):
        sizes, best = np.abs(y[:, k]), k
        for i in range(k + 1, m):
            if sizes[i] > sizes[best]:
                best = i
        exchanges[k] = best
        order[[k, best]] = order[[best, k]]
        y[[k, best]] = y[[best, k]]
        pivot = y[k, k]
        factors = y[k + 1 :, k] / (y.dtype.type(1) if pivot == 0 else pivot)
        y[k + 1 :, k] = factors
        y[k + 1 :, k + 1 :] -= factors[:, None] * y[k, k + 1 :]


def substitute(a: Array, y: Array, backward: bool, unit: bool) -> None:
    """`y = a^-1 y` for a triangular matrix: the lower half of `a`, or the upper one from the last
    row to the first."""
    n = len(y)
    for i in reversed(range(n)) if backward else range(n):
        rest = y[i]
        for p in range(i + 1, n) if backward else range(i):
            rest = rest - a[i, p] * y[p]
        y[i] = rest if unit else rest / a[i, i]


def exchange_rows(f: Array, y: Array, back: bool) -> None:
    """The rows of y in the order of the factors of `lu`, or back in their own."""
    n = len(y)
    for i in reversed(range(n)) if back else range(n):
        j = int(f[n + 1, i])
        if i != j:
            y[[i, j]] = y[[j, i]]
