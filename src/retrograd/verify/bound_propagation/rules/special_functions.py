"""Special functions, by what is known of each: where it is monotone, its extrema, its slope.

Ends are the meaning of the op in float64, as for elementary functions; `SPECIAL` units cover all of
them. Derivatives in parameters and hypergeometric functions: `parameters.py`. Sources: NIST Digital
Library of Mathematical Functions, dlmf.nist.gov, by the numbers in the comments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.random import implicit_gradients as ig
from retrograd.ops.special import functions as sf
from retrograd.ops.special import portable as po
from retrograd.ops.special import scipy_functions as sc
from retrograd.ops.special.reference import scipy
from retrograd.verify.bound_propagation.interval import (
    INF,
    Interval,
    accumulator,
    either,
    where_nan,
    widened,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import holds, is_unbounded
from retrograd.verify.bound_propagation.rules.elementary_functions import (
    corners,
    even,
    inside,
    monotone,
    value,
)

SPECIAL = 64  # units in the last place of special functions
GAMMA_LEAST = 1.4616321449683622  # where gamma is least on the positive numbers: 5.4(iii)
GAMMA_MIN = 0.8856031944108887


def enclosed(node: Node, low: Any, high: Any, nan: Any = False, share: float = SPECIAL) -> Interval:
    """The ends, widened by a relative and, as zeros of most of these functions are no points where
    they are computed to the last bit, an absolute error of so many units of 1."""
    unit = accumulator(node.dtype).eps
    slack = np.where(np.isfinite(low) | np.isfinite(high), share * unit, 0.0)
    return widened(low, high, node.dtype, share, nan, slack)


def bounded(node: Node, low: Any, high: Any, nan: Any = False) -> Interval:
    """The ends of a function that keeps its sign, widened by a relative error."""
    return widened(low, high, node.dtype, SPECIAL, nan)


def no_nan(low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Ends where a function has a value, and where it may be NaN."""
    bad = np.isnan(low) | np.isnan(high)
    return np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high), where_nan(bad)


# What is monotone in its one input.
for _op, _rule in (
    (sf.erfcx, monotone(False)),
    (sf.ndtr, monotone(True)),
    (sf.ndtri, monotone(True, 0.0, 1.0)),
    (sf.erfinv, monotone(True, -1.0, 1.0)),
    (sf.erfcinv, monotone(False, 0.0, 2.0)),
    (sf.logit, monotone(True, 0.0, 1.0)),
    (sf.i0e, even(False)),
    (sf.k0e, monotone(False, 0.0)),
    (sf.k1e, monotone(False, 0.0)),
    (sc.exp1, monotone(False, 0.0)),
    (sc.ellipkm1, monotone(False, 0.0)),
    (sc.ellipe, monotone(False, -INF, 1.0)),
):

    def _widened(node: Node, x: Interval, own: Any = _rule) -> Interval:
        found = own(node, x)
        return enclosed(node, found.lower, found.upper, found.nan)

    rule(_op)(_widened)


@rule(sc.spence)
def spence(node: Node, x: Interval) -> Interval:
    """It falls; at infinity, where its limit is -inf, SciPy has none."""
    part, nan = inside(x, 0.0, INF)
    low, high, bad = no_nan(value(node, part.upper), value(node, part.lower))
    return enclosed(node, low, high, either(nan, bad))


# -- the gamma function ---------------------------------------------------------------------------


def cells(x: Interval) -> tuple[Any, Any, Any]:
    """Whether x is positive for sure, may be a pole (0 and the negative whole numbers), or lies
    between two of these."""
    positive = x.lower > 0
    pole = ~positive & (np.floor(x.upper) >= np.ceil(x.lower))
    pole |= ~positive & (x.upper >= 0)
    return positive, pole, ~positive & ~pole


