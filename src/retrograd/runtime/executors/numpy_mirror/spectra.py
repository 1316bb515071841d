"""Routines that iterate, in Python, and exponentials: see `routines.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.codegen.libcalls.matrix_functions import COLUMNS, PLAIN
from retrograd.ops.linalg.expm import PADE, REACH
from retrograd.ops.linalg.matrix import LEADING, NOT_FINITE
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.numpy_mirror.lapack import cblas, fortran
from retrograd.runtime.executors.numpy_mirror.routines import Routine


def eigh(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (y,) = data
    code = _symmetric("V", y[1:], y[0], sizes)
    if code != NOT_FINITE:
        y[1:] *= orientation(y[1:])[:, None]
    return code


def eigvalsh(data: Sequence[Array], sizes: Sequence[int]) -> int:
    x, y = data
    return _symmetric("N", x, y, sizes)


def _symmetric(vectors: str, x: Array, values: Array, sizes: Sequence[int]) -> int:
    n, length, _ = sizes
    if not np.isfinite(x).all():
        return NOT_FINITE
    status, count = np.zeros(1, np.int32), 5 * n + 3
    space, integers = np.empty(length, x.dtype), np.empty(count, np.int32)
    fortran("syevd", x.dtype, vectors, "L", n, x, max(n, 1), values, space, length, integers, count,
            status)  # fmt: skip
    return abs(int(status[0]))


def orientation(vectors: Array) -> Array:
    """For each vector, a row, the 1 or -1 that makes positive the first component that is at least
    `LEADING` times the largest."""
    sizes = np.abs(vectors)
    limit = np.fmax.reduce(sizes, axis=1, initial=0) * vectors.dtype.type(LEADING)
    leads = sizes >= limit[:, None]
    first = np.take_along_axis(vectors, leads.argmax(1)[:, None], 1)[:, 0]
    found: Array = np.where(leads.any(1) & (first < 0), -1, 1).astype(vectors.dtype)
    return found


def eig(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (x, y), n = data, sizes[0]
    parts, found = np.empty((2, n), x.dtype), np.empty((n, n), x.dtype)
    code = _general("V", x, parts, found, sizes)
    if code != NOT_FINITE:
        y[0] = parts.T
        _unfold(y[1:], found, parts[1])
        _orient(y[1:])
    return code


def eigvals(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (x, y), n = data, sizes[0]
    parts = np.empty((2, n), x.dtype)
    code = _general("N", x, parts, np.empty((n, n), x.dtype), sizes)
    if code != NOT_FINITE:
        y[...] = parts.T
    return code


def _general(vectors: str, x: Array, parts: Array, found: Array, sizes: Sequence[int]) -> int:
    n, length = sizes
    if not np.isfinite(x).all():
        return NOT_FINITE
    status, space, lead = np.zeros(1, np.int32), np.empty(length, x.dtype), max(n, 1)
    fortran("geev", x.dtype, "N", vectors, n, x, lead, parts[0], parts[1], space, lead, found, lead,
            space, length, status)  # fmt: skip
    return abs(int(status[0]))


def _unfold(y: Array, found: Array, heights: Array) -> None:
    """Complex vectors, `y[n, n, 2]`, of the rows of real ones that LAPACK finds: of a pair of
    conjugate numbers, the first of which is above the real axis, they are the parts of the first
    one's vector."""
    above, below = heights > 0, heights < 0
    before = np.arange(len(heights)) - below
    behind = before + (above | below)
    sign = np.where(below, -1, np.where(above, 1, 0)).astype(found.dtype)
    y[..., 0] = found[before]
    y[..., 1] = found[behind] * sign[:, None]


