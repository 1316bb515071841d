"""`Interval`: what the elements of an array can be, and how far rounding may move them.

The endpoints are float64 whatever the dtype is. An interval encloses each value twice: as exact
arithmetic has it, and as any backend computes it in its own dtype. Rounding to nearest is monotone,
so an operation that is rounded once needs no more than its endpoints and their roundings: what is
not negative stays so, and an exact result is not widened. Other operations are widened by a
relative error first. An infinite end stands for that value too, by overflow or division by zero.

`nan` says where the value may be NaN; no interval holds that.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Self

import ml_dtypes
import numpy as np

from retrograd.ir import DType, TensorType, bfloat16, bool_, evaluate
from retrograd.ir import float16 as half
from retrograd.ir import float32 as single

Array = np.ndarray[Any, Any]
INF = math.inf
EPS = 2.0**-52  # distance of 1 from the next float64
MOST = float(np.finfo(np.float64).max)


class Interval(NamedTuple):
    """Ends of intervals, float64 arrays of one shape, and where NaN is possible."""

    lower: Array
    upper: Array
    nan: Any = False  # an array of booleans, or one of them for all elements

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def is_point(self) -> bool:
        """Whether every element is one number, that a backend computes without error."""
        same = self.lower is self.upper or bool((self.lower == self.upper).all())
        return same and not np.any(self.nan)

    @property
    def mid(self) -> Array:
        """A finite number inside of each interval, its middle where it is finite."""
        low = np.clip(self.lower, -1e308, 1e308)
        if self.upper is self.lower:
            return low
        high = np.clip(self.upper, -1e308, 1e308)
        return np.asarray(low / 2 + high / 2)

    @property
    def size(self) -> Array:
        """The largest magnitude."""
        low = np.abs(self.lower)
        return low if self.upper is self.lower else np.maximum(low, np.abs(self.upper))

    @property
    def has_zeros(self) -> bool:
        """Whether some element is surely 0."""
        return not self.size.all()

    def norms(self, axes: tuple[int, ...]) -> Array:
        """Euclidean norms of the magnitudes along some axes, relatively as exact as a sum of
        squares is: no square is too large or too small for float64."""
        greatest = self.size.max(axes, keepdims=True, initial=0.0)
        scaled = self.size / np.where(greatest == 0, 1.0, greatest)
        return np.asarray(greatest.squeeze(axes) * np.sqrt(np.square(scaled).sum(axes)))

    @property
    def is_finite(self) -> bool:
        """Whether every element is a finite number."""
        ends = (self.lower,) if self.upper is self.lower else (self.lower, self.upper)
        return self.nan is False and all(np.isfinite(v).all() for v in ends)


class ConstantInterval(Interval):
    """That of a constant, of which what is asked for often is found once."""

    @functools.cached_property
    def size(self) -> Array:
        return super().size

    @functools.cached_property
    def is_finite(self) -> bool:
        return super().is_finite

    @functools.cached_property
    def has_zeros(self) -> bool:
        return super().has_zeros

    @functools.cached_property
    def _norms(self) -> dict[tuple[int, ...], Array]:
        return {}

    def norms(self, axes: tuple[int, ...]) -> Array:
        if axes not in self._norms:
            self._norms[axes] = super().norms(axes)
        return self._norms[axes]


class RoundInterval(Interval):
    """The box around a ball, which linear bounds know."""

    round: Any

    def __new__(cls, box: Interval, round: Any) -> Self:
        new = super().__new__(cls, *box)
        new.round = round
        return new


class Rectangle(NamedTuple):
    """What complex numbers can be: a real and an imaginary part, each on its own."""

    real: Interval
    imag: Interval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.real.shape

    @property
    def is_point(self) -> bool:
        return self.real.is_point and self.imag.is_point


class FloatLimits(NamedTuple):
    """A floating dtype: distance of 1 from the next number, least normal and greatest number."""

    eps: float
    tiny: float
    most: float


def _format(dtype: DType) -> FloatLimits:
    found = ml_dtypes.finfo(dtype.dtype)
    return FloatLimits(float(found.eps), float(found.tiny), float(found.max))


FORMATS: dict[str, FloatLimits] = {}


def format_of(dtype: DType) -> FloatLimits:
    """That of a floating dtype, or of the parts of a complex one."""
    dtype = dtype.real
    if dtype.name not in FORMATS:
        FORMATS[dtype.name] = _format(dtype)
    return FORMATS[dtype.name]


def accumulator(dtype: DType) -> FloatLimits:
    """The format in which numbers of a dtype are added up: half precision in float32."""
    return format_of(single if dtype.is_half else dtype)


# -- making them ----------------------------------------------------------------------------------


def point(value: Any) -> Interval:
    """The interval of an array that is known; of integers that float64 does not have, both
    neighbours."""
    value = np.asarray(value)
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8:
        return _whole(value)
    x = value.astype(np.float64)
    nan = np.isnan(x)
    if not nan.any():
        return Interval(x, x)
    return Interval(np.where(nan, -INF, x), np.where(nan, INF, x), nan)


def _whole(value: Array) -> Interval:
    x = value.astype(np.float64)
    if not value.size or (np.abs(x) < 2.0**53).all():
        return Interval(x, x)
    beyond = np.abs(x) >= 2.0**53
    return Interval(
        np.where(beyond, np.nextafter(x, -INF), x), np.where(beyond, np.nextafter(x, INF), x)
    )


def known(value: Any) -> Interval | Rectangle:
    """The interval or rectangle of an array."""
    value = np.asarray(value)
    if value.dtype.kind == "c":
        return Rectangle(point(value.real), point(value.imag))
    return point(value)


def full(type: TensorType, lower: float, upper: float, nan: bool = False) -> Interval:
    """One interval for all elements."""
    shape = tuple(evaluate(d, {}) for d in type.shape)
    return Interval(
        np.broadcast_to(np.float64(lower), shape), np.broadcast_to(np.float64(upper), shape), nan
    )


def ends_of(dtype: DType) -> tuple[float, float]:
    """The least and the greatest value of a dtype, rounded outward."""
    if dtype is bool_:
        return 0.0, 1.0
    if dtype.is_integer:
        ends = np.iinfo(dtype.dtype)
        return float(ends.min), float(ends.max)
    return -INF, INF


def anything(type: TensorType, nan: bool = True) -> Interval | Rectangle:
    """All values of a dtype: what is known of what nothing is known of."""
    lower, upper = ends_of(type.dtype)
    part = full(type, lower, upper, nan and type.dtype.is_inexact)
    return Rectangle(part, part) if type.dtype.is_complex else part


def either(*nans: Any) -> Any:
    """Where one of several may be NaN."""
    found: Any = False
    for nan in nans:
        if nan is not False:
            found = nan if found is False else np.logical_or(found, nan)
    return found


def where_nan(mask: Any) -> Any:
    """A mask, or False if it marks nothing."""
    return mask if np.any(mask) else False


# -- rounding -------------------------------------------------------------------------------------


def down(x: Any) -> Array:
    return np.asarray(np.nextafter(x, -INF))


def up(x: Any) -> Array:
    return np.asarray(np.nextafter(x, INF))


def to_dtype(x: Array, dtype: DType) -> Array:
    """Rounded to nearest, as a dtype has it."""
    with np.errstate(all="ignore"):
        if dtype.is_half:
            x = x.astype(np.float32)
        return np.asarray(x.astype(dtype.dtype).astype(np.float64))


def rounded(lower: Any, upper: Any, dtype: DType, nan: Any = False) -> Interval:
    """Exact results between two numbers, and what they are rounded to: to the dtype, to wider ones
    on the way, and subnormal numbers to zero where a backend does that."""
    dtype = dtype.real
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    if not dtype.is_float:
        return Interval(lower, upper, nan)
    own = [half, single] if dtype is half else [bfloat16, single] if dtype.is_half else [dtype]
    low, high = lower, upper
    for kind in own:
        if kind.itemsize < 8:
            low = np.minimum(low, to_dtype(lower, kind))
            high = np.maximum(high, to_dtype(upper, kind))
    return flushed(low, high, dtype, nan)


def flushed(lower: Array, upper: Array, dtype: DType, nan: Any = False) -> Interval:
    """With zero in the place of subnormal numbers."""
    tiny = format_of(dtype).tiny
    low = (lower > 0) & (lower < tiny)
    high = (upper < 0) & (upper > -tiny)
    if low.any():
        lower = np.where(low, 0.0, lower)
    if high.any():
        upper = np.where(high, 0.0, upper)
    return Interval(lower, upper, nan)


def computed(lower: Any, upper: Any, dtype: DType, nan: Any = False) -> Interval:
    """Results whose ends float64 computed with one rounding, and the dtype rounds once."""
    return rounded(down(lower), up(upper), dtype, nan)


def widened(
    lower: Any, upper: Any, dtype: DType, ulps: float, nan: Any = False, absolute: Any = 0.0
) -> Interval:
    """Ends moved outward by a relative error, in units of the dtype that computes (of halves,
    float32), and an absolute one; then rounded. A relative error changes no sign."""
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    kind = accumulator(dtype)
    share = ulps * kind.eps + 4 * EPS
    least = ulps * kind.tiny * kind.eps  # a few of the least subnormal numbers
    with np.errstate(all="ignore"):
        by = np.abs(lower) * share + absolute + np.where(np.abs(lower) < 2 * kind.tiny, least, 0)
        low = np.where(np.isinf(lower), np.clip(lower, -INF, MOST), np.fmin(down(lower - by), MOST))
        by = np.abs(upper) * share + absolute + np.where(np.abs(upper) < 2 * kind.tiny, least, 0)
        high = np.where(np.isinf(upper), np.clip(upper, -MOST, INF), np.fmax(up(upper + by), -MOST))
    keeps = np.asarray(absolute) == 0
    low = np.where(keeps & (lower >= 0), np.maximum(low, 0.0), low)
    high = np.where(keeps & (upper <= 0), np.minimum(high, 0.0), high)
    return rounded(low, high, dtype, nan)


def hull(a: Interval, b: Interval) -> Interval:
    """What is in one of two."""
    return Interval(
        np.minimum(a.lower, b.lower), np.maximum(a.upper, b.upper), either(a.nan, b.nan)
    )


def meet(a: Interval, b: Interval) -> Interval:
    """What is in both of two enclosures of one value."""
    nan = False if a.nan is False or b.nan is False else where_nan(np.logical_and(a.nan, b.nan))
    low, high = np.maximum(a.lower, b.lower), np.minimum(a.upper, b.upper)
    return Interval(np.minimum(low, high), np.maximum(low, high), nan)
