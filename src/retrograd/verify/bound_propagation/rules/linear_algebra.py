"""Factorisations and what is solved with them, around the middle of a region of matrices.

What a backend computes is the exact result of a matrix nearby: within `BACKWARD n eps` times the
size of what the algorithm works with (Higham: "Accuracy and Stability of Numerical Algorithms";
LAPACK Users' Guide, 4). So matrices are widened by that first, and then enclosures for exact
arithmetic hold for all backends:

    systems of equations   Rump's and Krawczyk's: with an approximate inverse R and `c = |I - R A|
                           < 1`, a solution is within `|R (b - A x)| / (1 - c)` of x
    triangular, Cholesky   substitution and factorisation in interval arithmetic
    eigen, singular values Weyl's inequality; vectors by Davis and Kahan's, where values are apart
    exponential            `|exp(A + E) - exp(A)| <= exp(|A| + |E|) - exp(|A|)`, elementwise

Beside these there is always what the size of a matrix tells: elements of orthonormal columns are at
most 1, those of R no more than the norm of a column, minors no more than Hadamard says. A program
refuses singular matrices when it runs; where a region may hold one there are no bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograd.ir import Node
from retrograd.ops.control.matrix_function import MatrixFunction
from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.ops.linalg.determinant import Cofactor, CofactorSlope, Det, LogAbsDet
from retrograd.ops.linalg.eig import Eig, Eigvals
from retrograd.ops.linalg.eigen import EigenSum, Eigh, Eigvalsh, Turn
from retrograd.ops.linalg.expm import Expm
from retrograd.ops.linalg.least_squares import LeastFactors, LeastSquares
from retrograd.ops.linalg.lu import LU, Inv, Solve
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.linalg.polar import Lyapunov, NuclearNorm, Polar
from retrograd.ops.linalg.qr import QR, Complement
from retrograd.ops.linalg.svd import SVD, SingularSum, SpectralNorm, Svdvals
from retrograd.ops.linalg.triangular import TriangularSolve
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    Rectangle,
    accumulator,
    anything,
    rounded,
    where_nan,
)
from retrograd.verify.bound_propagation.propagation import Value, rule

BACKWARD = 32  # times n eps, the error of an algorithm in units of what it works with


class Ball(NamedTuple):
    """Matrices around a middle: how far elements may be from it, and where something is infinite.

    Of stacks, `wild` marks the matrices that are not finite, whose middle is taken for 0."""

    mid: Any
    rad: Any
    wild: Any


def ball_of(value: Value, axes: tuple[int, ...] = (-2, -1)) -> Ball:
    parts = value if isinstance(value, Rectangle) else (value,)
    wild = np.logical_or.reduce(
        [~np.isfinite(p.lower) | ~np.isfinite(p.upper) | np.asarray(p.nan) for p in parts]
    )
    wild = wild.any(axis=axes)
    keep = np.expand_dims(~wild, axes)
    mids = [np.where(keep, p.mid, 0.0) for p in parts]
    rads = [
        np.where(keep, np.maximum(p.upper - m, m - p.lower) * (1 + 2**-50), 0.0)
        for p, m in zip(parts, mids, strict=True)
    ]
    if len(parts) == 1:
        return Ball(mids[0], rads[0], wild)
    return Ball(mids[0] + 1j * mids[1], np.hypot(*rads) * (1 + 2**-50), wild)


def around(node: Node, mid: Any, rad: Any, bad: Any) -> Value:
    """What lies within a distance of a middle; nothing is known where `bad` is marked."""
    bad = np.broadcast_to(bad, np.shape(mid)) | ~np.isfinite(mid) | ~np.isfinite(rad)
    parts = (mid.real, mid.imag) if node.dtype.is_complex else (np.real(mid),)
    found = []
    for part in parts:
        with np.errstate(all="ignore"):
            by = rad * (1 + 2**-50) + np.abs(part) * 2**-50
            low, high = np.where(bad, -INF, part - by), np.where(bad, INF, part + by)
        found.append(rounded(low, high, node.dtype, where_nan(bad)))
    return found[0] if len(found) == 1 else Rectangle(*found)


def within(node: Node, size: Any, bad: Any) -> Value:
    """Magnitudes of at most so much."""
    shape = tuple(map(int, node.shape))
    size = np.broadcast_to(size, shape)
    return around(node, np.zeros(shape, complex), size, np.broadcast_to(bad, shape))


def unit(node: Node) -> float:
    return accumulator(node.dtype).eps


def joint(value: Value, other: Value) -> Value:
    """What is in both of two enclosures."""
    if isinstance(value, Rectangle):
        return Rectangle(*[joint(a, b) for a, b in zip(value, other, strict=True)])
    low, high = np.maximum(value.lower, other.lower), np.minimum(value.upper, other.upper)
    nan = np.asarray(value.nan) & np.asarray(other.nan)
    return Interval(np.minimum(low, high), np.maximum(low, high), where_nan(nan))


def above(x: Any) -> Any:
    """A little more than a computed number that is not negative."""
    return x * (1 + 1e-12) + 1e-300


def frobenius(x: Any) -> Any:
    return above(np.sqrt((np.abs(x) ** 2).sum(axis=(-2, -1))))


def row_sums(x: Any) -> Any:
    """The norm that belongs to the largest element of vectors."""
    return above(np.abs(x).sum(axis=-1).max(axis=-1, initial=0.0))


# -- what is passed on ----------------------------------------------------------------------------


@rule(
    Det, LogAbsDet, Pinv, Turn, EigenSum, SingularSum, SpectralNorm, NuclearNorm, Polar, Lyapunov,
    MatrixFunction,
)  # fmt: skip
def given_value(node: Node, *given: Value) -> Value:
    """These give their last input, computed elsewhere, and have derivatives of their own."""
    return given[-1]


# -- systems of equations -------------------------------------------------------------------------


def pad_rows(a: Ball, node: Node) -> Any:
    """How far elements may be from the middle, the error of an elimination included."""
    n = a.mid.shape[-1]
    growth = np.abs(a.mid) + a.rad
    with np.errstate(all="ignore"):
        most = growth.max(axis=(-2, -1), keepdims=True, initial=0.0) * max(n, 1) ** 0.5
    return a.rad + BACKWARD * max(n, 1) * unit(node) * most


def solved(a: Ball, rad: Any, b: Ball) -> tuple[Any, Any, Any]:
    """Middle, distance and where there are no bounds, of the solutions of `A x = b`."""
    n = a.mid.shape[-1]
    one = np.eye(n)
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(a.mid)
        except np.linalg.LinAlgError:
            inverse = np.linalg.pinv(a.mid)
        inverse = np.where(np.isfinite(inverse), inverse, 0.0)
        x = inverse @ b.mid
        size = np.abs(inverse)
        ours = 4 * (n + 2) * 2.0**-52
        off = np.abs(one - inverse @ a.mid) + size @ rad + ours * (size @ np.abs(a.mid) + one)
        c = row_sums(off)
        left = np.abs(b.mid - a.mid @ x) + b.rad + rad @ np.abs(x)
        left = left + ours * (np.abs(a.mid) @ np.abs(x) + np.abs(b.mid))
        first = size @ left
        # x* - x = R r + (I - R A)(x* - x), and the largest element of that is at most:
        most = above(first.max(axis=-2, keepdims=True, initial=0.0)) / (1 - c)[..., None, None]
        radius = above(first + off.sum(axis=-1, keepdims=True) * most)
    bad = ~(c < 1) | a.wild | b.wild
    return x, radius, bad


def _turned(a: Ball, turn: bool) -> Ball:
    if not turn:
        return a
    return Ball(np.swapaxes(a.mid, -1, -2), np.swapaxes(a.rad, -1, -2), a.wild)


@rule(Solve)
def solve(node: Node, a: Value, factors: Value, b: Value) -> Value:
    own = _turned(ball_of(a), node.prim.transpose)  # type: ignore[attr-defined]
    x, radius, bad = solved(own, pad_rows(own, node), ball_of(b))
    return around(node, x, radius, bad[..., None, None])


@rule(Inv)
def inv(node: Node, a: Value, factors: Value) -> Value:
    own = ball_of(a)
    n = own.mid.shape[-1]
    one = np.broadcast_to(np.eye(n), own.mid.shape)
    right = Ball(one, np.zeros(one.shape), own.wild)
    x, radius, bad = solved(own, pad_rows(own, node), right)
    return around(node, x, radius, bad[..., None, None])


@rule(TriangularSolve)
def triangular_solve(node: Node, a: Value, b: Value) -> Value:
    """The same; of a triangular matrix `I - R A` is one as well, so that powers of it vanish, but
    what counts here is that it is small."""
    prim: Any = node.prim
    own, right = ball_of(a), ball_of(b)
    n = own.mid.shape[-1]
    half = np.triu(np.ones((n, n))) if prim.upper else np.tril(np.ones((n, n)))
    mid, rad = own.mid * half, own.rad * half
    if prim.unit:
        other = half - np.eye(n)
        mid, rad = mid * other + np.eye(n), rad * other
    diagonal = np.diagonal(mid, axis1=-2, axis2=-1)
    zero = ~(np.abs(diagonal) > np.diagonal(rad, axis1=-2, axis2=-1)).all(-1)
    rad = rad + BACKWARD * max(n, 1) * unit(node) * np.abs(mid)
    own = _turned(Ball(mid, rad, own.wild | zero), prim.transpose)
    x, radius, bad = _substituted(own, right, prim.upper != prim.transpose)
    return around(node, x, radius, bad[..., None, None])


def _substituted(a: Ball, b: Ball, backward: bool) -> tuple[Any, Any, Any]:
    """Row by row, with the distance of each."""
    n = a.mid.shape[-1]
    x, radius = (
        np.array(b.mid + 0 * a.mid[..., :1, :1]),
        np.array(b.rad + 0.0 * np.abs(x_like(a, b))),
    )
    bad = a.wild | b.wild
    with np.errstate(all="ignore"):
        for i in range(n)[:: -1 if backward else 1]:
            done = slice(i + 1, n) if backward else slice(0, i)
            row, wide = a.mid[..., i : i + 1, done], a.rad[..., i : i + 1, done]
            value = b.mid[..., i : i + 1, :] - row @ x[..., done, :]
            error = b.rad[..., i : i + 1, :] + np.abs(row) @ radius[..., done, :]
            error = error + wide @ (np.abs(x[..., done, :]) + radius[..., done, :])
            size = np.abs(b.mid[..., i : i + 1, :]) + np.abs(row) @ np.abs(x[..., done, :])
            error = error + 4 * (n + 2) * 2.0**-52 * size
            d, e = a.mid[..., i : i + 1, i : i + 1], a.rad[..., i : i + 1, i : i + 1]
            y = value / d
            x[..., i : i + 1, :] = y
            radius[..., i : i + 1, :] = above((error + e * np.abs(y)) / (np.abs(d) - e))
    return x, radius, bad


def x_like(a: Ball, b: Ball) -> Any:
    return b.mid + 0 * a.mid[..., :1, :1]


# -- factorisations -------------------------------------------------------------------------------


@rule(LU)
def lu(node: Node, a: Value) -> Value:
    """L is at most 1 by the choice of pivots, of complex numbers the root of 2; U doubles in each
    step. Where the choice of each pivot is sure, both are enclosed by elimination."""
    own = ball_of(a)
    *stack, m, n = own.mid.shape
    shape = tuple(map(int, node.shape))
    size = np.zeros(shape)
    most = (np.abs(own.mid) + own.rad).max(axis=(-2, -1), initial=0.0)
    growth = 2.0 ** min(max(n - 1, 0), 1000) * 1.01
    size[..., :n, :] = 1.5
    square = size[..., :n, :n]
    upper = np.tril(np.ones((n, n), bool))  # of the transpose
    square[...] = np.where(upper, np.maximum(square, (most * growth)[..., None, None]), square)
    size[..., n:, :] = max(m - 1, 0)
    found = within(node, size, own.wild[..., None, None])
    if isinstance(found, Rectangle):
        return found
    low, high = np.array(found.lower), np.array(found.upper)
    low[..., n:, :] = np.maximum(low[..., n:, :], 0.0)
    for at in np.ndindex(*stack):
        known = None if own.wild[at] else _eliminated(own.mid[at], own.rad[at], unit(node))
        if known is not None:
            low[at], high[at] = (_packed(v, known[2], m, n) for v in known[:2])
    return rounded(low, high, node.dtype, found.nan)


def _eliminated(mid: Any, rad: Any, eps: float) -> tuple[Any, Any, Any] | None:
    """Lower and upper ends of L and U in one matrix, with the exchanges, where these are sure."""
    m, n = mid.shape
    slack = 0.0
    for _ in range(2):  # first without the error of backends, to know what they work with
        low, high = mid - rad - slack, mid + rad + slack
        result = _steps(low, high)
        if result is None:
            return None
        size = np.maximum(np.abs(result[0]), np.abs(result[1]))
        lower = np.tril(size, -1)[:, :n] + np.eye(m, n)
        product = lower @ np.triu(size)[:n]
        back = np.empty_like(product)
        back[result[2]] = product  # the rows as they came
        slack = BACKWARD * max(n, 1) * eps * 2 * back + 1e-300
    return result


def _steps(low: Any, high: Any) -> tuple[Any, Any, Any] | None:
    m, n = low.shape
    low, high, order = low.copy(), high.copy(), np.arange(m)
    for k in range(n):
        least = np.where(
            (low[k:, k] <= 0) & (high[k:, k] >= 0), 0.0,
            np.minimum(np.abs(low[k:, k]), np.abs(high[k:, k])),
        )  # fmt: skip
        most = np.maximum(np.abs(low[k:, k]), np.abs(high[k:, k]))
        p = int(np.argmax(least))
        if (
            not least[p] > max(np.delete(most, p).max(initial=0.0), 0.0)
            or not np.isfinite(most).all()
        ):
            return None
        rows = [k, k + p]
        low[rows], high[rows], order[rows] = low[rows[::-1]], high[rows[::-1]], order[rows[::-1]]
        d = low[k, k], high[k, k]
        quotients = [x[k + 1 :, k] / y for x in (low, high) for y in d]
        by = [np.minimum.reduce(quotients), np.maximum.reduce(quotients)]
        by = [by[0] - 4e-16 * np.abs(by[0]), by[1] + 4e-16 * np.abs(by[1])]
        low[k + 1 :, k], high[k + 1 :, k] = by
        ends = [b[:, None] * u[None] for b in by for u in (low[k, k + 1 :], high[k, k + 1 :])]
        most_of, least_of = np.maximum.reduce(ends), np.minimum.reduce(ends)
        rest = low[k + 1 :, k + 1 :], high[k + 1 :, k + 1 :]
        size = 1e-15 * (
            np.maximum(np.abs(rest[0]), np.abs(rest[1])) + np.abs(most_of) + np.abs(least_of)
        )
        low[k + 1 :, k + 1 :], high[k + 1 :, k + 1 :] = (
            rest[0] - most_of - size,
            rest[1] - least_of + size,
        )
    return low, high, order


def _packed(y: Any, order: Any, m: int, n: int) -> Any:
    exchanges, places = np.zeros(m), np.arange(m)
    for i in range(n):
        j = int(np.flatnonzero(places == order[i])[0])
        exchanges[i] = j
        places[[i, j]] = places[[j, i]]
    return np.concatenate([y.T, order[None].astype(float), exchanges[None]])


@rule(Cholesky)
def cholesky(node: Node, a: Value) -> Value:
    """Column by column, with the norm of each row of L beside that: it is the root of a diagonal
    element."""
    own = ball_of(a)
    n = own.mid.shape[-1]
    mid = (own.mid + np.swapaxes(own.mid, -1, -2).conj()) / 2
    rad = (own.rad + np.swapaxes(own.rad, -1, -2)) / 2 + np.abs(mid) * 2e-16
    with np.errstate(all="ignore"):
        diagonal = np.diagonal(mid, axis1=-2, axis2=-1).real + np.diagonal(rad, axis1=-2, axis2=-1)
        norms = np.sqrt(np.maximum(diagonal, 0.0)) * (1 + BACKWARD * max(n, 1) * unit(node))
        rad = rad + BACKWARD * max(n, 1) * unit(node) * norms[..., :, None] * norms[..., None, :]
        mid, rad, doubt = _columns(mid, rad)
    shape = mid.shape
    inside = np.tril(np.ones(shape[-2:]))
    size = np.broadcast_to(norms[..., :, None], shape) * inside
    bad = own.wild[..., None, None]
    lower = within(node, np.swapaxes(size, -1, -2) if node.prim.upper else size, bad)  # type: ignore[attr-defined]
    mid, rad = mid * inside, np.where(inside > 0, rad, 0.0)
    if node.prim.upper:  # type: ignore[attr-defined]
        mid, rad, doubt = (np.swapaxes(v, -1, -2) for v in (mid.conj(), rad, doubt))
    half = inside.T if node.prim.upper else inside  # type: ignore[attr-defined]
    tight = around(node, mid, rad, (bad | doubt) & (half > 0))
    return joint(tight, lower)


def _columns(mid: Any, rad: Any) -> tuple[Any, Any, Any]:
    n = mid.shape[-1]
    y, far = np.zeros_like(mid), np.zeros(rad.shape)
    doubt = np.zeros(rad.shape, bool)
    lost = np.zeros(mid.shape[:-2], bool)
    for j in range(n):
        row, wide = y[..., j, :j], far[..., j, :j]
        value = mid[..., j:, j] - (y[..., j:, :j] @ row.conj()[..., None])[..., 0]
        size = np.abs(y[..., j:, :j])
        error = rad[..., j:, j] + (size @ wide[..., None])[..., 0]
        error = error + (far[..., j:, :j] @ (np.abs(row) + wide)[..., None])[..., 0]
        error = error + 4 * (j + 2) * 2.0**-52 * (
            np.abs(mid[..., j:, j]) + (size @ np.abs(row)[..., None])[..., 0]
        )
        d, e = value[..., 0].real, above(error[..., 0])
        lost |= ~(d > e)
        doubt[..., j:, j] = lost[..., None]
        root = np.sqrt(np.where(lost, 1.0, d))
        least = np.sqrt(np.where(lost, 1.0, d - e))
        y[..., j:, j] = value / root[..., None]
        # The quotient by any root in between.
        by = (root - least) * (1 + 1e-12) + 1e-15 * root
        far[..., j:, j] = above((error + np.abs(y[..., j:, j]) * by[..., None]) / least[..., None])
        y[..., j, j] = root
        far[..., j, j] = above(e / (root + least) * 1.01 + 1e-15 * root)
    return y, far, doubt


@rule(QR)
def qr(node: Node, a: Value) -> Value:
    """Columns of Q have length 1, those of R the length of columns of the matrix."""
    own = ball_of(a)
    m, n = own.mid.shape[-2:]
    with np.errstate(all="ignore"):
        lengths = np.sqrt(((np.abs(own.mid) + own.rad) ** 2).sum(axis=-2))
    more = 1 + BACKWARD * max(m, 1) * unit(node)
    size = np.zeros(tuple(map(int, node.shape)))
    size[..., :m] = more
    size[..., m:] = np.triu(np.ones((n, n))) * (lengths * more)[..., None, :]
    return within(node, size, own.wild[..., None, None])


@rule(Complement)
def complement(node: Node, q: Value) -> Value:
    own = ball_of(q)
    return within(
        node, 1 + BACKWARD * max(own.mid.shape[-2], 1) * unit(node), own.wild[..., None, None]
    )


# -- eigenvalues and singular values --------------------------------------------------------------


def _hermitian(a: Value, node: Node) -> tuple[Any, Any, Any]:
    """The middle of the hermitian part, and how far it may be away in the norm, errors of
    algorithms included."""
    own = ball_of(a)
    n = max(own.mid.shape[-1], 1)
    mid = (own.mid + np.swapaxes(own.mid, -1, -2).conj()) / 2
    rad = (own.rad + np.swapaxes(own.rad, -1, -2)) / 2
    with np.errstate(all="ignore"):
        error = BACKWARD * n * (unit(node) + 2.0**-52) * frobenius(np.abs(mid) + rad)
        norm = np.minimum(row_sums(rad), frobenius(rad))
    return mid, norm + error, own.wild | ~np.isfinite(norm + error)


@rule(Eigvalsh)
def eigvalsh(node: Node, a: Value) -> Value:
    mid, norm, bad = _hermitian(a, node)
    w = np.linalg.eigvalsh(np.where(bad[..., None, None], 0, mid))
    return around(node, w, np.broadcast_to(norm[..., None], w.shape), bad[..., None])


@rule(Eigh)
def eigh(node: Node, a: Value) -> Value:
    mid, norm, bad = _hermitian(a, node)
    w, v = np.linalg.eigh(np.where(bad[..., None, None], 0, mid))
    vectors, far = _vectors(v, _gaps(w), norm, node)
    values = np.broadcast_to(norm[..., None, None], (*norm.shape, 1, w.shape[-1]))
    y = np.concatenate([w[..., None, :].astype(v.dtype), np.swapaxes(vectors, -1, -2)], -2)
    radius = np.concatenate([values, np.swapaxes(far, -1, -2)], -2)
    return around(node, y, radius, bad[..., None, None])


def _gaps(w: Any) -> Any:
    """How far each value is from the others."""
    apart = np.abs(w[..., :, None] - w[..., None, :])
    n = w.shape[-1]
    apart = apart + np.where(np.eye(n) > 0, INF, 0.0)
    return apart.min(axis=-1, initial=INF)


def _vectors(v: Any, gap: Any, norm: Any, node: Node) -> tuple[Any, Any]:
    """Vectors oriented as the op has them, and how far their elements may be away: those of a
    matrix within `norm` turn by an angle of at most `norm / (gap - norm)` (Davis, Kahan), and where
    the element that is to be positive is not sure, they are of length 1 and no more."""
    with np.errstate(all="ignore"):
        turn = norm[..., None] / (gap - norm[..., None])
        turn = np.where((turn >= 0) & (turn < 0.25), 1.5 * turn, INF)
    size = np.abs(v)
    far = turn[..., None, :]
    top = size.max(axis=-2, keepdims=True, initial=0.0)
    may = size + far >= 0.59 * (top - far)
    sure = size - far >= 0.61 * (top + far)
    first = np.argmax(may, axis=-2)[..., None, :]
    is_sure = np.take_along_axis(sure, first, axis=-2) & np.isfinite(far)
    chosen = np.take_along_axis(v, first, axis=-2)
    with np.errstate(all="ignore"):
        phase = np.where(chosen == 0, 1, np.conj(chosen) / np.abs(chosen))
        # The phase itself moves by no more than its element does in relation to its size.
        wide = far * (1 if v.dtype.kind == "f" else 1 + 2 / np.abs(chosen))
    mid = np.where(is_sure, v * phase, 0.0)
    one = 1 + BACKWARD * max(v.shape[-2], 1) * unit(node)
    return mid, np.where(is_sure, np.minimum(wide, 2.0) + 4 * (one - 1), one) + np.zeros(v.shape)


@rule(Svdvals)
def svdvals(node: Node, a: Value) -> Value:
    mid, norm, bad = _general(a, node)
    s = np.linalg.svd(np.where(bad[..., None, None], 0, mid), compute_uv=False)
    found: Any = around(node, s, np.broadcast_to(norm[..., None], s.shape), bad[..., None])
    return found._replace(lower=np.maximum(found.lower, np.where(np.asarray(found.nan), -INF, 0.0)))


def _general(a: Value, node: Node) -> tuple[Any, Any, Any]:
    own = ball_of(a)
    n = max(own.mid.shape[-2:])
    with np.errstate(all="ignore"):
        error = BACKWARD * n * (unit(node) + 2.0**-52) * frobenius(np.abs(own.mid) + own.rad)
        norm = frobenius(own.rad) + error
    return own.mid, norm, own.wild | ~np.isfinite(norm)


@rule(SVD)
def svd(node: Node, a: Value) -> Value:
    """Singular values by Weyl's inequality; vectors have length 1."""
    mid, norm, bad = _general(a, node)
    s = np.linalg.svd(np.where(bad[..., None, None], 0, mid), compute_uv=False)
    shape = tuple(map(int, node.shape))
    y, radius = np.zeros(shape), np.full(shape, 1 + BACKWARD * max(mid.shape[-2:]) * unit(node))
    if shape[-1]:
        y[..., 0, :], radius[..., 0, :] = s, norm[..., None]
    return around(node, y.astype(mid.dtype), radius, bad[..., None, None])


