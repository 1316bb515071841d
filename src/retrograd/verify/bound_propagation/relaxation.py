"""Linear relaxations of functions of one variable: lines below and above them on intervals.

`f(x) >= k x + b` for all `x` in `[lo, hi]`. Whatever slope `k` is chosen, the bias is found with
the slope as it was rounded, and moved outward by more than the rounding of its own computation, so
the line holds in exact arithmetic. Where no finite line is found, there is the constant.

- Convex functions lie above each tangent and below their chord.
- Of a function that is convex up to an inflection and concave after it (tanh, sigmoid, erf) the
  best line above goes through the left end and touches the concave part. The point of tangency is
  found by bisection, from the side on which the line is above. Lines below, and functions that are
  concave first, are reflections.
- Any function with `|f''| <= M` is sampled: between points at a distance h it leaves the polygon
  through them by `M h**2 / 8` at most. The slope is that of the edge of the convex hull over the
  middle, which gives the least area.

Zhang et al., "Efficient Neural Network Robustness Certification with General Activation Functions"
(CROWN), 2018; Xu et al., "Automatic Perturbation Analysis for Scalable Certified Robustness", 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[[Any], Any]
EPS = 2.0**-52
ROUNDINGS = 64  # of a line: each function within eight units in the last place, and some sums
STEPS = 40  # of a bisection
PIECES = 64  # of a sampled interval
TINY = 2.0**-1000  # what underflow may cost
LOST = 2.0**-1060  # what of a slope it may cost


class Line(NamedTuple):
    """`slope * x + bias`."""

    slope: Array
    bias: Array

    def at(self, x: Any) -> Array:
        return np.asarray(self.slope * x + self.bias)


class BoundingLines(NamedTuple):
    """Lines below and above a function. Each holds, and so does any mean of them; the first is
    taken where none is asked for, the others are what alpha-CROWN may mix into it."""

    lower: tuple[Line, ...]
    upper: tuple[Line, ...]

    def reflected(self) -> BoundingLines:
        """Those of `-f`, of those of `f`."""
        return BoundingLines(_negated(self.upper), _negated(self.lower))

    def within(self, low: Any, high: Any) -> BoundingLines:
        """With constants in the place of lines that are not finite."""
        return BoundingLines(
            tuple(_finite(line, low) for line in self.lower),
            tuple(_finite(line, high) for line in self.upper),
        )


def _negated(lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(Line(-line.slope, -line.bias) for line in lines)


def _finite(line: Line, constant: Any) -> Line:
    ok = np.isfinite(line.slope) & np.isfinite(line.bias)
    return Line(np.where(ok, line.slope, 0.0), np.where(ok, line.bias, constant))


def _margin(lo: Any, hi: Any, slope: Any, *values: Any) -> Array:
    """More than what a line through values of this size is off by rounding."""
    reach = np.maximum(np.abs(lo), np.abs(hi))
    size = np.abs(slope) * reach
    for y in values:
        size = np.maximum(size, np.abs(y))
    return np.asarray(ROUNDINGS * EPS * size + TINY + LOST * reach)


def middle(lo: Array, hi: Array) -> Array:
    """A point inside, the middle of a finite interval."""
    low, high = np.isfinite(lo), np.isfinite(hi)
    inner = np.where(low, lo + 1.0, np.where(high, hi - 1.0, 0.0))
    with np.errstate(all="ignore"):
        mid = np.where(low & high, lo / 2 + hi / 2, inner)
    return np.clip(mid, lo, hi)


def chord(f: Function, lo: Array, hi: Array) -> Line:
    """The line through both ends, raised to lie above them."""
    with np.errstate(all="ignore"):
        y, z = f(lo), f(hi)
        slope = np.where(hi > lo, (z - y) / np.where(hi > lo, hi - lo, 1.0), 0.0)
        bias = np.maximum(y - slope * lo, z - slope * hi) + _margin(lo, hi, slope, y, z)
    return Line(slope, bias)


def tangent(f: Function, df: Function, d: Array, lo: Array, hi: Array, side: int) -> Line:
    """The tangent at `d`, moved down (`side` -1) or up (1)."""
    with np.errstate(all="ignore"):
        slope, y = df(d), f(d)
        bias = y - slope * d + side * _margin(lo, hi, slope, y)
    return Line(slope, bias)


def convex(
    f: Function, df: Function, lo: Array, hi: Array, at: Array | None = None
) -> BoundingLines:
    """Tangents below, at the middle (or `at`) and the ends; the chord above."""
    d = middle(lo, hi) if at is None else np.clip(at, lo, hi)
    below = tuple(tangent(f, df, x, lo, hi, -1) for x in (d, lo, hi))
    return BoundingLines(below, (chord(f, lo, hi),))


def negative(f: Function) -> Function:
    return lambda x: -f(x)


def concave(f: Function, df: Function, lo: Array, hi: Array) -> BoundingLines:
    """The chord below, tangents above."""
    return convex(negative(f), negative(df), lo, hi).reflected()


def above_convex_concave(
    f: Function, df: Function, lo: Array, hi: Array, inflection: float
) -> tuple[Line, ...]:
    """Lines above a function that is convex up to an inflection and concave after it.

    The tangent at `d` on the concave side is above the function on the whole interval once it is
    so at the left end, `f(d) - f'(d) (d - lo) >= f(lo)`, which is monotone in `d`. Where it is
    not so at the right end, the chord is above.
    """
    with np.errstate(all="ignore"):
        start = f(lo)

        def holds(d: Array) -> Array:
            return np.asarray(f(d) - df(d) * (d - lo) >= start)

        low = np.clip(np.maximum(lo, inflection), lo, hi)
        is_concave = lo >= inflection
        has_tangent = (hi > inflection) & (is_concave | holds(hi))
        high = hi + np.zeros_like(low)
        far = np.where(np.isfinite(high), high, np.sign(high) * 1e300)
        span = np.where(np.isfinite(hi), hi, np.maximum(low + 1.0, np.abs(low) * 2))
        high = np.where(holds(span), span, far)
        for _ in range(STEPS):
            mid = low / 2 + high / 2
            ok = holds(mid)
            low, high = np.where(ok, low, mid), np.where(ok, mid, high)
        nearest = np.where(is_concave, middle(lo, hi), high)
        first = tangent(f, df, nearest, lo, hi, 1)
        last = tangent(f, df, np.where(has_tangent, hi, nearest), lo, hi, 1)
        inner = tangent(f, df, np.where(is_concave, lo, high), lo, hi, 1)
        through = chord(f, lo, hi)
    return tuple(chosen(has_tangent, line, through) for line in (first, last, inner))


def chosen(mask: Array, a: Line, b: Line) -> Line:
    return Line(np.where(mask, a.slope, b.slope), np.where(mask, a.bias, b.bias))


def convex_concave(
    f: Function, df: Function, lo: Array, hi: Array, inflection: float = 0.0
) -> BoundingLines:
    """Lines of a function that is convex up to an inflection and concave after it."""
    above = above_convex_concave(f, df, lo, hi, inflection)
    mirrored = above_convex_concave(lambda x: -f(-x), lambda x: df(-x), -hi, -lo, -inflection)
    return BoundingLines(tuple(Line(line.slope, -line.bias) for line in mirrored), above)


def concave_convex(
    f: Function, df: Function, lo: Array, hi: Array, inflection: float = 0.0
) -> BoundingLines:
    """Lines of a function that is concave up to an inflection and convex after it."""
    return convex_concave(negative(f), negative(df), lo, hi, inflection).reflected()


def sampled(f: Function, curvature: Any, lo: Array, hi: Array) -> BoundingLines:
    """Lines of a function with `|f''| <= curvature` on the interval, from its values at points."""
    with np.errstate(all="ignore"):
        width = hi - lo
        share = np.linspace(0.0, 1.0, PIECES + 1).reshape(-1, *[1] * lo.ndim)
        x = np.minimum(lo + share * width, hi)
        y = f(x)
        step = width / PIECES * (1 + 1e-9)
        slack = curvature * step * step / 8
        upper = _over(x, y, slack, lo, hi)
        lower = _over(x, -y, slack, lo, hi)
    return BoundingLines(_negated(lower), upper)


def _over(x: Array, y: Array, slack: Any, lo: Array, hi: Array) -> tuple[Line, ...]:
    """Lines above a polygon: with the slope of the edge of its hull over the middle, of the chord,
    and flat."""
    stride = PIECES // 16
    left, right = x[: PIECES // 2 : stride], x[PIECES // 2 + stride :: stride]
    p, q = y[: PIECES // 2 : stride], y[PIECES // 2 + stride :: stride]
    m = x[PIECES // 2]
    gap = right[None] - left[:, None]
    at_middle = (p[:, None] * (right[None] - m) + q[None] * (m - left[:, None])) / gap
    table = at_middle.reshape(-1, *m.shape)
    edge = np.argmax(np.where(np.isnan(table), -np.inf, table), axis=0)[None]
    slopes = ((q[None] - p[:, None]) / gap).reshape(table.shape)
    best = np.take_along_axis(slopes, edge, 0)[0]
    found = []
    for slope in (best, (y[-1] - y[0]) / (hi - lo), np.zeros_like(m)):
        k = np.where(np.isfinite(slope), slope, 0.0)
        top = np.max(y - k * x, axis=0)
        found.append(Line(k, top + slack + _margin(lo, hi, k, np.max(np.abs(y), axis=0))))
    return tuple(found)


def relu(lo: Array, hi: Array) -> BoundingLines:
    """`max(x, 0)`: below it 0 and x, the first of which leaves less area; above it the chord.

    Exact where the sign is known.
    """
    with np.errstate(all="ignore"):
        off, on = hi <= 0, lo >= 0
        loose = ~(off | on)
        share = np.where(loose, hi / np.where(loose, hi - lo, 1.0), on * 1.0)
        bias = np.where(loose, np.maximum(-share * lo, hi - share * hi), 0.0)
        bias = np.where(loose, bias + _margin(lo, hi, share, hi), bias)
        first = np.where(loose, (hi > -lo) * 1.0, on * 1.0)
        other = np.where(loose, 1.0 - first, first)
    zero = np.zeros_like(lo)
    return BoundingLines((Line(first, zero), Line(other, zero)), (Line(share, bias),))


def steps(lo: Array, hi: Array, low: Array, high: Array, down: float, up: float) -> BoundingLines:
    """Of `x - down <= f(x) <= x + up`: such lines, or constants where these leave less."""
    one = np.ones_like(lo)
    m = middle(lo, hi)
    margin = _margin(lo, hi, 1.0)
    below, above = Line(one, -down - margin), Line(one, up + margin)
    floor, ceiling = Line(0 * one, low + 0 * one), Line(0 * one, high + 0 * one)
    return BoundingLines(
        (chosen(below.at(m) > low, below, floor), floor),
        (chosen(above.at(m) < high, above, ceiling), ceiling),
    )


def better(lines: BoundingLines, lo: Array, hi: Array, low: Array, high: Array) -> BoundingLines:
    """With the constants in the first place where these leave the smaller area."""
    m = middle(lo, hi)
    zero = np.zeros_like(m)
    with np.errstate(all="ignore"):
        floor, ceiling = Line(zero, low + zero), Line(zero, high + zero)
        first, top = lines.lower[0], lines.upper[0]
        use_floor = (low > -np.inf) & (first.at(m) < low)
        use_ceiling = (high < np.inf) & (top.at(m) > high)
    return BoundingLines(
        (chosen(use_floor, floor, first), *lines.lower[1:], _finite_or(floor, first)),
        (chosen(use_ceiling, ceiling, top), *lines.upper[1:], _finite_or(ceiling, top)),
    )


def _finite_or(line: Line, other: Line) -> Line:
    return chosen(np.isfinite(line.bias), line, other)
