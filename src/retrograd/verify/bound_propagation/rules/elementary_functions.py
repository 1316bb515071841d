"""Elementary functions: monotone pieces, critical points, corners.

Ends are computed by the meaning of the op in float64 and widened by `FUNCTION` units of the dtype
that computes, far more than any backend's error where those are tested, and at least a few of
float64's own. A function of several numbers that is monotone in each has its extrema in corners.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, apply
from retrograd.ops import elementwise as el
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    accumulator,
    either,
    where_nan,
    widened,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import FUNCTION, holds
from retrograd.verify.bound_propagation.rules.complex_numbers import on_rectangles

PI = math.pi


def inside(x: Interval, least: float, most: float) -> tuple[Interval, Any]:
    """The part of an interval where a function is defined, and where it may be NaN."""
    outside = (x.lower < least) | (x.upper > most)
    low, high = np.clip(x.lower, least, most), np.clip(x.upper, least, most)
    return Interval(low, high), either(x.nan, where_nan(outside))


def value(node: Node, *arrays: Any) -> Any:
    """That of the op in float64; a warning is none of ours."""
    with np.errstate(all="ignore"):
        return np.asarray(apply(node, [np.asarray(a, np.float64) for a in arrays]))


def enclosed(node: Node, low: Any, high: Any, nan: Any, absolute: Any = 0.0) -> Interval:
    return widened(low, high, node.dtype, FUNCTION, nan, absolute)


def monotone(
    grows: bool, least: float = -INF, most: float = INF
) -> Callable[[Node, Interval], Interval]:
    """The rule of a function of one number that grows, or falls, on an interval of definition."""

    def of(node: Node, x: Interval) -> Interval:
        part, nan = inside(x, least, most)
        ends = (part.lower, part.upper) if grows else (part.upper, part.lower)
        low = value(node, ends[0])
        high = low if x.upper is x.lower else value(node, ends[1])
        return enclosed(node, low, high, nan)

    return of


def even(grows: bool) -> Callable[[Node, Interval], Interval]:
    """That of a function of the magnitude."""

    def of(node: Node, x: Interval) -> Interval:
        least = np.where(holds(x, 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper)))
        ends = (least, x.size) if grows else (x.size, least)
        return enclosed(node, value(node, ends[0]), value(node, ends[1]), x.nan)

    return of


def corners(node: Node, signs: Sequence[int], *given: Interval) -> tuple[Any, Any]:
    """The ends of a function that grows in the inputs of sign 1 and falls in those of -1."""
    low = [x.lower if s > 0 else x.upper for x, s in zip(given, signs, strict=True)]
    high = [x.upper if s > 0 else x.lower for x, s in zip(given, signs, strict=True)]
    return value(node, *low), value(node, *high)


# Where it is NaN beyond, the part where it is defined is given.
for _op, _rule in (
    (el.cbrt, monotone(True)),
    (el.log2, monotone(True, 0.0)),
    (el.log10, monotone(True, 0.0)),
    (el.erf, monotone(True)),
    (el.erfc, monotone(False)),
    (el.sigmoid, monotone(True)),
    (el.softplus, monotone(True)),
    (el.sech2, even(False)),
):
    rule(_op)(on_rectangles(_op.name)(_rule))

for _op, _rule in (
    (el.exp, monotone(True)),
    (el.exp2, monotone(True)),
    (el.expm1, monotone(True)),
    (el.log, monotone(True, 0.0)),
    (el.log1p, monotone(True, -1.0)),
    (el.asin, monotone(True, -1.0, 1.0)),
    (el.acos, monotone(False, -1.0, 1.0)),
    (el.atan, monotone(True)),
    (el.sinh, monotone(True)),
    (el.cosh, even(True)),
    (el.tanh, monotone(True)),
    (el.asinh, monotone(True)),
    (el.acosh, monotone(True, 1.0)),
    (el.atanh, monotone(True, -1.0, 1.0)),
):
    rule(_op)(on_rectangles(_op.name)(_rule))


# -- trigonometric functions ----------------------------------------------------------------------


def may_hold(x: Interval, first: float, period: float) -> Any:
    """Whether an interval may hold one of `first + k period`: what is close counts as held."""
    with np.errstate(all="ignore"):
        slack = 1e-12 * (1 + x.size)
        found = np.floor((x.upper + slack - first) / period) > np.floor(
            (x.lower - slack - first) / period
        )
    return found | ~(x.size < 1e9)


def wave(node: Node, x: Interval, top: float) -> Interval:
    """A sine with its first maximum at `top`."""
    nan = either(x.nan, where_nan(~np.isfinite(x.size)))
    with np.errstate(all="ignore"):
        ends = value(node, x.lower), value(node, x.upper)
    low, high = np.fmin(*ends), np.fmax(*ends)
    high = np.where(may_hold(x, top, 2 * PI) & (x.lower != x.upper), 1.0, high)
    low = np.where(may_hold(x, top + PI, 2 * PI) & (x.lower != x.upper), -1.0, low)
    low, high = np.where(np.isnan(low), -1.0, low), np.where(np.isnan(high), 1.0, high)
    # Where an argument is huge, some backends' reduction of it loses digits.
    far = np.where(x.size > 1e4, accumulator(node.dtype).eps * np.minimum(x.size, 1e300), 0.0)
    return enclosed(node, low, high, nan, np.minimum(far, 2.0))


@rule(el.sin)
@on_rectangles("sin")
def sin(node: Node, x: Interval) -> Interval:
    return wave(node, x, PI / 2)


@rule(el.cos)
@on_rectangles("cos")
def cos(node: Node, x: Interval) -> Interval:
    return wave(node, x, 0.0)


@rule(el.tan)
@on_rectangles("tan")
def tan(node: Node, x: Interval) -> Interval:
    nan = either(x.nan, where_nan(~np.isfinite(x.size)))
    pole = may_hold(x, PI / 2, PI) & ((x.lower != x.upper) | ~(x.size < 1e9))
    low, high = (np.where(pole | np.isnan(v), e, v) for v, e in (
        (value(node, x.lower), -INF), (value(node, x.upper), INF)
    ))  # fmt: skip
    return enclosed(node, low, high, nan)


@rule(el.atan2)
def atan2(node: Node, y: Interval, x: Interval) -> Interval:
    """Angles of a rectangle: those of its corners, unless it meets the branch or the origin."""
    ends = [value(node, a, b) for a in (y.lower, y.upper) for b in (x.lower, x.upper)]
    around = holds(y, 0) & (x.lower <= 0)
    low = np.where(around, -PI, np.minimum.reduce(ends))
    high = np.where(around, PI, np.maximum.reduce(ends))
    return enclosed(node, low, high, either(y.nan, x.nan))


# -- functions of two numbers ---------------------------------------------------------------------


@rule(el.hypot)
def hypot(node: Node, a: Interval, b: Interval) -> Interval:
    least = [
        np.where(holds(x, 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper))) for x in (a, b)
    ]
    nan = either(a.nan, b.nan)
    return enclosed(node, value(node, *least), value(node, a.size, b.size), nan)


@rule(el.logaddexp)
def logaddexp(node: Node, a: Interval, b: Interval) -> Interval:
    low, high = corners(node, (1, 1), a, b)
    size = np.maximum(a.size, b.size)
    unit = accumulator(node.dtype).eps
    slack = FUNCTION * unit * (1 + np.where(np.isfinite(size), size, 0))
    return enclosed(node, low, high, either(a.nan, b.nan), slack)