class Spectrum(NamedTuple):
    """What eigenvalues of a stack of matrices lie between, and where nothing is known."""

    real: tuple[Any, Any]
    imag: tuple[Any, Any]
    wild: Any


def spectrum(a: Value, node: Node) -> Spectrum:
    """Of all eigenvalues, as their order may change within a region: no further from 0 than the
    matrix is large; their parts between the extremal eigenvalues of the hermitian and the
    antihermitian part (Bendixson, 1902); and within a distance of one of the middle (Bauer and
    Fike, 1960), for approximate eigenvectors V and an approximate inverse W of these."""
    own = ball_of(a)
    n = max(own.mid.shape[-1], 1)
    with np.errstate(all="ignore"):
        size = np.abs(own.mid) + own.rad
        error = (BACKWARD * n * (unit(node) + 2.0**-52) * frobenius(size))[..., None, None]
        wild = own.wild | ~np.isfinite(error[..., 0, 0])
        mid = np.where(wild[..., None, None], 0.0, own.mid)
        rad = np.where(wild[..., None, None], 0.0, own.rad) + error
        norm = row_sums(size) + error[..., 0, 0]
        turned = np.swapaxes(mid, -1, -2).conj()
        far = frobenius((rad + np.swapaxes(rad, -1, -2)) / 2) + error[..., 0, 0]
        w, v = np.linalg.eig(mid)
        near = _nearness(mid, rad, w, v)
        ends = []
        for hermitian, part in (((mid + turned) / 2, w.real), ((mid - turned) / 2j, w.imag)):
            values = np.linalg.eigvalsh(hermitian)
            low, high = values.min(-1, initial=INF) - far, values.max(-1, initial=-INF) + far
            low = np.maximum(low, part.min(-1, initial=INF) - near)
            high = np.minimum(high, part.max(-1, initial=-INF) + near)
            ends.append((np.maximum(low, -norm), np.minimum(high, norm)))
    return Spectrum(ends[0], ends[1], wild)


