"""Hypergeometric functions, and derivatives of special functions in their parameters.

- Series with terms that are not negative grow and fall in each input as their terms do, and so do
  the derivatives of their coefficients. Left of 0, by Euler's integrals, `1F1` is the mean of
  `exp(x T)` and `2F1` that of `(1 - x T)^-a`, of a number T with a beta distribution: it grows in
  one parameter and falls in the other (DLMF 13.4.1, 15.6.1).
- Incomplete gamma and beta functions are distribution functions of a number T. In a parameter their
  derivative is `E[Z; T <= x]`, of the score Z, a logarithm of T less its mean, and the second one
  `E[Z^2 - var Z; T <= x]`. Of what has the mean 0 such a part is at most half the deviation. So the
  first lies between 0 and half the root of the second cumulant, and changes by no more than half of
  `sqrt(k4 + 2 k2^2)` from one parameter to the next; cumulants of logarithms are polygammas.
- In x the first derivative has its one extremum where the score changes its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.random import implicit_gradients as ig
from retrograd.ops.special import functions as sf
from retrograd.ops.special import scipy_functions as sc
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    accumulator,
    either,
    where_nan,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.elementary_functions import value
from retrograd.verify.bound_propagation.rules.special_functions import SPECIAL, enclosed

LOST = 1e-6  # the relative error of these functions
MORE = 1 + 1e-9  # on numbers that are bounds themselves
MOST_DEGREE = 100  # of Legendre functions, up to which recurrences keep their digits


def off(node: Node, y: Any) -> Any:
    """How far a value may be off."""
    with np.errstate(all="ignore"):
        error = (LOST + SPECIAL * accumulator(node.dtype).eps) * (1 + np.abs(y))
    return np.where(np.isfinite(y), error, 0.0)


def are_points(given: Sequence[Interval]) -> Any:
    return np.logical_and.reduce([x.lower == x.upper for x in given])


def between(
    node: Node, given: Sequence[Interval], low: Sequence[Any], high: Sequence[Any], sure: Any
) -> Interval:
    """From the value at one corner to that at another, where these are the extrema for sure, and
    where all inputs are known; nothing is known elsewhere."""
    points = are_points(given)
    known = np.asarray(sure | points)
    ends = []
    for corner in (low, high):
        at = [
            np.where(points, x.lower, np.where(known, c, 1.0))
            for x, c in zip(given, corner, strict=True)
        ]
        ends.append(value(node, *at))
    good = known & ~np.isnan(ends[0]) & ~np.isnan(ends[1])
    least = np.where(good, ends[0] - off(node, ends[0]), -INF)
    most = np.where(good, ends[1] + off(node, ends[1]), INF)
    return enclosed(node, least, most, either(*[x.nan for x in given], where_nan(~good)))


def known_only(node: Node, *given: Interval) -> Interval:
    """The value where all inputs are known; elsewhere nothing."""
    ends = [x.lower for x in given]
    return between(node, given, ends, ends, np.zeros(given[0].shape, bool))


@rule(sc.lpmv)
def legendre(node: Node, m: Interval, v: Interval, x: Interval) -> Interval:
    """Of known whole order and degree: by the addition theorem `(l+m)! / (l-m)!` is not below the
    square (DLMF 14.30.9); where x is not at an end, by the slope from the middle, too."""
    order, degree = m.lower, np.where(v.lower < 0, -v.lower - 1, v.lower)
    whole = (m.lower == m.upper) & (v.lower == v.upper)
    whole &= (order == np.round(order)) & (degree == np.round(degree))
    sure = whole & (np.abs(order) <= MOST_DEGREE) & (degree <= MOST_DEGREE)
    sure &= (x.lower >= -1) & (x.upper <= 1) & (-order <= degree)
    order, degree = np.where(sure, order, 0.0), np.where(sure, degree, 0.0)
    reach = _legendre_size(order, degree)
    with np.errstate(all="ignore"):
        room = 1 - x.size**2
        slope = degree * reach + (degree + np.abs(order)) * _legendre_size(order, degree - 1)
        far = slope / np.where(room > 0, room, 1.0) * np.maximum(x.upper - x.mid, x.mid - x.lower)
        middle = value(node, order, degree, np.where(sure, x.mid, 0.0))
    near = sure & (room > 0) & np.isfinite(middle)
    far = far * MORE + off(node, np.where(near, middle, 0.0))
    low = np.where(near, np.maximum(middle - far, -reach), -reach)
    high = np.where(near, np.minimum(middle + far, reach), reach)
    exact = known_only(node, m, v, x)
    points = are_points((m, v, x))
    low, high = (
        np.where(sure, s * off(node, reach) + y, s * INF) for s, y in ((-1, low), (1, high))
    )
    return enclosed(
        node, np.where(points, exact.lower, low), np.where(points, exact.upper, high),
        either(m.nan, v.nan, x.nan, where_nan(np.where(points, exact.nan, ~sure))),
    )  # fmt: skip


def _legendre_size(order: Any, degree: Any) -> Any:
    """The most that an associated Legendre function is between -1 and 1; 0 for what is none."""
    log_factorial = sf.lgamma.reference
    is_one = (degree >= np.abs(order)) & (degree >= 0)
    above, below = (np.where(is_one, degree + s * order + 1, 1.0) for s in (1, -1))
    with np.errstate(all="ignore"):
        root = np.exp((log_factorial(above) - log_factorial(below)) / 2)
    return np.where(is_one, root * MORE, 0.0)


@rule(ig.von_mises_slope)
def von_mises_slope(node: Node, k: Interval, x: Interval) -> Interval:
    """The part of the circle beyond x, where the density is not above that at x, and the cosine no
    more than 2 from its mean; of the sign of -x, as a higher concentration moves all to the
    middle."""
    sure = (k.lower >= 0) & np.isfinite(k.upper) & (x.size <= np.pi)
    least = np.where((x.lower <= 0) & (x.upper >= 0), 0.0, np.minimum(*map(np.abs, x[:2])))
    reach = 2 * (np.pi - least) * MORE
    low = np.where(x.upper <= 0, 0.0, -reach) - off(node, reach)
    high = np.where(x.lower >= 0, 0.0, reach) + off(node, reach)
    exact = known_only(node, k, x)
    points = are_points((k, x))
    low = np.where(points, exact.lower, np.where(sure, low, -INF))
    high = np.where(points, exact.upper, np.where(sure, high, INF))
    nan = either(k.nan, x.nan, where_nan(np.where(points, exact.nan, ~sure)))
    return enclosed(node, low, high, nan)


# -- hypergeometric functions ---------------------------------------------------------------------


def _domain(numerator: Sequence[Interval], denominator: Interval, x: Interval) -> Any:
    """Where all parameters are positive and the series converges: of `2F1` left of 1."""
    sure = (denominator.lower > 0) & (x.upper < (1.0 if len(numerator) > 1 else INF))
    sure &= np.isfinite(x.lower) & np.isfinite(denominator.upper)
    for p in numerator:
        sure &= (p.lower > 0) & np.isfinite(p.upper)
    return sure


def _series(node: Node, *given: Interval) -> Interval:
    """`1F1(a, b, x)` and `2F1(a, b, c, x)`, of parameters that are positive."""
    *numerator, last, x = given
    averages = np.logical_or.reduce([last.lower >= p.upper for p in numerator])
    sure = _domain(numerator, last, x) & ((x.lower >= 0) | averages)
    far = [*[p.upper for p in numerator], last.lower]  # where it is furthest from 1, on both sides
    near = [*[p.lower for p in numerator], last.upper]
    low = [np.where(x.lower >= 0, n, f) for n, f in zip(near, far, strict=True)]
    high = [np.where(x.upper >= 0, f, n) for n, f in zip(near, far, strict=True)]
    found = between(node, given, [*low, x.lower], [*high, x.upper], sure)
    return _by_size(node, found, given)


def _by_size(node: Node, found: Interval, given: Sequence[Interval]) -> Interval:
    """Where parameters above may be negative: no term is larger than that for their magnitudes, nor
    is a derivative of its coefficient. What is known better stays."""
    *numerator, last, x = given
    sure = np.isinf(found.lower) & np.isinf(found.upper) & (last.lower > 0)
    sure &= np.isfinite(last.upper) & np.isfinite(x.size)
    sure &= x.size < (1.0 if len(numerator) > 1 else INF)
    for p in numerator:
        sure &= np.isfinite(p.size)
    corner = [*[p.size for p in numerator], last.lower, x.size]
    most = np.abs(value(node, *[np.where(sure, c, 0.5) for c in corner]))
    sure &= np.isfinite(most)
    most = most + off(node, most)
    y = enclosed(node, -most, most)
    return Interval(
        np.where(sure, y.lower, found.lower),
        np.where(sure, y.upper, found.upper),
        where_nan(np.asarray(found.nan) & ~sure) if np.any(found.nan) else found.nan,
    )


def _slope(sign: int) -> Callable[..., Interval]:
    """A derivative in a parameter, of coefficients that all have this sign, right of 0."""

    def of(node: Node, *given: Interval) -> Interval:
        *numerator, last, x = given
        sure = _domain(numerator, last, x) & (x.lower >= 0)
        near = [*[p.lower for p in numerator], last.upper, x.lower]
        far = [*[p.upper for p in numerator], last.lower, x.upper]
        found = between(node, given, *((near, far) if sign > 0 else (far, near)), sure)
        return _by_size(node, found, given)

    return of


rule(sc.hyp1f1, sc.hyp2f1)(_series)
rule(sc.hyp1f1_da, sc.hyp2f1_da)(_slope(1))
rule(sc.hyp1f1_db, sc.hyp2f1_dc)(_slope(-1))


# -- distribution functions in their parameters ---------------------------------------------------


def _cumulants(a: Any, rest: Any = None) -> tuple[Any, Any]:
    """The second and the fourth of the logarithm of a gamma, or a beta distributed number: most of
    them for the least a and the greatest sum of both parameters."""
    second, fourth = sf.trigamma.reference, sf.zeta.reference
    with np.errstate(all="ignore"):
        k2 = np.asarray(second(a), np.float64)
        k4 = 6 * np.asarray(fourth(np.full(np.shape(a), 4.0), a), np.float64)  # 5.15.1
        if rest is not None:
            less = second(rest), 6 * fourth(np.full_like(rest, 4.0), rest)
            k2, k4 = (
                k * MORE - np.where(np.isfinite(rest), part, 0.0)
                for k, part in zip((k2, k4), less, strict=True)
            )
    return k2 * MORE, k4 * MORE


class Score:
    """What is known of the logarithm of T or of 1 - T, for parameters in intervals."""

    def __init__(self, a: Interval, b: Interval | None = None) -> None:
        least = np.where(a.lower > 0, a.lower, 1.0)
        rest = None if b is None else least + np.where(b.upper > 0, b.upper, 1.0)
        self.k2, self.k4 = _cumulants(least, rest)
        with np.errstate(all="ignore"):
            self.part = np.sqrt(self.k2) / 2 * MORE
            self.second = np.sqrt(self.k4 + 2 * self.k2**2) / 2 * MORE
            self.quartic = self.k4 + 3 * self.k2**2  # E[Z^4]


def _mixed(first: Score, other: Score) -> Any:
    """At most so much is the mixed derivative, by Schwarz's inequality."""
    with np.errstate(all="ignore"):
        return (first.quartic * other.quartic) ** 0.25 / 2 * MORE