@rule(sf.gamma)
def gamma(node: Node, x: Interval) -> Interval:
    """Convex on the positive numbers; between two poles it has one sign."""
    positive, pole, between = cells(x)
    ends = value(node, x.lower), value(node, x.upper)
    low, high = np.fmin(*ends), np.fmax(*ends)
    low = np.where(positive & holds(x, GAMMA_LEAST), GAMMA_MIN, low)
    wide = between & (x.lower != x.upper)
    low = np.where(wide & (low > 0), 0.0, low)
    high = np.where(wide & (high < 0), 0.0, high)
    low, high = np.where(pole, -INF, low), np.where(pole, INF, high)
    low, high, bad = no_nan(low, high)
    found = enclosed(node, low, high, either(x.nan, bad, where_nan(pole)))
    return _keep_sign(found, low, high)


def _keep_sign(x: Interval, low: Any, high: Any) -> Interval:
    return Interval(
        np.where(low >= 0, np.maximum(x.lower, 0), x.lower),
        np.where(high <= 0, np.minimum(x.upper, 0), x.upper),
        x.nan,
    )


@rule(sf.lgamma)
def lgamma(node: Node, x: Interval) -> Interval:
    positive, pole, between = cells(x)
    ends = value(node, x.lower), value(node, x.upper)
    low, high = np.fmin(*ends), np.fmax(*ends)
    least = math.log(GAMMA_MIN)
    low = np.where(positive & holds(x, GAMMA_LEAST), least, low)
    # Reflection, 5.5.3: |gamma(x)| >= pi / gamma(1 - x).
    with np.errstate(all="ignore"):
        beyond = np.maximum(value(node, 1 - x.lower), value(node, 1 - x.upper))
        reflected = math.log(math.pi) - beyond - 1e-9 * np.abs(beyond)
        crossing = np.minimum(np.where(x.upper > 0, least, INF), reflected)
    wide = (between | pole) & (x.lower != x.upper)
    low = np.where(wide, np.minimum(low, crossing), low)
    low = np.where(x.lower == -INF, -INF, low)
    high = np.where(pole, INF, high)
    low, high, bad = no_nan(low, high)
    found = enclosed(node, low, high, either(x.nan, bad))
    size = np.where(np.isfinite(x.size), x.size, 0)
    slack = np.where(positive, 0.0, SPECIAL * accumulator(node.dtype).eps * (1 + size))
    return Interval(found.lower - slack, found.upper + slack, found.nan)


@rule(sf.digamma)
def digamma(node: Node, x: Interval) -> Interval:
    """It grows between poles."""
    _, pole, _ = cells(x)
    low, high = value(node, x.lower), value(node, x.upper)
    low, high = np.where(pole, -INF, low), np.where(pole, INF, high)
    low, high, bad = no_nan(low, high)
    return enclosed(node, low, high, either(x.nan, bad, where_nan(pole)))


@rule(sf.trigamma)
def trigamma(node: Node, x: Interval) -> Interval:
    """It falls on the positive numbers and is convex between poles, where it is more than 8, by
    reflection (5.15.6)."""
    _, pole, between = cells(x)
    ends = value(node, x.lower), value(node, x.upper)
    low, high = np.fmin(*ends), np.fmax(*ends)
    low = np.where(between & (x.lower != x.upper), np.minimum(low, 8.0), low)
    low, high = np.where(pole, 0.0, low), np.where(pole, INF, high)
    low, high, bad = no_nan(low, high)
    return bounded(node, low, high, either(x.nan, bad, where_nan(pole)))


# -- Bessel functions -----------------------------------------------------------------------------


def lipschitz(
    node: Node, x: Interval, slope: Any, least: float, most: float, *before: Any
) -> Interval:
    """The value in the middle and a greatest slope; beyond that a greatest value."""
    middle = x.mid
    with np.errstate(all="ignore"):
        radius = np.maximum(x.upper - middle, middle - x.lower) * slope
        y = value(node, *before, middle)
        low, high = np.maximum(y - radius, least), np.minimum(y + radius, most)
    low, high = np.where(np.isnan(low), least, low), np.where(np.isnan(high), most, high)
    wild = where_nan(np.isnan(y) | ~np.isfinite(x.size))
    return enclosed(node, low, high, either(x.nan, wild))