def _nearness(mid: Any, rad: Any, w: Any, v: Any) -> Any:
    """A distance within which each eigenvalue is from one of `w`: `|V^-1 ((A + E) V - V w)|`."""
    n = max(mid.shape[-1], 1)
    ours = 4 * (n + 2) * 2.0**-52
    size = np.abs(v)
    try:
        inverse = np.linalg.inv(v)
    except np.linalg.LinAlgError:
        return np.full(mid.shape[:-2], INF)
    c = row_sums(np.abs(np.eye(mid.shape[-1]) - inverse @ v) + ours * (np.abs(inverse) @ size))
    left = np.abs(mid @ v - v * w[..., None, :]) + rad @ size
    left = left + ours * (np.abs(mid) @ size + size * np.abs(w)[..., None, :])
    near = row_sums(np.abs(inverse) @ left) / (1 - c)
    return np.where((c < 1) & np.isfinite(near), above(near), INF)


def _values(node: Node, found: Spectrum) -> Rectangle:
    """The same for each eigenvalue of a node `[..., n]`."""
    wild = found.wild[..., None]
    parts = []
    for low, high in (found.real, found.imag):
        ends = (np.where(wild, s * INF, e[..., None]) for s, e in ((-1, low), (1, high)))
        low, high = (np.broadcast_to(e, (*wild.shape[:-1], int(node.shape[-1]))) for e in ends)
        bad = where_nan(np.broadcast_to(wild, low.shape))
        parts.append(rounded(low, high, node.dtype, bad))
    return Rectangle(*parts)


