"""Functions of complex numbers, on rectangles.

Backends compute a complex number with an error in the size of all of it, not of each part, so both
parts get an absolute error of `NORMWISE` units of the largest magnitude. Products and what is made
of them go by real parts; an analytic function f lies within `sup |f'|` times the distance from its
value in the middle, where the rectangle does not meet a branch cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import DType, Node, float64
from retrograd.ops.fft import Fft
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    Rectangle,
    anything,
    either,
    format_of,
    where_nan,
    widened,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import holds, product, square
from retrograd.verify.bound_propagation.rules.complex_numbers import COMPLEX
from retrograd.verify.bound_propagation.rules.elementary_functions import may_hold

NORMWISE = 64  # units in the last place of the magnitude
PI = math.pi


def entered_as(*names: str) -> Callable[..., Any]:
    def enter(f: Any) -> Any:
        for name in names:
            COMPLEX[name] = f
        return f

    return enter


def magnitude(z: Rectangle) -> Any:
    """The largest magnitude."""
    with np.errstate(all="ignore"):
        return np.hypot(z.real.size, z.imag.size)


def least_magnitude(z: Rectangle, x: float = 0.0, y: float = 0.0) -> Any:
    """The least distance from a point."""
    parts = [
        np.maximum(np.maximum(p.lower - at, at - p.upper), 0.0)
        for p, at in zip(z, (x, y), strict=True)
    ]
    return np.hypot(*parts)


def nan_of(*given: Rectangle) -> Any:
    return either(*[p.nan for z in given for p in z])


def finished(
    real: tuple[Any, Any], imag: tuple[Any, Any], dtype: DType, nan: Any, units: Any = NORMWISE
) -> Rectangle:
    """Both parts, with an error in the size of all; of what may be infinite nothing is known."""
    size = np.hypot(*[np.maximum(np.abs(low), np.abs(high)) for low, high in (real, imag)])
    wild = ~np.isfinite(size) | (size > format_of(dtype).most / 8)
    slack = np.where(wild, 0.0, units * format_of(dtype).eps * np.where(wild, 0.0, size))
    nan = either(nan, where_nan(wild))
    parts = []
    for low, high in (real, imag):
        found = widened(np.where(wild, -INF, low), np.where(wild, INF, high), dtype, 4, nan, slack)
        parts.append(found)
    return Rectangle(*parts)


def ends(x: Interval) -> tuple[Any, Any]:
    return x.lower, x.upper


def plus(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        return np.nextafter(a[0] + b[0], -INF), np.nextafter(a[1] + b[1], INF)


def minus(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    return plus(a, (-b[1], -b[0]))


def times(a: Interval, b: Interval, dtype: DType) -> tuple[Any, Any]:
    return ends(product(Interval(*a[:2]), Interval(*b[:2]), dtype))


def multiplied(a: Rectangle, b: Rectangle, dtype: DType, same: bool = False) -> Rectangle:
    nan = nan_of(a, b)
    if same:
        real = minus(ends(square(a.real, dtype)), ends(square(a.imag, dtype)))
        low, high = times(a.real, a.imag, dtype)
        return finished(real, (2 * low, 2 * high), dtype, nan, 4)
    real = minus(times(a.real, b.real, dtype), times(a.imag, b.imag, dtype))
    imag = plus(times(a.real, b.imag, dtype), times(a.imag, b.real, dtype))
    zero = (magnitude(a) == 0) | (magnitude(b) == 0)
    # Cancellation loses what the products have, so the error is in their size.
    size = magnitude(a) * magnitude(b)
    units = np.where(size > 0, 4.0, 0.0)
    found = finished(real, imag, dtype, nan, 0.0)
    with np.errstate(all="ignore"):
        slack = np.where(zero | ~np.isfinite(size), 0.0, units * format_of(dtype).eps * size)
    return Rectangle(*[Interval(p.lower - slack, p.upper + slack, p.nan) for p in found])


@entered_as("mul")
def mul(node: Node, a: Rectangle, b: Rectangle) -> Rectangle:
    """All three products: a zero meets nothing infinite, as of that nothing is known."""
    return multiplied(a, b, node.dtype, node.inputs[0] is node.inputs[1])


def inverted(z: Rectangle, dtype: DType) -> Rectangle:
    """`conj(z) / |z|^2`, with one division for each part."""
    kind = format_of(dtype)
    least, most = least_magnitude(z), magnitude(z)
    wild = ~(least**2 > 4 * kind.tiny) | ~(most**2 < kind.most / 4)
    low, high = np.where(wild, 1.0, least**2), np.where(wild, 1.0, most**2)
    parts = []
    for part, sign in ((z.real, 1), (z.imag, -1)):
        a, b = (part.lower, part.upper) if sign > 0 else (-part.upper, -part.lower)
        a, b = np.where(wild, -1.0, a), np.where(wild, 1.0, b)
        parts.append((np.where(a < 0, a / low, a / high), np.where(b > 0, b / low, b / high)))
    found = finished(parts[0], parts[1], dtype, either(nan_of(z), where_nan(wild)), 8)
    return Rectangle(
        *[
            Interval(np.where(wild, -INF, p.lower), np.where(wild, INF, p.upper), p.nan)
            for p in found
        ]
    )


@entered_as("reciprocal")
def reciprocal(node: Node, z: Rectangle) -> Rectangle:
    return inverted(z, node.dtype)


@entered_as("div")
def div(node: Node, a: Rectangle, b: Rectangle) -> Rectangle:
    inverse = inverted(b, node.dtype)
    if node.inputs[0] is node.inputs[1]:
        one, zero = np.ones(a.shape), np.zeros(a.shape)
        nan = inverse.real.nan
        return finished((one, one), (zero, zero), node.dtype, nan)
    found = multiplied(a, inverse, node.dtype)
    with np.errstate(all="ignore"):
        size = magnitude(a) * magnitude(inverse)
        slack = np.where(np.isfinite(size), NORMWISE * format_of(node.dtype).eps * size, INF)
    nan = either(nan_of(a), inverse.real.nan, found.real.nan)
    low_high = [(p.lower - slack, p.upper + slack) for p in found]
    return Rectangle(
        *[
            Interval(np.where(np.isnan(a), -INF, a), np.where(np.isnan(b), INF, b), nan)
            for a, b in low_high
        ]
    )


# -- functions by real parts ----------------------------------------------------------------------


def monotone(f: Any, x: Interval) -> Interval:
    """A growing function of float64, a few units wider."""
    with np.errstate(all="ignore"):
        low, high = f(x.lower), f(x.upper)
        return Interval(low - 1e-15 * np.abs(low), high + 1e-15 * np.abs(high))


def cosh(x: Interval) -> Interval:
    least = np.where(holds(x, 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper)))
    return monotone(np.cosh, Interval(least, x.size))


def wave(x: Interval, top: float) -> Interval:
    """A sine with its first maximum at `top`, in float64."""
    f = np.sin if top else np.cos
    with np.errstate(all="ignore"):
        a, b = f(x.lower), f(x.upper)
    low, high = np.minimum(a, b) - 1e-15, np.maximum(a, b) + 1e-15
    high = np.where(may_hold(x, top, 2 * PI) | np.isnan(high), 1.0, high)
    return Interval(np.where(may_hold(x, top + PI, 2 * PI) | np.isnan(low), -1.0, low), high)


def pair(node: Node, nan: Any, *parts: tuple[Interval, Interval, int]) -> Rectangle:
    """Both parts as products of real functions, each with a sign."""
    real, imag = (
        (low, high) if sign > 0 else (-high, -low)
        for a, b, sign in parts
        for low, high in [times(a, b, float64)]
    )
    return finished(real, imag, node.dtype, nan)


@entered_as("exp")
def exp(node: Node, z: Rectangle) -> Rectangle:
    e = monotone(np.exp, z.real)
    return pair(node, nan_of(z), (e, wave(z.imag, 0.0), 1), (e, wave(z.imag, PI / 2), 1))


def scaled(z: Rectangle, by: float) -> Rectangle:
    return Rectangle(*[Interval(p.lower * by, p.upper * by, p.nan) for p in z])


def grown(z: Rectangle, by: Any) -> Rectangle:
    by = np.where(np.isfinite(by), by, INF)
    found = [(p.lower - by, p.upper + by) for p in z]
    return Rectangle(
        *[
            Interval(np.where(np.isnan(a), -INF, a), np.where(np.isnan(b), INF, b), p.nan)
            for (a, b), p in zip(found, z, strict=True)
        ]
    )


@entered_as("exp2")
def exp2(node: Node, z: Rectangle) -> Rectangle:
    found = exp(node, scaled(z, math.log(2)))
    with np.errstate(all="ignore"):
        return grown(found, 4 * format_of(node.dtype).eps * magnitude(z) * magnitude(found))


@entered_as("expm1")
def expm1(node: Node, z: Rectangle) -> Rectangle:
    found = exp(node, z)
    less = Rectangle(Interval(found.real.lower - 1, found.real.upper - 1, found.real.nan), found[1])
    return grown(less, NORMWISE * format_of(node.dtype).eps)


def _log(z: Rectangle, dtype: DType, by: float) -> Rectangle:
    with np.errstate(all="ignore"):
        real = np.log(least_magnitude(z)) * by, np.log(magnitude(z)) * by
        angles = [np.arctan2(y, x) for y in ends(z.imag) for x in ends(z.real)]
    around = holds(z.imag, 0) & (z.real.lower <= 0)
    low = np.where(around, -PI, np.minimum.reduce(angles)) * by
    high = np.where(around, PI, np.maximum.reduce(angles)) * by
    slack = NORMWISE * format_of(dtype).eps
    nan = either(nan_of(z), where_nan(~np.isfinite(magnitude(z))))
    large = np.where(np.isfinite(real[1]), np.abs(real[1]), 0) + np.where(
        np.isfinite(real[0]), np.abs(real[0]), 0
    )
    wide = slack * (1 + large)
    return Rectangle(
        Interval(real[0] - wide, real[1] + wide, nan),
        Interval(low - 4 * slack, high + 4 * slack, nan),
    )


@entered_as("log")
def log(node: Node, z: Rectangle) -> Rectangle:
    return _log(z, node.dtype, 1.0)


COMPLEX["log2"] = lambda node, z: _log(z, node.dtype, 1 / math.log(2))
COMPLEX["log10"] = lambda node, z: _log(z, node.dtype, 1 / math.log(10))


@entered_as("log1p")
def log1p(node: Node, z: Rectangle) -> Rectangle:
    low, high = z.real.lower + 1, z.real.upper + 1
    moved = Interval(low - 2e-16 * np.abs(low), high + 2e-16 * np.abs(high), z.real.nan)
    return _log(Rectangle(moved, z.imag), node.dtype, 1.0)


@entered_as("sqrt")
def sqrt(node: Node, z: Rectangle) -> Rectangle:
    """The real part grows with both x and |y|, the imaginary one with y, and away from 0 as x
    falls."""
    x, y = z
    size = np.where(holds(y, 0), 0.0, np.minimum(np.abs(y.lower), np.abs(y.upper)))

    def root(a: Any, b: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.sqrt(np.asarray(a, np.float64) + 1j * np.asarray(np.abs(b), np.float64))

    real = root(x.lower, size).real, root(x.upper, y.size).real
    # The sign of a zero tells on which side of the cut it is.
    high = np.where(y.upper >= 0, root(x.lower, y.upper).imag, -root(x.upper, y.upper).imag)
    low = np.where(y.lower <= 0, -root(x.lower, y.lower).imag, root(x.upper, y.lower).imag)
    return finished(real, (low, high), node.dtype, nan_of(z))


@entered_as("sin")
def sin(node: Node, z: Rectangle) -> Rectangle:
    s, c = wave(z.real, PI / 2), wave(z.real, 0.0)
    return pair(node, nan_of(z), (s, cosh(z.imag), 1), (c, monotone(np.sinh, z.imag), 1))


@entered_as("cos")
def cos(node: Node, z: Rectangle) -> Rectangle:
    s, c = wave(z.real, PI / 2), wave(z.real, 0.0)
    return pair(node, nan_of(z), (c, cosh(z.imag), 1), (s, monotone(np.sinh, z.imag), -1))


@entered_as("sinh")
def sinh(node: Node, z: Rectangle) -> Rectangle:
    s, c = wave(z.imag, PI / 2), wave(z.imag, 0.0)
    return pair(node, nan_of(z), (monotone(np.sinh, z.real), c, 1), (cosh(z.real), s, 1))


@entered_as("cosh")
def cosh_(node: Node, z: Rectangle) -> Rectangle:
    s, c = wave(z.imag, PI / 2), wave(z.imag, 0.0)
    return pair(node, nan_of(z), (cosh(z.real), c, 1), (monotone(np.sinh, z.real), s, 1))


# -- functions by their slope ---------------------------------------------------------------------


def analytic(
    slope: Callable[[Rectangle], Any], cut: Callable[[Rectangle], Any], bound: Any
) -> Callable[[Node, Rectangle], Rectangle]:
    """Around the value in the middle; where a cut is met, within a greatest magnitude."""

    def of(node: Node, z: Rectangle) -> Rectangle:
        middle = z.real.mid + 1j * z.imag.mid
        with np.errstate(all="ignore"):
            w = np.asarray(node.prim.reference(np.asarray(middle)))
            radius = np.hypot(z.real.upper - z.real.mid, z.imag.upper - z.imag.mid) * (1 + 1e-15)
            radius = np.where(radius == 0, 0.0, radius * slope(z))
            most = bound(z)
            wild = cut(z) | ~np.isfinite(radius) | ~np.isfinite(w)
            units = NORMWISE * format_of(node.dtype).eps * (1 + np.abs(w))
        nan = either(nan_of(z), where_nan(wild & ~np.isfinite(most)))
        parts = []
        for part in (w.real, w.imag):
            low = np.where(wild, -most, part - radius - units)
            high = np.where(wild, most, part + radius + units)
            parts.append(widened(low, high, node.dtype, 4, nan))
        return Rectangle(*parts)

    return of


def beside(z: Rectangle, x: float, y: float) -> Any:
    """`|z - p| |z + p|`, at least."""
    return least_magnitude(z, x, y) * least_magnitude(z, -x, -y)


def on_real_axis(z: Rectangle) -> Any:
    """Whether the real axis beyond -1 or 1 is met."""
    return holds(z.imag, 0) & ((z.real.lower <= -1) | (z.real.upper >= 1))


def on_imaginary_axis(z: Rectangle) -> Any:
    return holds(z.real, 0) & ((z.imag.lower <= -1) | (z.imag.upper >= 1))


def logarithmic(z: Rectangle) -> Any:
    """Of inverse sines and cosines the magnitude is no more than this."""
    return 1.01 * (2 * PI + np.log(2 * magnitude(z) + 2))


def unbounded(z: Rectangle) -> Any:
    return np.full(z.shape, INF)


def never(z: Rectangle) -> Any:
    return np.zeros(z.shape, bool)


def least_square(x: Interval) -> Any:
    return np.where(holds(x, 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper))) ** 2


def _of_tangent(turned: bool) -> Callable[[Rectangle], Any]:
    """`1 / |cos z|^2`, where that is `cos^2 x + sinh^2 y`."""

    def slope(z: Rectangle) -> Any:
        x, y = (z.imag, z.real) if turned else z
        total = least_square(wave(x, 0.0)) + least_square(monotone(np.sinh, y))
        return (1 + 1e-12) / total

    return slope


COMPLEX["tan"] = analytic(_of_tangent(False), never, unbounded)
COMPLEX["tanh"] = analytic(_of_tangent(True), never, unbounded)
COMPLEX["asin"] = analytic(lambda z: 1 / np.sqrt(beside(z, 1, 0)), on_real_axis, logarithmic)
COMPLEX["acos"] = COMPLEX["asin"]
COMPLEX["asinh"] = analytic(lambda z: 1 / np.sqrt(beside(z, 0, 1)), on_imaginary_axis, logarithmic)
COMPLEX["acosh"] = analytic(
    lambda z: 1 / np.sqrt(beside(z, 1, 0)),
    lambda z: holds(z.imag, 0) & (z.real.lower <= 1),
    logarithmic,
)
COMPLEX["atan"] = analytic(lambda z: 1 / beside(z, 0, 1), on_imaginary_axis, unbounded)
COMPLEX["atanh"] = analytic(lambda z: 1 / beside(z, 1, 0), on_real_axis, unbounded)


# -- products of many, recurrences, Fourier transforms --------------------------------------------


def part(z: Rectangle, at: Any) -> Rectangle:
    return Rectangle(*[
        Interval(p.lower[at], p.upper[at], np.broadcast_to(p.nan, p.shape)[at]) for p in z
    ])  # fmt: skip


def _running(z: Rectangle, dtype: DType) -> list[Rectangle]:
    """Products along the first axis, in any order: the error is in the size of all factors."""
    found, size, steps = None, 1.0, []
    for t in range(z.shape[0]):
        factor = part(z, t)
        found = factor if found is None else multiplied(found, factor, dtype)
        with np.errstate(all="ignore"):
            size = size * np.maximum(magnitude(factor), 1.0)
            steps.append(grown(found, 16 * t * format_of(dtype).eps * size))
    return steps


def moved_axes(z: Rectangle, f: Callable[[Any], Any]) -> Rectangle:
    return Rectangle(*[
        Interval(f(p.lower), f(p.upper), f(np.broadcast_to(p.nan, p.shape))) for p in z
    ])  # fmt: skip


@entered_as("reduce_prod")
def reduce_prod(node: Node, z: Rectangle) -> Rectangle:
    axes = node.prim.axes  # type: ignore[attr-defined]
    kept = [i for i in range(len(z.shape)) if i not in axes]
    shape = (-1, *[z.shape[i] for i in kept])
    if math.prod(z.shape[i] for i in axes) == 0:
        one = np.ones(tuple(map(int, node.shape)))
        return Rectangle(Interval(one, one), Interval(0 * one, 0 * one))
    if 0 in z.shape:
        return anything(node.type)  # type: ignore[return-value]
    rows = moved_axes(z, lambda v: np.transpose(v, (*axes, *kept)).reshape(shape))
    return _running(rows, node.dtype)[-1]


def _along(node: Node, z: Rectangle, back: bool) -> Rectangle:
    prim: Any = node.prim

    def f(v: Any) -> Any:
        if back:
            return np.moveaxis(v[::-1] if prim.reverse else v, 0, prim.axis)
        v = np.moveaxis(v, prim.axis, 0)
        return v[::-1] if prim.reverse else v

    return moved_axes(z, f)


def _stacked(steps: list[Rectangle], like: Rectangle) -> Rectangle:
    if not steps:
        return like
    return Rectangle(*[
        Interval(*[
            np.stack([np.broadcast_to(np.asarray(s[i][k]), s.shape) for s in steps])
            for k in range(3)
        ])
        for i in range(2)
    ])  # fmt: skip


@entered_as("cumprod")
def cumprod(node: Node, z: Rectangle) -> Rectangle:
    rows = _along(node, z, False)
    return _along(node, _stacked(_running(rows, node.dtype), rows), True)


@entered_as("linear_scan")
def linear_scan(node: Node, a: Rectangle, b: Rectangle) -> Rectangle:
    factors, terms = _along(node, a, False), _along(node, b, False)
    state, size, steps = None, 0.0, []
    for t in range(terms.shape[0]):
        by, more = part(factors, t), part(terms, t)
        with np.errstate(all="ignore"):
            size = magnitude(by) * size + magnitude(more)
        if state is None:
            state = more
        else:
            moved = multiplied(state, by, node.dtype)
            real, imag = (plus(ends(moved[i]), ends(more[i])) for i in range(2))
            state = finished(real, imag, node.dtype, nan_of(moved, more), 4)
        with np.errstate(all="ignore"):
            steps.append(grown(state, 16 * t * format_of(node.dtype).eps * size))
    return _along(node, _stacked(steps, terms), True)


@rule(Fft)
def fft(node: Node, z: Rectangle) -> Rectangle:
    """Around the transform of the middle. The error of fast transforms is in the size of all that
    is transformed (Higham: "Accuracy and Stability of Numerical Algorithms", 24)."""
    prim: Any = node.prim
    n, axis = z.shape[prim.axis], prim.axis
    middle = z.real.mid + 1j * z.imag.mid
    with np.errstate(all="ignore"):
        y = prim.reference(middle)
        radii = [(p.upper - p.lower) / 2 * (1 + 1e-15) + 1e-300 * (p.upper > p.lower) for p in z]
        k = np.arange(n)
        if n <= 2048:
            angle = 2 * PI * (np.outer(k, k) % n) / n
            size = np.abs(np.cos(angle)) + 1e-12, np.abs(np.sin(angle)) + 1e-12
            same, other = (
                [np.moveaxis(np.moveaxis(r, axis, -1) @ m, -1, axis) for r in radii] for m in size
            )
            radius = same[0] + other[1], other[0] + same[1]
        else:
            total = (radii[0] + radii[1]).sum(axis=axis, keepdims=True)
            radius = total, total
        each = np.hypot(z.real.size, z.imag.size)
        norm = math.sqrt(n) * np.sqrt((each**2).sum(axis=axis, keepdims=True))
        units = 32 * (math.log2(n) + 2) * norm + 4 * min(n, 64) * each.sum(axis=axis, keepdims=True)
        slack = units * (format_of(node.dtype).eps + 2.0**-52)
        wild = ~np.isfinite(slack + 0 * each) | (norm + 0 * each > format_of(node.dtype).most / 8)
    wild = np.broadcast_to(wild.any(axis=axis, keepdims=True), z.shape)
    nans = np.any(np.broadcast_to(nan_of(z), z.shape), axis=axis, keepdims=True)
    nan = where_nan(np.broadcast_to(nans, z.shape) | wild)
    parts = []
    for value, by in zip((y.real, y.imag), radius, strict=True):
        low, high = value - by - slack, value + by + slack
        low, high = (
            np.where(wild | np.isnan(low), -INF, low),
            np.where(wild | np.isnan(high), INF, high),
        )
        parts.append(widened(low, high, node.dtype, 2, nan))
    return Rectangle(*parts)