# |J_0| <= 1, |J_0'| = |J_1| < 0.582, |J_1'| <= 1/2, |I_1e| < 0.22, |I_1e'| <= 1/2: 10.6, 10.14.
rule(sf.j0)(lambda node, x: lipschitz(node, x, 0.582, -1.0, 1.0))
rule(sf.j1)(lambda node, x: lipschitz(node, x, 0.5, -0.582, 0.582))
rule(sf.i1e)(lambda node, x: lipschitz(node, x, 0.5, -0.22, 0.22))


def modulus(order: Any, x: Any) -> Any:
    """`sqrt(J_n(x)^2 + Y_n(x)^2)`, which falls on the positive numbers (10.18, 10.9.30)."""
    with np.errstate(all="ignore"):
        size = np.hypot(scipy("jv")(order, x), scipy("yv")(order, x)) * (1 + 1e-9)
    return np.where(np.isnan(size), INF, size)


def second_kind(node: Node, x: Interval, order: Any, slope: Any, *before: Any) -> Interval:
    """Of the second kind: -inf at 0, NaN below; bounded by the modulus at the lower end."""
    part, nan = inside(x, 0.0, INF)
    most = modulus(order, part.lower)
    middle = part.mid
    with np.errstate(all="ignore"):
        radius = np.maximum(part.upper - middle, middle - part.lower)
        radius = np.where(radius == 0, 0.0, radius * slope(part.lower))
        y = value(node, *before, middle)
        low, high = np.maximum(y - radius, -most), np.minimum(y + radius, most)
    edge = part.lower == 0
    low = np.where(edge | np.isnan(low), -INF, low)
    high = np.where(np.isnan(high), most, high)
    high = np.where(edge & (part.upper == 0), np.where(order == 0, -1e300, high), high)
    return enclosed(node, low, high, either(nan, where_nan(~np.isfinite(x.upper))))


rule(sf.y0)(lambda node, x: second_kind(node, x, 0, lambda low: modulus(1, low)))
rule(sf.y1)(
    lambda node, x: second_kind(
        node, x, 1, lambda low: modulus(0, low) + modulus(1, low) / np.maximum(low, 1e-300)
    )
)


def whole_order(n: Interval) -> tuple[Any, Any]:
    """The orders, and where they are known whole numbers."""
    known = (n.lower == n.upper) & (n.lower == np.rint(n.lower)) & np.isfinite(n.lower)
    return np.where(known, n.lower, 0.0), known & ~np.asarray(n.nan)


def _of_order(slope: float) -> Callable[..., Interval]:
    def of(node: Node, n: Interval, x: Interval) -> Interval:
        order, known = whole_order(n)
        found = lipschitz(node, x, slope, -1.0, 1.0, order)
        nan = either(found.nan, where_nan(~known))
        return Interval(
            np.where(known, found.lower, -1.01), np.where(known, found.upper, 1.01), nan
        )

    return of


rule(sf.bessel_j, sf.bessel_ie)(_of_order(1.0))


@rule(sc.yn)
def yn(node: Node, n: Interval, x: Interval) -> Interval:
    order, known = whole_order(n)

    def slope(low: Any) -> Any:
        return (modulus(order - 1, low) + modulus(order + 1, low)) / 2

    found = second_kind(node, x, order, slope, order)
    return Interval(
        np.where(known, found.lower, -INF),
        np.where(known, found.upper, INF),
        either(found.nan, where_nan(~known)),
    )


# -- functions of several numbers, monotone in each -----------------------------------------------


def domain(given: Sequence[Interval], ends: Sequence[tuple[float, float]]) -> Any:
    """Where all inputs are inside of open or closed domains for sure."""
    sure = np.ones(given[0].shape, bool)
    for x, (least, most) in zip(given, ends, strict=True):
        sure &= (x.lower >= least) & (x.upper <= most) & ~np.asarray(x.nan)
    return sure