@rule(Eigvals)
def eigvals(node: Node, a: Value) -> Value:
    return _values(node, spectrum(a, node))


@rule(Eig)
def eig(node: Node, a: Value) -> Value:
    """Eigenvalues are in LAPACK's order, which a region leaves open; vectors have length 1."""
    found = spectrum(a, node)
    size = np.full(tuple(map(int, node.shape)), 1 + BACKWARD * node.shape[-1] * unit(node))  # type: ignore[operator]
    vectors = within(node, size, found.wild[..., None, None])
    parts = []
    for part, values in zip(vectors, _values(node, found), strict=True):
        low, high = np.array(part.lower), np.array(part.upper)
        low[..., 0, :], high[..., 0, :] = values.lower, values.upper
        parts.append(Interval(low, high, part.nan))
    return Rectangle(*parts)


# -- functions of matrices ------------------------------------------------------------------------


@rule(Expm)
def expm(node: Node, a: Value) -> Value:
    own = ball_of(a)
    n = max(own.mid.shape[-1], 1)
    f = node.prim.reference
    with np.errstate(all="ignore"):
        bad = own.wild | ~(row_sums(np.abs(own.mid) + own.rad) < 300)
        keep = ~bad[..., None, None]
        mid, rad = np.where(keep, own.mid, 0.0), np.where(keep, own.rad, 0.0)
        size = f(np.abs(mid) + rad)
        far = size - f(np.abs(mid))
        error = BACKWARD * n * (unit(node) + 2.0**-50) * (1 + row_sums(np.abs(mid) + rad))
        error = error * row_sums(size)
        y = f(mid)
    return around(node, y, np.maximum(far, 0) + error[..., None, None] * 2, bad[..., None, None])


