"""Routines for least squares, in Python: see `routines.py`, and `codegen/libcalls/least_squares.py`
for what they do.

Here are only matrices that surely have full rank; of others compiled code finds the factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.codegen.libcalls.lapack import GIVEN, LOWER
from retrograd.codegen.libcalls.least_squares import FEW
from retrograd.codegen.libcalls.matrix_functions import ADJOINT, PLAIN
from retrograd.ops.linalg.least_squares import MARGIN
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.numpy_mirror.lapack import fortran
from retrograd.runtime.executors.numpy_mirror.routines import OTHERWISE, Routine, substitute


def factors(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (limit, y), (m, n, length, _) = data, sizes
    lead, status = m + 1, np.zeros(1, np.int32)
    last, space = np.empty(n, y.dtype), np.empty(length, y.dtype)
    fortran("geqrf", y.dtype, m, n, y, lead, last, space, length, status)
    r = np.tril(y[:, :n])  # R as columns
    size = _norm(r)
    fortran("trtri", y.dtype, "U", "N", n, r, max(n, 1), status)
    if status[0] or not _is_far(size, _norm(r), limit.reshape(-1)[0]):
        return OTHERWISE
    y[:, m] = last
    return 0


def _norm(x: Array) -> Any:
    """The Frobenius norm, the squares added one after the other."""
    squares = np.concatenate([np.zeros(1, x.dtype), (x * x).reshape(-1)])
    return np.sqrt(np.add.accumulate(squares)[-1])


def _is_far(size: Any, inverse: Any, relative: Any) -> bool:
    """Whether `1 / inverse` is larger than the part `relative` of `size`, by a margin."""
    kind = type(size)
    eps = kind(np.finfo(kind).eps)
    margin = (eps if relative < eps else relative) * kind(MARGIN)
    return bool(size * inverse * margin < 1)


def solution(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (b, f, y), (m, n, k, length) = data, sizes
    if n and np.isnan(f[0, m]):
        return OTHERWISE
    if n:
        _reflect(f, b, m, n, k, length, "N")
        y[...] = b[:n]
        substitute(f, y, LOWER, ADJOINT, GIVEN, m + 1)
    return 0


def adjoint_solution(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (f, y), (m, n, k, length) = data, sizes
    if n and np.isnan(f[0, m]):
        return OTHERWISE
    if n:
        substitute(f, y[:n], LOWER, PLAIN, GIVEN, m + 1)
        _reflect(f, y, m, n, k, length, "T")
    return 0


def _reflect(f: Array, b: Array, m: int, n: int, k: int, length: int, way: str) -> None:
    """`b[m, k]` becomes `Q^T b`, or `Q b` by the way "T"."""
    last, status = f[:, m].copy(), np.zeros(1, np.int32)
    room = max(k, 1) if k < FEW else length
    space = np.empty(max(room, length), b.dtype)
    fortran("ormqr", b.dtype, "R", way, k, m, n, f, m + 1, last, b, max(k, 1), space, room, status)


ROUTINES: dict[str, Routine] = {
    "least_factors": factors,
    "least_squares": solution,
    "least_squares_adjoint": adjoint_solution,
}