def by_corners(
    signs: Sequence[int],
    ends: Sequence[tuple[float, float]],
    least: float = -INF,
    most: float = INF,
    share: float = SPECIAL,
) -> Callable[..., Interval]:
    """The rule of a function that is monotone in each input within a domain; elsewhere it lies
    between two numbers, or is NaN."""

    def of(node: Node, *given: Interval) -> Interval:
        sure = domain(given, ends)
        low, high = corners(node, signs, *given)
        low, high, bad = no_nan(low, high)
        low, high = np.where(sure, low, least), np.where(sure, high, most)
        both = sum(is_unbounded(x).astype(int) for x in given) > 1  # which corners may miss
        nan = either(*[x.nan for x in given], where_nan(~sure), bad, where_nan(both))
        found = enclosed(node, low, high, nan, share)
        return Interval(np.maximum(found.lower, least), np.minimum(found.upper, most), nan) if (
            least == 0
        ) else found  # fmt: skip

    return of


POSITIVE, PART, ANY = (5e-324, INF), (0.0, 1.0), (0.0, INF)
for _op, _signs, _ends, _least, _most in (
    (sf.gammainc, (-1, 1), (POSITIVE, ANY), 0.0, 1.01),
    (sf.gammaincc, (1, -1), (POSITIVE, ANY), 0.0, 1.01),
    (sf.betainc, (-1, 1, 1), (POSITIVE, POSITIVE, PART), 0.0, 1.01),
    (sc.gammaincinv, (1, 1), (POSITIVE, PART), 0.0, INF),
    (sc.gammainccinv, (1, -1), (POSITIVE, PART), 0.0, INF),
    (sc.betaincinv, (1, -1, 1), (POSITIVE, POSITIVE, PART), 0.0, 1.01),
    (sc.betainccinv, (1, -1, -1), (POSITIVE, POSITIVE, PART), 0.0, 1.01),
    (sf.betaln, (-1, -1), (POSITIVE, POSITIVE), -INF, INF),
):
    rule(_op)(by_corners(_signs, _ends, _least, _most))


@rule(sf.zeta)
def zeta(node: Node, s: Interval, q: Interval) -> Interval:
    """The first term `q^-s`, and the others, which fall in both."""
    sure = (s.lower > 1) & (q.lower > 0)
    with np.errstate(all="ignore"):
        ends = [a**-b for a in (q.lower, q.upper) for b in (s.lower, s.upper)]
        least = [np.where(sure, e, 2.0) for e in (s.lower, s.upper, q.lower, q.upper)]
        low = np.minimum.reduce(ends) + value(node, least[1], least[3] + 1)
        high = np.maximum.reduce(ends) + value(node, least[0], least[2] + 1)
    points = (s.lower == s.upper) & (q.lower == q.upper)
    y = value(node, s.lower, q.lower)
    low, high = (np.where(sure, v, np.where(points, y, e)) for v, e in ((low, -INF), (high, INF)))
    low, high, bad = no_nan(low, high)
    return bounded(node, low, high, either(s.nan, q.nan, where_nan(~sure & ~points), bad))


@rule(sc.expn)
def expn(node: Node, n: Interval, x: Interval) -> Interval:
    """It falls in both: 8.19."""
    order, known = whole_order(n)
    sure = known & (order >= 0) & (x.lower >= 0)
    low, high = value(node, order, x.upper), value(node, order, x.lower)
    low, high, bad = no_nan(low, high)
    nan = either(n.nan, x.nan, where_nan(~sure), bad)
    return bounded(node, np.where(sure, low, -INF), np.where(sure, high, INF), nan)


