"""Routines for least squares, in Python: see `routines.py`; `llvm/least.py` says what they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.backends.backend import Array
from retrograd.backends.interpret.lapack import cblas, fortran
from retrograd.backends.interpret.routines import Routine
from retrograd.backends.llvm.functions import ADJOINT, COLUMNS, PLAIN
from retrograd.backends.llvm.lapack import GIVEN, LEFT, LOWER, ROWS
from retrograd.backends.llvm.least import FEW
from retrograd.ops.linalg.least_squares import MARGIN
from retrograd.ops.linalg.matrix import NOT_FINITE


def factors(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (limit, y), (m, n, length, _) = data, sizes
    dtype, kind = y.dtype, y.dtype.type
    x, u, r = y[:, :m].copy(), np.empty((n, m), dtype), np.zeros((n, n), dtype)
    last, space, s = np.empty(n, dtype), np.empty(length, dtype), np.empty(n, dtype)
    status, integers = np.zeros(1, np.int32), np.empty(8 * n + 1, np.int32)

    def decompose(job: str, a: Array, rows: int) -> int:
        fortran("gesdd", dtype, job, rows, n, a, max(rows, 1), s, u, max(rows, 1), r, max(n, 1),
                space, length, integers, status)  # fmt: skip
        return abs(int(status[0]))

    fortran("geqrf", dtype, m, n, y, m + 1, last, space, length, status)
    relative = limit.reshape(-1)[0]
    triangle = np.tril(y[:, :n])
    r[...] = triangle
    size = _norm(r)
    fortran("trtri", dtype, "U", "N", n, r, max(n, 1), status)
    whole, inverse = status[0] == 0, _norm(r)
    sure = whole and _is_far(size, inverse, relative)
    if not sure:
        if not np.isfinite(x).all():
            return NOT_FINITE
        r[...] = triangle
        sure = whole & _is_far(_closer(r, size, u, space), inverse, relative)
    if not sure:
        code = decompose("N", r, n)
        if code:
            return code
        sure = whole and s[-1] > relative * s[0]
    if sure:
        y[:, m] = last
        return 0
    code = decompose("S", x, m)
    if code:
        return code
    kept = s > relative * s[0]
    u *= np.where(kept, kind(1) / np.where(kept, s, kind(1)), kind(0))[:, None]
    _product(COLUMNS, PLAIN, (m, n, n), (u, m), (r, n), (y, m + 1))
    y[:, m] = np.nan
    return 0


def _norm(x: Array) -> Any:
    """The Frobenius norm, of elements one after the other."""
    squares = np.add.accumulate((x * x).reshape(-1))
    return np.sqrt(squares[-1]) if x.size else x.dtype.type(0)


def _is_far(size: Any, inverse: Any, relative: Any) -> bool:
    kind = type(size)
    margin = np.maximum(relative, np.finfo(kind).eps) * kind(MARGIN)
    return bool(size * inverse * margin < 1)


def _closer(r: Array, size: Any, square: Array, fourth: Array) -> Any:
    n = len(r)
    r /= size if size != 0 else type(size)(1)
    _product(COLUMNS, ADJOINT, (n, n, n), (r, n), (r, n), (square, n))
    _product(COLUMNS, PLAIN, (n, n, n), (square, n), (square, n), (fourth, n))
    return size * np.sqrt(np.sqrt(_norm(fourth[: n * n])))


def _product(
    order: int, first: int, sizes: tuple[int, int, int],
    a: tuple[Array, int], b: tuple[Array, int], y: tuple[Array, int],
) -> None:  # fmt: skip
    (pa, la), (pb, lb), (py, ly) = ((p, max(lead, 1)) for p, lead in (a, b, y))
    cblas("gemm", py.dtype, order, first, PLAIN, *sizes, 1.0, pa, la, pb, lb, 0.0, py, ly)


def _reflect(f: Array, b: Array, sizes: Sequence[int], way: str) -> None:
    m, n, k, length = sizes
    last, room = f[:, m].copy(), max(k, 1) if k < FEW else length
    fortran("ormqr", b.dtype, "R", way, k, m, n, f, m + 1, last, b, max(k, 1),
            np.empty(length, b.dtype), room, np.zeros(1, np.int32))  # fmt: skip


def _substitute(f: Array, y: Array, sizes: Sequence[int], turned: int) -> None:
    m, n, k, _ = sizes
    if k == 1:
        cblas("trsv", y.dtype, ROWS, LOWER, turned, GIVEN, n, f, m + 1, y, 1)
    else:
        cblas("trsm", y.dtype, ROWS, LEFT, LOWER, turned, GIVEN, n, k, 1.0, f, m + 1, y, max(k, 1))


def solution(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (b, f, y), (m, n, k, _) = data, sizes
    if n == 0:
        return 0
    if np.isnan(f[0, m]):
        _product(ROWS, PLAIN, (n, k, m), (f, m + 1), (b, k), (y, k))
        return 0
    _reflect(f, b, sizes, "N")
    y[...] = b[:n]
    _substitute(f, y, sizes, ADJOINT)
    return 0


def adjoint_solution(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (f, y), (m, n, k, _) = data, sizes
    if n == 0:
        return 0
    if np.isnan(f[0, m]):
        _product(ROWS, ADJOINT, (m, k, n), (f, m + 1), (y[:n].copy(), k), (y, k))
        return 0
    _substitute(f, y, sizes, PLAIN)
    _reflect(f, y, sizes, "T")
    return 0


ROUTINES: dict[str, Routine] = {
    "least_factors": factors,
    "least_squares": solution,
    "least_squares_adjoint": adjoint_solution,
}
