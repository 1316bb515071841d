"""Kummer's and Gauss' hypergeometric functions and their derivatives in the parameters, on NumPy's
arrays.

The values are SciPy's, where these end. The derivatives are sums of the series differentiated term
by term: of `t_k = t_(k-1) r_k`, where `r_k = prod(a + k - 1) / prod(b + k - 1) x / k`, the slope in
a parameter is that of `t_(k-1)` times `r_k` and `t_(k-1)` times the slope of `r_k`, also where a
factor is 0. The sums are in double precision, with a bound of their error, which is the same
recursion on magnitudes. Where terms of both signs have lost digits the sum is made again, in
decimal numbers of so many digits that none are missed, one element at a time.

Kummer's transformation and what is said of large arguments: DLMF 13.2.39, 13.7.1, 13.7.2; Pfaff's
transformation: 15.8.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograd.ops.special.reference import in_double, scipy

if TYPE_CHECKING:
    from decimal import Decimal

WIDE = 1e7  # up to which SciPy's `hyp1f1` takes any b and x; the largest a is 1e10
STEPS = 1e6  # the a from which on it takes as many steps for negative x
MILD = 1e3  # parameters that are small next to what is above `WIDE`
TERMS = 4000  # of a series, at most
QUICK = 600  # of these, in double precision
GOOD = 1e-13  # the relative error up to which a sum in double precision is taken
LOG10 = math.log(10)


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (np.floor(x) == x)


@in_double
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """SciPy's, but by Kummer's transformation where that takes fewer steps, and by the leading
    terms for large x; NaN where it might not end."""
    a, b, x = np.broadcast_arrays(a, b, x)
    with np.errstate(all="ignore"):
        inside = (np.abs(a) <= 1e10) & (np.abs(b) <= WIDE) & (np.abs(x) <= WIDE)
        turned = inside & (a > STEPS) & (x < 0)
        of = (np.where(turned, b - a, a), b, np.where(turned, -x, x))
        y = scipy("hyp1f1")(*(np.where(inside, t, 1.0) for t in of))
        y = np.where(turned, np.exp(x) * y, y)
        bounded = np.where((a > 0) & (b > 0) & (x * np.minimum(a / b, 1) > 710), np.inf, np.nan)
        far = ~inside & (np.abs(a) <= MILD) & (np.abs(b) <= MILD) & np.isfinite(x)
        outer = np.where(far, _far(*(np.where(far, t, 1.0) for t in (a, b, x))), bounded)
        outer = np.where(((a == 0) | (x == 0)) & ~_is_pole(b), 1.0, outer)
    return np.where(inside, y, outer)


def _far(a: Any, b: Any, x: Any) -> Any:
    """For large x and parameters that are small next to it."""
    sign, size = scipy("gammasgn"), np.abs(x)
    log_gamma = scipy("gammaln")
    series = np.ones_like(size)
    for k in range(7, -1, -1):
        series = 1 + series * (a + k) * (a - b + 1 + k) / ((k + 1) * size)
    below = np.exp(log_gamma(b) - log_gamma(b - a) - a * np.log(size)) * series
    below = np.where(_is_pole(b - a), 0.0, sign(b) * sign(b - a) * below)
    polynomial = _is_pole(a)
    whole = (np.where(polynomial, t, -1.0) for t in (a, b, x))
    beyond = np.where(x < 0, below, sign(a) * sign(b) * np.inf)
    return np.where(_is_pole(b), np.nan, np.where(polynomial, scipy("hyp1f1")(*whole), beyond))


def _recursion(above: list[Any], below: list[Any], x: Any, k: Any, product: Any) -> Any:
    """The ratio of a term to the one before, and its slopes in the parameters."""
    tops, bottoms = [a + k for a in above], [b + k for b in below]
    scale = x / (k + 1) / product(bottoms)
    ratio = scale * product(tops)
    rising = [scale * product(tops[:i] + tops[i + 1 :]) for i in range(len(tops))]
    return ratio, [*rising, *(-ratio / b for b in bottoms)]


def _next(terms: list[Any], ratio: Any, slopes: list[Any]) -> list[Any]:
    first, *others = terms
    rest = [t * ratio + first * s for t, s in zip(others, slopes, strict=True)]
    return [first * ratio, *rest]


def _product(factors: list[Any]) -> Any:
    return math.prod(factors)


def _quick_sum(above: list[Any], below: list[Any], x: Any) -> tuple[list[Any], list[Any]]:
    """The series with parameters above and below, and its derivatives in each of them; and bounds
    of the errors, infinite where there are too many terms."""
    one, count = np.ones_like(x), len(above) + len(below)
    terms = [one, *[0 * one] * count]
    sizes, totals, errors = terms, terms, terms
    unit = np.finfo(np.float64).eps
    for k in range(QUICK):
        ratio, slopes = _recursion(above, below, x, float(k), _product)
        terms = _next(terms, ratio, slopes)
        sizes = _next(sizes, abs(ratio), [abs(s) for s in slopes])
        totals = [s + t for s, t in zip(totals, terms, strict=True)]
        errors = [e + (6 * k + 12) * t for e, t in zip(errors, sizes, strict=True)]
        small = [s <= unit * 1e-3 * abs(y) for s, y in zip(sizes, totals, strict=True)]
        done = np.logical_and.reduce(small) & (abs(ratio) < 0.9)
        if done.all():
            break
    return totals, [np.where(done, unit * e, np.inf) for e in errors]


def _sum(above: list[Decimal], below: list[Decimal], x: Decimal, digits: int) -> list[Decimal]:
    """The same of decimal numbers: not a number at a pole, and where there are too many terms."""
    from decimal import Decimal

    def product(factors: list[Decimal]) -> Decimal:
        return math.prod(factors, start=Decimal(1))

    count = len(above) + len(below)
    terms = [Decimal(1), *[Decimal(0)] * count]
    totals, most = terms, Decimal(1)
    for k in range(TERMS):
        if not all(b + k for b in below):
            break
        ratio, slopes = _recursion(above, below, x, k, product)
        terms = _next(terms, ratio, slopes)
        totals = [s + t for s, t in zip(totals, terms, strict=True)]
        size = max(map(abs, terms))
        most = max(most, size)
        if abs(ratio) < Decimal("0.98") and size < most.scaleb(-digits):
            return totals
    return [Decimal("nan")] * (count + 1)


def _quick_kummer(a: Any, b: Any, x: Any) -> tuple[list[Any], list[Any]]:
    """M and its slopes in a and b, and bounds of their errors; by Kummer's transformation for
    negative x."""
    below, size = x < 0, abs(x)
    (f, fa, fb), (e, ea, eb) = _quick_sum([np.where(below, b - a, a)], [b], size)
    scale = np.where(below, np.exp(-size), 1.0)
    values = [scale * v for v in (f, np.where(below, -fa, fa), np.where(below, fa + fb, fb))]
    return values, [scale * v for v in (e, ea, np.where(below, ea + eb, eb))]


def _kummer(a: float, b: float, x: float) -> list[Decimal]:
    """The same of decimal numbers."""
    from decimal import Decimal, localcontext

    digits = int(40 + 2 * (abs(x) + math.sqrt(abs(a * x))) / LOG10 + abs(b))
    with localcontext() as context:
        context.prec = digits
        return _sum([Decimal(a)], [Decimal(b)], Decimal(x), digits)


def _quick_gauss(a: Any, b: Any, c: Any, x: Any) -> tuple[list[Any], list[Any]]:
    """F and its slopes in a, b and c, and bounds of their errors; by Pfaff's transformation for
    negative x."""
    below = x < 0
    q, z = np.where(below, c - b, b), np.where(below, x / (x - 1), x)
    (f, fa, fb, fc), (e, ea, eb, ec) = _quick_sum([a, q], [c], z)
    log = np.where(below, np.log1p(np.where(below, -x, 0.0)), 0.0)
    scale = np.exp(-a * log)
    values = [f, fa - log * f, np.where(below, -fb, fb), np.where(below, fb + fc, fc)]
    errors = [e, ea + log * e, eb, np.where(below, eb + ec, ec)]
    # What the power of 1 - x adds.
    more = np.finfo(np.float64).eps * (2 + abs(a * log))
    return [scale * v for v in values], [
        scale * (e + more * abs(v)) for v, e in zip(values, errors, strict=True)
    ]


def _gauss(a: float, b: float, c: float, x: float) -> list[Decimal]:
    """The same of decimal numbers."""
    from decimal import Decimal, localcontext

    digits = int(50 + abs(a) + abs(b) + abs(c))
    with localcontext() as context:
        context.prec = digits
        p, q, r, z = map(Decimal, (a, b, c, x))
        if x >= 0:
            return _sum([p, q], [r], z, digits)
        f, fa, fb, fc = _sum([p, r - q], [r], z / (z - 1), digits)
        log = (1 - z).ln()
        scale = (-p * log).exp()
        return [scale * t for t in (f, fa - log * f, -fb, fb + fc)]


def _slope(quick: Any, exact: Any, which: int, largest: float, end: float) -> Any:
    """A derivative as a function of arrays: NaN for parameters that are too large, and arguments
    from `end` on."""

    @in_double
    def slope(*arrays: Any) -> Any:
        *parameters, x = np.broadcast_arrays(*arrays)
        good = (x >= -1e3) & (x < end)
        for p in parameters:
            good = good & (abs(p) <= largest)
        with np.errstate(all="ignore"):
            values, errors = quick(*(t[good] for t in (*parameters, x)))
            fine = np.isfinite(values[which]) & (errors[which] <= GOOD * abs(values[which]))
            found = np.where(fine, values[which], np.nan)
        y = np.full(x.shape, np.nan)
        y[good] = found
        for i in map(tuple, np.argwhere(good & np.isnan(y))):
            y[i] = exact(*(float(t[i]) for t in (*parameters, x)))[which]
        return y

    return slope


hyp1f1_da, hyp1f1_db = (_slope(_quick_kummer, _kummer, i, 1e3, 1e3) for i in (1, 2))
hyp2f1_da, hyp2f1_dc = (_slope(_quick_gauss, _gauss, i, 200.0, 1.0) for i in (1, 3))