@rule(sc.expi)
def expi(node: Node, x: Interval) -> Interval:
    """It falls below 0, where it is -inf, and grows above."""
    ends = value(node, x.lower), value(node, x.upper)
    low, high = np.fmin(*ends), np.fmax(*ends)
    low = np.where(holds(x, 0), -INF, low)
    low, high, bad = no_nan(low, high)
    return enclosed(node, low, high, either(x.nan, bad))


# -- products with logarithms ---------------------------------------------------------------------


def _product_with_log(least: float) -> Callable[..., Interval]:
    def of(node: Node, a: Interval, b: Interval) -> Interval:
        """Linear in a, monotone in b: extrema in corners."""
        part, outside = inside(b, least, INF)
        ends = [value(node, x, y) for x in (a.lower, a.upper) for y in (part.lower, part.upper)]
        ends = [np.where(np.isnan(e), 0.0, e) for e in ends]
        clash = is_unbounded(a) & holds(b, 1 + least)  # infinity times the logarithm of 1
        nan = either(a.nan, outside, where_nan(clash))
        return enclosed(node, np.minimum.reduce(ends), np.maximum.reduce(ends), nan)

    return of


rule(sf.xlogy)(_product_with_log(0.0))
rule(sf.xlog1py)(_product_with_log(-1.0))


@rule(sf.entr)
def entr(node: Node, x: Interval) -> Interval:
    """`-x log(x)`, greatest at 1/e, -inf below 0."""
    low, high = (f(value(node, x.lower), value(node, x.upper)) for f in (np.fmin, np.fmax))
    high = np.where(holds(x, 1 / math.e) | (holds(x, 0.36) & holds(x, 0.37)), 1 / math.e, high)
    high = np.where(holds(x, 0), np.maximum(high, 0), high)
    return enclosed(node, low, high, x.nan)


@rule(sf.rel_entr)
def rel_entr(node: Node, x: Interval, y: Interval) -> Interval:
    """`x log(x / y)`: falls in y, convex in x with the minimum `-y / e` at `y / e`."""
    sure = (x.lower >= 0) & (y.lower >= 0)
    a, b = (Interval(np.maximum(v.lower, 0), np.maximum(v.upper, 0)) for v in (x, y))
    ends = [value(node, v, b.upper) for v in (a.lower, a.upper)]
    low = np.fmin(*ends)
    with np.errstate(all="ignore"):
        place = b.upper / math.e
    inner = (a.lower <= place * (1 + 1e-9)) & (a.upper >= place * (1 - 1e-9))
    low = np.where(inner, np.minimum(low, -place), low)
    high = np.fmax(value(node, a.lower, b.lower), value(node, a.upper, b.lower))
    high = np.where(sure, high, INF)
    low, high, bad = no_nan(low, high)
    slack = SPECIAL * accumulator(node.dtype).eps * np.where(np.isfinite(a.upper), a.upper, 0)
    both = where_nan(is_unbounded(x) & is_unbounded(y))
    found = enclosed(node, low, high, either(x.nan, y.nan, bad, both))
    return Interval(found.lower - slack, found.upper + slack, found.nan)


# -- densities ------------------------------------------------------------------------------------


