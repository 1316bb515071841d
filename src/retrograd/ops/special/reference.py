"""What special functions mean on NumPy's arrays: SciPy's functions, in double precision, and the
formulas of `incomplete`, which hold where SciPy's lose digits and give derivatives that it lacks.

SciPy is imported by the first function that needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError
from retrograd.lazy_import import need
from retrograd.ops.special import incomplete
from retrograd.ops.special.asymptotic_series import DIGAMMA_SERIES, STIRLING_SERIES
from retrograd.ops.special.incomplete.quadrature import Point, one_by_one

Meaning = Callable[..., Any]
HIGHEST_ORDER = 31  # of Bessel functions


def scipy(name: str) -> Any:
    """A function of `scipy.special`."""
    return getattr(need("scipy.special", f"{name}, computed by SciPy here,"), name)


def in_double(f: Meaning) -> Meaning:
    """A function of double precision on arrays of any."""

    def meaning(*arrays: Any) -> Any:
        y = f(*[np.asarray(x, np.float64) for x in arrays])
        return np.asarray(y).astype(arrays[0].dtype)

    return meaning


def from_scipy(name: str) -> Meaning:
    return in_double(lambda *arrays: scipy(name)(*arrays))


TINY = 2.0**-1000  # up to where the first term at a pole is all; SciPy is wrong at subnormals


def k0e(x: Any) -> Any:
    """SciPy's; near 0, where it overflows, `-log(x / 2) - gamma`."""
    with np.errstate(all="ignore"):
        near = math.log(2) - np.euler_gamma - np.log(x)
        return np.where((x > 0) & (x < TINY), near, scipy("k0e")(x))


def k1e(x: Any) -> Any:
    """SciPy's; near 0, where it is NaN, `1 / x`."""
    with np.errstate(all="ignore"):
        return np.where((x > 0) & (x < TINY), 1 / x, scipy("k1e")(x))


def of_order(name: str) -> Meaning:
    """The same of a function whose first argument is a whole number; NaN for any other, of which
    SciPy would take a part, with a warning."""

    def f(n: Any, *rest: Any) -> Any:
        whole = (np.abs(n) < 2**31) & (np.trunc(n) == n)
        with np.errstate(invalid="ignore"):
            order = np.where(whole, n, 0).astype(np.int64)
        return np.where(whole, scipy(name)(order, *rest), np.nan)

    return in_double(f)


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


class NumPyIncompleteMath:
    """NumPy's doubles, as the formulas of `incomplete` want them."""

    exp, expm1, log, log1p, sqrt, sin = np.exp, np.expm1, np.log, np.log1p, np.sqrt, np.sin
    choose = staticmethod(np.where)

    def expm1_rest(self, x: Any) -> Any:
        near = np.abs(x) < 0.5
        t = np.where(near, x, 0.0)
        series = _polynomial(t, [1 / math.factorial(k) for k in range(2, 18)])
        return np.where(near, series * t * t, np.expm1(x) - x)

    def log1p_rest(self, x: Any) -> Any:
        """By `log(1 + x) = 2 atanh(s)` of `s = x / (2 + x)`."""
        near = np.abs(x) < 0.45
        t = np.where(near, x, 0.0)
        s = t / (2 + t)
        series = s * s * _polynomial(s * s, [2 / (2 * k + 1) for k in range(1, 19)])
        return np.where(near, s * (series - t), np.log1p(x) - x)

    def stirling(self, a: Any) -> Any:
        inverse = 1 / np.maximum(a, 10)
        far = inverse * _polynomial(inverse * inverse, STIRLING_SERIES)
        near = lgamma(a) - ((a - 0.5) * np.log(a) - a + 0.5 * math.log(2 * math.pi))
        return np.where(a < 10, near, far)

    def digamma(self, a: Any) -> Any:
        return digamma(a)

    def digamma_rest(self, a: Any) -> Any:
        inverse = 1 / np.maximum(a, 10)
        far = inverse * (0.5 + inverse * _polynomial(inverse * inverse, DIGAMMA_SERIES))
        return np.where(a < 10, np.log(a) - digamma(a), far)

    def trigamma(self, a: Any) -> Any:
        return scipy("zeta")(2.0, a)

    def log_gamma_near_two(self, t: Any) -> Any:
        """The series with zeta at the whole numbers."""
        k = np.arange(2, 45)
        c = (-1.0) ** k * (scipy("zeta")(k.astype(float)) - 1) / k
        return t * _polynomial(t, [1 - np.euler_gamma, *c])

    def bessel_ratio(self, k: Any) -> Any:
        return scipy("i1e")(k) / scipy("i0e")(k)

    def sums(self, half: Any, zero: Any, point: Point, count: int) -> Any:
        return one_by_one(self, half, zero, point, count)

    def loop(self, count: int, body: Callable[..., tuple[Any, ...]], *state: Any) -> Any:
        for _ in range(count):
            state = body(*state)
        return state