def _mean(a: Any, total: Any = None) -> Any:
    """That of the logarithm."""
    f = sf.digamma.reference
    return np.asarray(f(a) if total is None else f(a) - f(total), np.float64)


def _first(
    node: Node, given: Sequence[Interval], end: float, turn: Callable[..., Any],
    changes: Sequence[Any], most: Any, sign: int,
) -> Interval:  # fmt: skip
    """A first derivative: in x from its values at the ends and where it turns, with how much it
    changes in each parameter; it has one sign, and a greatest size."""
    *parameters, x = given
    sure = (x.lower >= 0) & (x.upper <= end)
    for p in parameters:
        sure &= (p.lower > 0) & np.isfinite(p.upper)
    middles = [np.where(sure, p.mid, 1.0) for p in parameters]
    with np.errstate(all="ignore"):
        place = np.clip(turn(*middles), x.lower, x.upper)
        values = []
        for at in (x.lower, x.upper, place):
            outer = (at <= 0) | (at >= end)
            inner = np.where(sure & ~outer, at, 0.5)
            values.append(np.where(outer, 0.0, value(node, *middles, inner)))
        by: Any = 0.0
        for p, m, change in zip(parameters, middles, changes, strict=True):
            radius = np.maximum(p.upper - m, m - p.lower)
            by = by + np.where(radius == 0, 0.0, radius * change * MORE)
        low, high = np.minimum.reduce(values), np.maximum.reduce(values)
        low, high = low - by - off(node, low), high + by + off(node, high)
    least, greatest = (0.0, most) if sign > 0 else (-most, 0.0)
    slack = off(node, 0.0)
    low = np.where(np.isnan(low), -INF, np.maximum(low, least - slack))
    high = np.where(np.isnan(high), INF, np.minimum(high, greatest + slack))
    whole = (0.0, INF) if sign > 0 else (-INF, 0.0)
    low, high = np.where(sure, low, whole[0]), np.where(sure, high, whole[1])
    return enclosed(node, low, high, either(*[v.nan for v in given], where_nan(~sure)))