def _columns_of(a: Ball) -> Any:
    with np.errstate(all="ignore"):
        return np.sqrt(((np.abs(a.mid) + a.rad) ** 2).sum(axis=-2)) * (1 + 1e-12)


@rule(Cofactor)
def cofactor(node: Node, a: Value) -> Value:
    """By Hadamard's inequality for minors; of numbers it is 1."""
    own = ball_of(a)
    lengths = _columns_of(own)
    n = lengths.shape[-1]
    others = np.where(np.eye(n) > 0, 1.0, lengths[..., None, :])
    size = np.prod(others, axis=-1)[..., None, :] * (1 + BACKWARD * 8 * max(n, 1) ** 2 * unit(node))
    low = np.prod(lengths, axis=-1)[..., None, None]
    # Small singular values have relative errors: those of the largest, for one of them.
    error = (
        BACKWARD
        * 8
        * max(n, 1) ** 2
        * unit(node)
        * lengths.max(axis=-1, initial=0.0) ** max(n - 1, 0)
    )
    return within(node, size + error[..., None, None] + 0 * low, own.wild[..., None, None])


@rule(CofactorSlope)
def cofactor_slope(node: Node, a: Value, t: Value) -> Value:
    """The sum of second minors, each by Hadamard's inequality, times elements of t."""
    own, along = ball_of(a), ball_of(t)
    n = own.mid.shape[-1]
    most = np.maximum(_columns_of(own).max(axis=-1, initial=0.0), 0.0)
    with np.errstate(all="ignore"):
        total = (np.abs(along.mid) + along.rad).sum(axis=(-2, -1))
        size = most ** max(n - 2, 0) * total * (1 + BACKWARD * 64 * max(n, 1) ** 3 * unit(node))
    return within(node, size[..., None, None], (own.wild | along.wild)[..., None, None])