def from_formula(name: str) -> Meaning:
    formula = incomplete.FUNCTIONS[name]
    return in_double(lambda *arrays: formula(NumPyIncompleteMath(), *arrays))


@in_double
def zeta(s: Any, q: Any) -> Any:
    """With positive arguments only, as SciPy's takes time proportional to a negative one."""
    s = np.minimum(s, 1e300)
    f = q - np.floor(q)
    positive = scipy("zeta")
    sign = np.where(np.mod(s, 2) == 1, -1.0, 1.0)
    below = positive(s, f) + sign * (positive(s, 1 - f) - positive(s, 1 - q))
    below = np.where(np.trunc(s) == s, below, np.nan)
    y = np.where(q < 0, below, positive(s, np.where(q < 0, 1.0, q)))
    # SciPy's sum has no step where s is beyond 2**53; the first term is the sum there.
    y = np.where((q > 1) & (s > 1e16), np.power(np.maximum(q, 1.0), -s), y)
    y = np.where((q <= 0) & (np.trunc(q) == q), np.inf, y)
    y = np.where((q == np.inf) & (s > 1), 0.0, np.where(s == 1, np.inf, y))
    return np.where((s >= 1) & (q > -np.inf), y, np.nan)


def _lgamma_of_one(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at a pole, and where it is too large
        return math.inf


def _gamma_of_one(x: float) -> float:
    try:
        return math.gamma(x)
    except ValueError:  # at a pole, which has a sign only at 0
        return math.copysign(math.inf, x) if x == 0 else math.nan
    except OverflowError:  # below 0 it is too small before it could be too large
        return math.copysign(math.inf, x)


# By Python, one number at a time, so that what is common needs no SciPy.
def _lgamma(x: Any) -> Any:
    """SciPy's where it is installed: Python's has 20 ulp near its zeros, 1 and 2. Near 0, where
    SciPy's overflows, `-log(|x|)`."""
    try:
        with np.errstate(all="ignore"):
            y = np.where(np.isneginf(x), np.inf, scipy("gammaln")(x))
            return np.where((np.abs(x) < TINY) & (x != 0), -np.log(np.abs(x)), y)
    except BackendError:
        return np.vectorize(_lgamma_of_one, otypes=[np.float64])(x)


def _digamma(x: Any) -> Any:
    """SciPy's where it is installed."""
    try:
        return scipy("digamma")(x)
    except BackendError:
        return digamma_by_series(x)


SHIFT = 16  # steps of the recurrence, after which the series of digamma has all digits


def digamma_by_series(x: Any) -> Any:
    """`psi(x + 16)` by its asymptotic series, less the steps `1 / (x + k)`, smallest first; below 0
    `psi(1 - x) - pi cot(pi x)`. NaN at the poles but for zero."""
    with np.errstate(all="ignore"):
        negative = x < 0
        u = np.where(negative, 1 - x, x)
        far = u >= SHIFT
        z = np.where(far, u, u + SHIFT)
        inverse = 1 / z
        y = np.log(z) - inverse * (0.5 + inverse * _polynomial(inverse * inverse, DIGAMMA_SERIES))
        steps = sum(1 / (u + k) for k in range(SHIFT - 1, -1, -1))
        y = np.where(far, y, y - steps)
        turn = np.where(negative, x - np.rint(x), 0.25)
        turned = np.where(turn == 0, np.nan, y - np.pi / np.tan(np.pi * turn))
        return np.where(x == 0, -1 / x, np.where(negative, turned, y))


lgamma = in_double(_lgamma)
digamma = in_double(_digamma)
gamma = in_double(np.vectorize(_gamma_of_one, otypes=[np.float64]))


@in_double
def betaln(a: Any, b: Any) -> Any:
    """By Stirling's formula where both are positive, where no large numbers cancel. Where one is a
    pole of the gamma function it is finite only if the other is whole and their sum a pole, too:
    `|B(a, b)| = B(1 - a - b, b)`."""
    low, high = np.where(a < b, a, b), np.where(a < b, b, a)
    whole_low, whole_high = np.floor(low) == low, np.floor(high) == high
    pole = (whole_low & (low <= 0)) | (whole_high & (high <= 0))
    finite = pole & (high > 0) & whole_high & (low + high <= 0)
    a, b = np.where(finite, 1 - (low + high), a), np.where(finite, high, b)
    low, high = np.where(a < b, a, b), np.where(a < b, b, a)
    good = (low > 0) & (low + high < np.inf)
    u, v = np.where(good, low, 1.0), np.where(good, high, 1.0)
    c, m = u + v, NumPyIncompleteMath()
    y = (0.5 - v) * np.log1p(u / v) + (u - 0.5) * np.log(u) - u * np.log(c)
    y = y + 0.5 * math.log(2 * math.pi) + (m.stirling(u) - m.stirling(c) + m.stirling(v))
    w = lgamma(a) + lgamma(b) - lgamma(a + b)
    w = np.where((low + high == np.inf) & (low > 0), -np.inf, w)
    return np.where(good, y, np.where(pole & ~finite, np.inf, w))


def _bell(x: Any, c: float) -> Any:
    """`exp(c x**2)`: of `x = h + r` the square of h is exact, and what r adds to it small."""
    a = np.clip(x, -1e3, 1e3)
    h = np.rint(a * 2.0**14) * 2.0**-14
    return np.exp(c * (h * h)) * np.exp(c * ((a - h) * (a + h)))


@in_double
def erfcx(x: Any) -> Any:
    """Below 0 without the error of the square, which SciPy's has in its exponential."""
    y = scipy("erfcx")(np.abs(x))
    return np.where(x < 0, 2 * _bell(x, 1.0) - y, y)


@in_double
def ndtr(x: Any) -> Any:
    """The same for its lower tail."""
    low = x < -1
    tail = 0.5 * scipy("erfcx")(np.where(low, x, -1.0) * -math.sqrt(0.5)) * _bell(x, -0.5)
    return np.where(low, tail, scipy("ndtr")(x))


def trigamma(x: Any) -> Any:
    return zeta(np.full_like(x, 2), x)


def bessel(name: str, order: int | None = None) -> Meaning:
    """`jv`, `yv` or `ive` of whole orders, which vanish at infinity, where they are real."""

    @in_double
    def meaning(*arrays: Any) -> Any:
        n, x = arrays if order is None else (np.float64(order), *arrays)
        good = (np.trunc(n) == n) & (np.abs(n) <= HIGHEST_ORDER)
        endless = np.isinf(x)
        y = scipy(name)(np.where(good, n, 0.0), np.where(endless, np.copysign(1.0, x), x))
        if name == "jv":  # the first term of the series, of which SciPy loses digits
            y = np.where((np.abs(n) == 1) & (np.abs(x) < 1e-8), 0.5 * n * x, y)
        return np.where(good, np.where(endless, np.abs(0.0 * y), y), np.nan)

    return meaning
