"""Planes below and above what is not linear, one rule for each op.

A rule is `rule(node, xs, y)`, with the intervals of the inputs and of the node itself: it gives
planes, in some of the inputs, between which the exact result lies for all values of these. An op
without a rule is bounded by its interval. So is an element for which a rule finds nothing finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.ir import Node
from retrograd.ir.registry import entering
from retrograd.ops import elementwise as el
from retrograd.ops.numerics import arithmetic as num
from retrograd.ops.reduce import LogSumExp, ReduceMax
from retrograd.verify.bound_propagation import relaxation as rx
from retrograd.verify.bound_propagation.interval import Interval

Array = np.ndarray[Any, Any]


class Plane(NamedTuple):
    """`sum of slopes[i] * x[i] + bias`."""

    slopes: tuple[Array, ...]
    bias: Array


class Relaxed(NamedTuple):
    """Planes below and above; any mean of them holds, too, and the first is taken by default.
    `operands` are the inputs they are planes in, `axes` those that the node has reduced."""

    operands: tuple[int, ...]
    lower: tuple[Plane, ...]
    upper: tuple[Plane, ...]
    axes: tuple[int, ...] = ()


Rule = Callable[[Node, Sequence[Interval], Interval], Relaxed]
RELAXATIONS: dict[str, Rule] = {}
relaxes = entering(RELAXATIONS)  # a decorator: `@relaxes(el.exp)`


def of_lines(lines: rx.BoundingLines, y: Interval, operand: int = 0) -> Relaxed:
    """Planes in one input."""
    lines = lines.within(y.lower, y.upper)
    lower, upper = (tuple(Plane((k,), b) for k, b in part) for part in lines)
    return Relaxed((operand,), lower, upper)


def cases(y: Interval, *parts: tuple[Array, Callable[[], rx.BoundingLines]]) -> rx.BoundingLines:
    """The lines of the first case that holds; the constants where none does."""
    zero = np.zeros(y.shape)
    flat = rx.BoundingLines((rx.Line(zero, y.lower + zero),), (rx.Line(zero, y.upper + zero),))
    result = _padded(flat)
    for mask, make in reversed(parts):
        if not np.any(mask):
            continue
        found = _padded(make())
        result = rx.BoundingLines(
            tuple(rx.chosen(mask, a, b) for a, b in zip(found.lower, result.lower, strict=True)),
            tuple(rx.chosen(mask, a, b) for a, b in zip(found.upper, result.upper, strict=True)),
        )
    return result


def _padded(lines: rx.BoundingLines) -> rx.BoundingLines:
    """Three lines on each side, so that what depends on values has one number of them."""
    lower, upper = ((*part, *[part[-1]] * 3)[:3] for part in lines)
    return rx.BoundingLines(tuple(lower), tuple(upper))


# -- functions of one variable --------------------------------------------------------------------


def _enter(op: el.Elementwise, make: Callable[[Array, Array], rx.BoundingLines],
           least: float = -np.inf, most: float = np.inf) -> None:  # fmt: skip
    """A function that is defined between two numbers."""

    def rule(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
        lo, hi = np.maximum(xs[0].lower, least), np.minimum(xs[0].upper, most)
        with np.errstate(all="ignore"):
            return of_lines(rx.better(make(lo, np.maximum(hi, lo)), lo, hi, y.lower, y.upper), y)

    relaxes(op)(rule)


def _convex(f: rx.Function, df: rx.Function) -> Callable[[Array, Array], rx.BoundingLines]:
    return lambda lo, hi: rx.convex(f, df, lo, hi)


def _concave(f: rx.Function, df: rx.Function) -> Callable[[Array, Array], rx.BoundingLines]:
    return lambda lo, hi: rx.concave(f, df, lo, hi)


def _convex_concave(f: rx.Function, df: rx.Function) -> Callable[[Array, Array], rx.BoundingLines]:
    return lambda lo, hi: rx.convex_concave(f, df, lo, hi)


def _concave_convex(f: rx.Function, df: rx.Function) -> Callable[[Array, Array], rx.BoundingLines]:
    return lambda lo, hi: rx.concave_convex(f, df, lo, hi)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, 0.0)


def _bell(x: Any) -> Any:
    return 2 / math.sqrt(math.pi) * np.exp(-x * x)


def _sech2(x: Any) -> Any:
    return np.square(1 / np.cosh(x))


def _exp_tangent(lo: Array, hi: Array) -> rx.BoundingLines:
    """Below exp, a tangent that does not fall far under 0: not further right than lo + 1."""
    return rx.convex(np.exp, np.exp, lo, hi, np.minimum(rx.middle(lo, hi), lo + 1))


_erf, _erfc = num.each(math.erf), num.each(math.erfc)
_enter(el.relu, rx.relu)
_enter(el.abs, _convex(np.abs, np.sign))
_enter(el.exp, _exp_tangent)
_enter(el.expm1, _convex(np.expm1, np.exp))
_enter(el.exp2, _convex(np.exp2, lambda x: np.exp2(x) * math.log(2)))
_enter(el.cosh, _convex(np.cosh, np.sinh))
_enter(el.softplus, _convex(_softplus, num.sigmoid))
_enter(el.rsqrt, _convex(lambda x: 1 / np.sqrt(x), lambda x: -0.5 / (x * np.sqrt(x))), 0.0)
_enter(el.sqrt, _concave(np.sqrt, lambda x: 0.5 / np.sqrt(x)), 0.0)
_enter(el.log, _concave(np.log, lambda x: 1 / x), 0.0)
_enter(el.log2, _concave(np.log2, lambda x: 1 / (x * math.log(2))), 0.0)
_enter(el.log10, _concave(np.log10, lambda x: 1 / (x * math.log(10))), 0.0)
_enter(el.log1p, _concave(np.log1p, lambda x: 1 / (1 + x)), -1.0)
_enter(el.tanh, _convex_concave(np.tanh, _sech2))
_enter(el.sigmoid, _convex_concave(num.sigmoid, lambda x: num.sigmoid(x) * num.sigmoid(-x)))
_enter(el.erf, _convex_concave(_erf, _bell))
_enter(el.erfc, _concave_convex(_erfc, lambda x: -_bell(x)))
_enter(el.atan, _convex_concave(np.arctan, lambda x: 1 / (1 + x * x)))
_enter(el.asinh, _convex_concave(np.arcsinh, lambda x: 1 / np.hypot(x, 1)))
_enter(el.sinh, _concave_convex(np.sinh, np.cosh))
_enter(el.asin, _concave_convex(np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x))), -1.0, 1.0)
_enter(el.acos, _convex_concave(np.arccos, lambda x: -1 / np.sqrt((1 - x) * (1 + x))), -1.0, 1.0)
_enter(el.atanh, _concave_convex(np.arctanh, lambda x: 1 / ((1 - x) * (1 + x))), -1.0, 1.0)
_enter(el.sin, lambda lo, hi: rx.sampled(np.sin, 1.0, lo, hi))
_enter(el.cos, lambda lo, hi: rx.sampled(np.cos, 1.0, lo, hi))
_enter(el.sech2, lambda lo, hi: rx.sampled(_sech2, 2.0, lo, hi))


@relaxes(el.reciprocal)
def reciprocal(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    lo, hi = xs[0].lower, xs[0].upper

    def f(x: Any) -> Any:
        return 1 / x

    def df(x: Any) -> Any:
        return -1 / (x * x)

    with np.errstate(all="ignore"):
        lines = cases(
            y,
            (lo > 0, lambda: rx.convex(f, df, lo, hi)),
            (hi < 0, lambda: rx.concave(f, df, lo, hi)),
        )
        return of_lines(lines, y)


def square(x: Interval, y: Interval) -> Relaxed:
    with np.errstate(all="ignore"):
        return of_lines(rx.convex(np.square, lambda t: 2 * t, x.lower, x.upper), y)


@relaxes(el.pow)
def pow_(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    """A power with an exponent that is one number."""
    x, exponent = xs
    lo, hi = x.lower, x.upper
    p = float(exponent.lower.flat[0]) if exponent.lower.size else 1.0
    is_one = bool((exponent.lower == p).all() and (exponent.upper == p).all())
    if not is_one or not math.isfinite(p):
        return of_lines(cases(y), y)

    def f(t: Any) -> Any:
        return np.power(t, p)

    def df(t: Any) -> Any:
        return p * np.power(t, p - 1)

    whole, positive, negative = p == round(p), lo >= 0, hi <= 0
    everywhere = np.ones(y.shape, bool)
    convex, concave = (lambda: rx.convex(f, df, lo, hi)), (lambda: rx.concave(f, df, lo, hi))
    with np.errstate(all="ignore"):
        if p < 0:
            odd = whole and round(p) % 2 == 1
            found = [(lo > 0, convex), ((hi < 0) & whole, concave if odd else convex)]
        elif not whole:
            found = [(positive, convex if p > 1 else concave)]
        elif p == 0 or p == 1 or round(p) % 2 == 0:
            found = [(everywhere, convex)]
        else:
            found = [
                (positive, convex),
                (negative, concave),
                (everywhere, lambda: rx.concave_convex(f, df, lo, hi)),
            ]
        return of_lines(cases(y, *found), y)


@relaxes(el.floor)
def floor(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    return of_lines(rx.steps(xs[0].lower, xs[0].upper, y.lower, y.upper, 1.0, 0.0), y)


@relaxes(el.ceil)
def ceil(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    return of_lines(rx.steps(xs[0].lower, xs[0].upper, y.lower, y.upper, 0.0, 1.0), y)


@relaxes(el.round)
def round_(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    return of_lines(rx.steps(xs[0].lower, xs[0].upper, y.lower, y.upper, 0.5, 0.5), y)


@relaxes(el.trunc)
def trunc(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    return of_lines(rx.steps(xs[0].lower, xs[0].upper, y.lower, y.upper, 1.0, 1.0), y)


@relaxes(el.clamp)
def clamp(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    """Between numbers: as of a function that is convex, then concave, with kinks at the ends."""
    x, low, high = xs
    with np.errstate(all="ignore"):
        upper = _below_cap(x.lower, x.upper, low.upper, high.upper)
        lower = _below_cap(-x.upper, -x.lower, -high.lower, -low.lower)
    lines = rx.BoundingLines(tuple(rx.Line(k, -b) for k, b in lower), upper)
    return of_lines(lines, y)


def _below_cap(lo: Array, hi: Array, low: Array, high: Array) -> tuple[rx.Line, ...]:
    """Lines above `min(max(x, low), high)`: from the left end to where it stops rising; flat."""
    start, last = np.minimum(np.maximum(lo, low), high), np.minimum(np.maximum(hi, low), high)
    end = np.minimum(hi, high)
    rises = (end > lo) & (hi > low) & (lo < high)
    slope = np.where(rises, np.clip((end - start) / np.where(rises, end - lo, 1.0), 0.0, 1.0), 0.0)
    size = np.maximum(np.abs(start), np.abs(slope) * np.maximum(np.abs(lo), np.abs(hi)))
    margin = np.where(rises, rx.ROUNDINGS * rx.EPS * size + rx.TINY, 0.0)
    bias = np.where(rises, np.maximum(start - slope * lo, end - slope * end), last) + margin
    line, flat = rx.Line(slope, bias), rx.Line(np.zeros_like(last), last)
    m = rx.middle(lo, hi)
    return rx.chosen(line.at(m) <= last, line, flat), flat, line


# -- of two variables -----------------------------------------------------------------------------


@relaxes(el.mul, el.zmul, el.zzmul)
def product(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    """McCormick's planes: the tangents of `a b` at the corners of the box. The mean of the two on a
    side is first."""
    if node.inputs[0] is node.inputs[1]:
        return square(xs[0], y)
    a, b = xs
    with np.errstate(all="ignore"):
        below = [_tangent(a.lower, b.lower), _tangent(a.upper, b.upper)]
        above = [_tangent(a.lower, b.upper), _tangent(a.upper, b.lower)]
        margin = 16 * rx.EPS * a.size * b.size + rx.TINY
        lower = [Plane(p.slopes, p.bias - margin) for p in (_mean(*below), *below)]
        upper = [Plane(p.slopes, p.bias + margin) for p in (_mean(*above), *above)]
    return within(Relaxed((0, 1), tuple(lower), tuple(upper)), y)


def _tangent(p: Array, q: Array) -> Plane:
    return Plane((q, p), -p * q)


def _mean(a: Plane, b: Plane) -> Plane:
    slopes = tuple(s / 2 + t / 2 for s, t in zip(a.slopes, b.slopes, strict=True))
    return Plane(slopes, a.bias / 2 + b.bias / 2)


def within(found: Relaxed, y: Interval) -> Relaxed:
    """With constants in the place of planes that are not finite."""

    def finite(plane: Plane, constant: Array) -> Plane:
        ok = np.isfinite(plane.bias)
        for slope in plane.slopes:
            good = np.isfinite(slope)
            ok = ok & (good.all(found.axes) if found.axes else good)
        wide = np.expand_dims(ok, found.axes) if found.axes else ok
        slopes = tuple(np.where(wide, s, 0.0) for s in plane.slopes)
        return Plane(slopes, np.where(ok, plane.bias, constant))

    return found._replace(
        lower=tuple(finite(p, y.lower) for p in found.lower),
        upper=tuple(finite(p, y.upper) for p in found.upper),
    )


@relaxes(el.select)
def select(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    """One of a and b: between `min(a, b)` and `max(a, b)`, that is `a - relu(a - b)` and
    `b + relu(a - b)`, with the chord of relu, where it is not known which."""
    c, a, b = xs
    with np.errstate(all="ignore"):
        lo, hi = a.lower - b.upper, a.upper - b.lower
        lo, hi = np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
        lo, hi = lo - np.abs(lo) * 4 * rx.EPS - rx.TINY, hi + np.abs(hi) * 4 * rx.EPS + rx.TINY
        share = rx.relu(lo, hi).upper[0]  # of a in the greater one
        first, second = (c.lower > 0) & (c.upper > 0), (c.lower == 0) & (c.upper == 0)
        known = first | second
        one, zero = first * 1.0, np.zeros_like(lo)
        k = share.slope
        bias = np.where(known, 0.0, share.bias)
        spare = np.where(known, 0.0, 8 * rx.EPS * np.maximum(a.size, b.size) + rx.TINY)
        upper = Plane((np.where(known, one, k), np.where(known, 1 - one, 1 - k)), bias + spare)
        lower = Plane((np.where(known, one, 1 - k), np.where(known, 1 - one, k)), -bias - spare)
        upper, lower = (Plane(p.slopes, np.where(known, zero, p.bias)) for p in (upper, lower))
    return within(Relaxed((1, 2), (lower,), (upper,)), y)


# -- reductions -----------------------------------------------------------------------------------


@relaxes(ReduceMax)
def reduce_max(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    """At least each element: that with the greatest lower end, or the greatest middle. At most
    `m + sum of relu(x - m)` for every m, with the chords of relu: for the greatest lower end, and
    for what all elements but one are below."""
    axes = node.prim.axes  # type: ignore[attr-defined]
    lo, hi = xs[0].lower, xs[0].upper
    zero = np.zeros(y.shape)
    lower = tuple(Plane((_first(v, axes),), zero) for v in (lo, rx.middle(lo, hi)))
    with np.errstate(all="ignore"):
        top = _first(hi, axes) > 0
        others = np.max(np.where(top, -np.inf, hi), axis=axes, keepdims=True, initial=-np.inf)
        least = np.max(lo, axis=axes, keepdims=True)
        upper = tuple(_chords(lo, hi, m, axes) for m in (np.maximum(others, least), least))
    return within(Relaxed((0,), lower, upper, axes), y)


def _chords(lo: Array, hi: Array, m: Array, axes: tuple[int, ...]) -> Plane:
    """Above `m + sum of relu(x - m)`."""
    alone = (lo >= m) & (hi > m)
    part = (hi > m) & ~alone
    slope = np.where(alone, 1.0, np.where(part, (hi - m) / np.where(part, hi - lo, 1.0), 0.0))
    start = np.where(alone, -m, np.where(part, np.maximum(-slope * lo, hi - m - slope * hi), 0.0))
    reach = np.where(slope == 0, 0.0, slope * np.maximum(np.abs(lo), np.abs(hi)) + np.abs(m))
    margin = rx.ROUNDINGS * rx.EPS * math.prod(lo.shape[a] for a in axes) * np.sum(reach, axis=axes)
    return Plane((slope,), np.squeeze(m, axes) + np.sum(start, axis=axes) + margin)


def _first(x: Array, axes: tuple[int, ...]) -> Array:
    """One where the first of the greatest elements is, 0 elsewhere."""
    kept = [i for i in range(x.ndim) if i not in axes]
    order = (*kept, *axes)
    moved = np.transpose(x, order)
    rows = moved.reshape(math.prod(moved.shape[: len(kept)]), -1)
    hits = np.zeros(rows.shape)
    hits[np.arange(len(rows)), np.argmax(rows, axis=1)] = 1.0
    return np.transpose(hits.reshape(moved.shape), np.argsort(order))


@relaxes(LogSumExp)
def logsumexp(node: Node, xs: Sequence[Interval], y: Interval) -> Relaxed:
    """Convex: tangent planes below. Above, the chords of the exponentials, and the tangent of the
    logarithm where these are at the middle."""
    axes = node.prim.axes  # type: ignore[attr-defined]
    lo, hi = xs[0].lower, xs[0].upper
    n = math.prod(lo.shape[a] for a in axes)
    with np.errstate(all="ignore"):
        top = np.max(hi, axis=axes, keepdims=True)
        size = np.maximum(np.abs(lo), np.abs(hi))
        m = rx.middle(lo, hi)
        lower = tuple(_plane_below(d, size, axes, n) for d in (m, lo, hi))
        chords = rx.chord(np.exp, lo - top, hi - top)
        # In x rather than x - top, of which the difference is rounded.
        inner = chords.slope * (m - top) + chords.bias
        total = np.sum(inner, axis=axes, keepdims=True)
        slopes = chords.slope / total
        rest = np.sum(chords.bias / total - slopes * top, axis=axes)
        reach = np.sum(
            np.abs(slopes) * (size + np.abs(top)) + np.abs(chords.bias / total), axis=axes
        )
        base = np.squeeze(top + np.log(total), axes)
        far = 1 + np.max(size, axis=axes)  # by which rounding of an exponent counts
        margin = (rx.ROUNDINGS + 4 * n) * rx.EPS * far * (np.abs(base) + 1 + reach)
        upper = (Plane((slopes,), base - 1 + rest + margin),)
    return within(Relaxed((0,), lower, upper, axes), y)


def _plane_below(d: Array, size: Array, axes: tuple[int, ...], n: int) -> Plane:
    """The tangent plane at d. Slopes that are off by a share of themselves cost that share of
    `slope * |x - d|`."""
    top = np.max(d, axis=axes, keepdims=True)
    e = np.exp(d - top)
    total = np.sum(e, axis=axes, keepdims=True)
    slopes = e / total
    value = np.squeeze(top + np.log(total), axes)
    inner = np.sum(slopes * d, axis=axes)
    reach = np.sum(slopes * (size + np.abs(d) + np.abs(top)), axis=axes)
    far = 1 + np.max(size, axis=axes)
    margin = (rx.ROUNDINGS + 4 * n) * rx.EPS * far * (np.abs(value) + 2 * reach + 1)
    return Plane((slopes,), value - inner - margin)