@rule(LeastFactors)
def least_factors(node: Node, x: Value, limit: Value) -> Value:
    """Either factors or a pseudo-inverse, which backends tell apart by NaN: no bounds."""
    return anything(node.type)


@rule(LeastSquares)
def least_squares(node: Node, x: Value, factors: Value, b: Value) -> Value:
    """By the equations of all unknowns, `[[I, x], [x^H, 0]]`, where x has full rank for sure; as
    singular values may count as zero, of others nothing is known."""
    own, right = ball_of(x), ball_of(b)
    m, n = own.mid.shape[-2:]
    turned = Ball(np.swapaxes(own.mid, -1, -2).conj(), np.swapaxes(own.rad, -1, -2), own.wild)
    stack = own.mid.shape[:-2]
    one = np.broadcast_to(np.eye(m), (*stack, m, m))
    none = np.zeros((*stack, n, n))

    def block(a: Any, b: Any, c: Any, d: Any) -> Any:
        return np.concatenate(
            [np.concatenate([a, b], axis=-1), np.concatenate([c, d], axis=-1)], axis=-2
        )

    whole = Ball(
        block(one, own.mid, turned.mid, none),
        block(np.zeros(one.shape), own.rad, turned.rad, none),
        own.wild,
    )
    adjoint = node.prim.adjoint  # type: ignore[attr-defined]
    zeros = np.zeros((*stack, m if adjoint else n, right.mid.shape[-1]))
    joined = [
        np.concatenate([zeros, v] if adjoint else [v, zeros], axis=-2)
        for v in (right.mid, right.rad)
    ]
    both = Ball(joined[0], joined[1], right.wild)
    y, radius, bad = solved(whole, pad_rows(whole, node), both)
    # What counts as zero is decided by a limit below which a singular value is not by far.
    with np.errstate(all="ignore"):
        s = np.linalg.svd(np.where(own.wild[..., None, None], 0, own.mid), compute_uv=False)
        norm = frobenius(own.rad) + BACKWARD * m * unit(node) * frobenius(own.mid)
        least, most = s.min(axis=-1, initial=INF) - norm, s.max(axis=-1, initial=0.0) + norm
        bad = bad | ~(least > 1e-2 * most)
    at = slice(0, m) if adjoint else slice(m, None)
    return around(node, y[..., at, :], radius[..., at, :], bad[..., None, None])