def _log_terms(*terms: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """The sum of products of intervals, with how large the terms are."""
    low = high = size = 0.0
    with np.errstate(all="ignore"):
        for a, b in terms:
            ends = [np.asarray(p * q) for p in a for q in b]
            ends = [np.where(np.isnan(e), 0.0, e) for e in ends]
            low, high = low + np.minimum.reduce(ends), high + np.maximum.reduce(ends)
            size = size + np.maximum.reduce([np.abs(e) for e in ends])
    return np.asarray(low), np.asarray(high), np.where(np.isfinite(size), size, 0.0)


def _density(node: Node, given: Sequence[Interval], log: Any, sure: Any) -> Interval:
    low, high, size = log
    with np.errstate(all="ignore"):
        low, high = np.exp(low), np.exp(high)
        share = (SPECIAL + 8 * size) * accumulator(node.dtype).eps + 1e-13 * (1 + size)
        low, high = low * np.maximum(1 - share, 0), high * (1 + share)
    nan = either(*[x.nan for x in given], where_nan(~sure))
    low = np.where(sure & ~np.isnan(low), low, 0.0)
    high = np.where(sure & ~np.isnan(high), high, INF)
    points = np.logical_and.reduce([x.lower == x.upper for x in given]) & sure
    if points.any():
        y = value(node, *[np.where(points, x.lower, 1.0) for x in given])
        good = points & ~np.isnan(y)
        wide = np.where(good, np.abs(y) * share, 0.0)
        low, high = np.where(good, y - wide, low), np.where(good, y + wide, high)
    found = bounded(node, low, high, nan)
    return Interval(np.maximum(found.lower, 0), found.upper, nan)


@rule(sf.gammainc_dx)
def gammainc_dx(node: Node, a: Interval, x: Interval) -> Interval:
    """`exp((a - 1) log(x) - x - log(gamma(a)))`."""
    sure = (a.lower > 0) & (x.lower >= 0)
    log = _gamma_log
    with np.errstate(all="ignore"):
        logs = np.log(np.maximum(x.lower, 0)), np.log(np.maximum(x.upper, 0))
        ends = log(a)
        terms = _log_terms(
            ((a.lower - 1, a.upper - 1), logs), ((x.lower, x.upper), (-1.0,)), (ends, (-1.0,))
        )
    return _density(node, (a, x), terms, sure)


def _gamma_log(a: Interval) -> tuple[Any, Any]:
    """`log(gamma(a))` of positive numbers."""
    f = sf.lgamma.reference
    ends = f(np.asarray(a.lower, np.float64)), f(np.asarray(a.upper, np.float64))
    low, high = np.fmin(*ends), np.fmax(*ends)
    return np.where(holds(a, GAMMA_LEAST), math.log(GAMMA_MIN), low), high


@rule(sf.betainc_dx)
def betainc_dx(node: Node, a: Interval, b: Interval, x: Interval) -> Interval:
    """`exp((a - 1) log(x) + (b - 1) log(1 - x) - log B(a, b))`."""
    sure = (a.lower > 0) & (b.lower > 0) & (x.lower >= 0) & (x.upper <= 1)
    f: Any = sf.betaln.reference
    with np.errstate(all="ignore"):
        low, high = np.clip(x.lower, 0, 1), np.clip(x.upper, 0, 1)
        beta = tuple(
            np.asarray(f(np.asarray(p, np.float64), np.asarray(q, np.float64)))
            for p, q in ((a.upper, b.upper), (a.lower, b.lower))
        )
        terms = _log_terms(
            ((a.lower - 1, a.upper - 1), (np.log(low), np.log(high))),
            ((b.lower - 1, b.upper - 1), (np.log1p(-high), np.log1p(-low))),
            (beta, (-1.0,)),
        )
    return _density(node, (a, b, x), terms, sure)


# -- what random draws are made of ----------------------------------------------------------------

rule(
    ig.implicit_exp,
    ig.implicit_gamma,
    ig.implicit_log_gamma,
    ig.implicit_beta,
    ig.implicit_von_mises,
)(lambda node, *given: given[-1])


def _portable(least: float, most: float) -> Callable[..., Interval]:
    """A monotone function on a part of the numbers; elsewhere it is anything."""

    def of(node: Node, x: Interval) -> Interval:
        sure = (x.lower >= least) & (x.upper <= most)
        low, high, bad = no_nan(value(node, x.lower), value(node, x.upper))
        nan = either(x.nan, where_nan(~sure), bad)
        return enclosed(node, np.where(sure, low, -INF), np.where(sure, high, INF), nan)

    return of


rule(po.portable_log)(_portable(2.0**-1022, 1e308))
rule(po.portable_exp)(_portable(-700.0, 700.0))
rule(po.portable_atan)(_portable(-1e300, 1e300))
rule(po.portable_log_factorial)(_portable(1.0, 1e15))