def _second(node: Node, given: Sequence[Interval], end: float, most: Any) -> Interval:
    """A second derivative: its value where all is known, and elsewhere its greatest size."""
    *parameters, x = given
    sure = (x.lower >= 0) & (x.upper <= end)
    for p in parameters:
        sure &= p.lower > 0
    found = known_only(node, *given)
    slack = off(node, most)
    low = np.where(sure, np.maximum(found.lower, -most - slack), found.lower)
    high = np.where(sure, np.minimum(found.upper, most + slack), found.upper)
    unsure = where_nan(~(sure | ~np.broadcast_to(found.nan, sure.shape)))
    return enclosed(node, low, high, either(*[v.nan for v in given], unsure))


@rule(sf.gammainc_da)
def gammainc_da(node: Node, a: Interval, x: Interval) -> Interval:
    score = Score(a)
    turn: Any = lambda a: np.exp(_mean(a))  # noqa: E731
    return _first(node, (a, x), INF, turn, [score.second], score.part, -1)


@rule(sf.gammainc_daa)
def gammainc_daa(node: Node, a: Interval, x: Interval) -> Interval:
    return _second(node, (a, x), INF, Score(a).second)


@rule(sf.betainc_da)
def betainc_da(node: Node, a: Interval, b: Interval, x: Interval) -> Interval:
    own, other = Score(a, b), Score(b, a)
    turn: Any = lambda a, b: np.exp(_mean(a, a + b))  # noqa: E731
    return _first(node, (a, b, x), 1.0, turn, [own.second, _mixed(own, other)], own.part, -1)


@rule(sf.betainc_db)
def betainc_db(node: Node, a: Interval, b: Interval, x: Interval) -> Interval:
    own, other = Score(b, a), Score(a, b)
    turn: Any = lambda a, b: -np.expm1(_mean(b, a + b))  # noqa: E731
    return _first(node, (a, b, x), 1.0, turn, [_mixed(own, other), own.second], own.part, 1)


@rule(sf.betainc_daa)
def betainc_daa(node: Node, a: Interval, b: Interval, x: Interval) -> Interval:
    return _second(node, (a, b, x), 1.0, Score(a, b).second)


@rule(sf.betainc_dab)
def betainc_dab(node: Node, a: Interval, b: Interval, x: Interval) -> Interval:
    return _second(node, (a, b, x), 1.0, _mixed(Score(a, b), Score(b, a)))


@rule(sf.betainc_dbb)
def betainc_dbb(node: Node, a: Interval, b: Interval, x: Interval) -> Interval:
    return _second(node, (a, b, x), 1.0, Score(b, a).second)