def _orient(y: Array) -> None:
    """Complex vectors in rows, each times the number of size 1 that makes positive the first
    component that is at least `LEADING` times the largest."""
    sizes = np.sqrt(y[..., 0] * y[..., 0] + y[..., 1] * y[..., 1])
    limit = np.fmax.reduce(sizes, axis=1, initial=0) * y.dtype.type(LEADING)
    leads = sizes >= limit[:, None]
    at = leads.argmax(1)[:, None]
    size = np.take_along_axis(sizes, at, 1)
    none = ~leads.any(1)[:, None] | (size == 0)
    first = np.take_along_axis(y, at[..., None], 1) / np.where(none, 1, size)[..., None]
    r = np.where(none, 1, first[..., 0])
    s = np.where(none, 0, -first[..., 1])
    p, q = y[..., 0], y[..., 1]
    y[..., 0], y[..., 1] = p * r - q * s, p * s + q * r


def svd(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (x, y), (m, n, k, length, _) = data, sizes
    if not np.isfinite(x).all():
        return NOT_FINITE
    turned, v = np.empty((k, m), x.dtype), y[1 + m :]
    status, space = np.zeros(1, np.int32), np.empty(length, x.dtype)
    fortran("gesdd", x.dtype, "S", m, n, x, max(m, 1), y[0], turned, max(m, 1), v, max(k, 1), space,
            length, np.empty(8 * k + 1, np.int32), status)  # fmt: skip
    factors = orientation(turned)
    y[1 : 1 + m] = (turned * factors[:, None]).T
    v *= factors
    return abs(int(status[0]))


def svdvals(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (x, y), (m, n, k, length, _) = data, sizes
    if not np.isfinite(x).all():
        return NOT_FINITE
    status, space = np.zeros(1, np.int32), np.empty(length, x.dtype)
    fortran("gesdd", x.dtype, "N", m, n, x, max(m, 1), y, x, max(m, 1), x, max(m, 1), space, length,
            np.empty(8 * k + 1, np.int32), status)  # fmt: skip
    return abs(int(status[0]))


def expm(data: Sequence[Array], sizes: Sequence[int]) -> int:
    (y,), (n,) = data, sizes
    kind = y.dtype.type
    norm = kind(0)
    for total in np.add.accumulate(np.abs(y), axis=1)[:, -1] if n else ():
        norm = norm if total <= norm or norm != norm else total
    if not norm < np.inf:
        y[...] = np.nan
        return 0
    times, scale = 0, kind(1)
    while norm > kind(REACH):
        norm, scale, times = norm * kind(0.5), scale * kind(0.5), times + 1
    y *= scale
    x2, x4, x6, odd, even, free = np.empty((6, n, n), y.dtype)
    _gemm(x2, y, y)
    _gemm(x4, x2, x2)
    _gemm(x6, x2, x4)
    for parity, result in ((1, odd), (0, even)):
        b = [kind(c) for c in PADE[parity::2]]
        free[...] = b[6] * x6 + b[5] * x4 + b[4] * x2
        _gemm(result, x6, free)
        result[...] = result + b[3] * x6 + b[2] * x4 + b[1] * x2
        result[np.diag_indices(n)] += b[0]
    _gemm(free, y, odd)
    y[...], x2[...] = even + free, even + -free
    status, pivots = np.zeros(1, np.int32), np.empty(n, np.int32)
    lead = max(n, 1)
    fortran("getrf", y.dtype, n, n, x2, lead, pivots, status)
    fortran("getrs", y.dtype, "N", n, n, x2, lead, pivots, y, lead, status)
    for _ in range(times):
        _gemm(free, y, y)
        y[...] = free
    return 0


def _gemm(y: Array, a: Array, b: Array) -> None:
    """`y = a b` for matrices in columns."""
    n = len(y)
    lead = max(n, 1)
    cblas("gemm", y.dtype, COLUMNS, PLAIN, PLAIN, n, n, n, 1.0, a, lead, b, lead, 0.0, y, lead)


ROUTINES: dict[str, Routine] = {
    "eigh": eigh,
    "eigvalsh": eigvalsh,
    "eig": eig,
    "eigvals": eigvals,
    "svd": svd,
    "svdvals": svdvals,
    "expm": expm,
}
