"""Regions of inputs: boxes, and balls in a norm, of which the box around them counts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from retrograd.errors import DTypeError, OptionError, ShapeError

Array = np.ndarray[Any, Any]


class Round(NamedTuple):
    """What is within `radius` of `centre` in a norm, with the rounding of its elements."""

    centre: Array
    radius: float
    norm: float

    def holds(self, x: Array) -> bool:
        away = (np.asarray(x, np.float64) - self.centre).ravel()
        return bool(np.linalg.norm(away, self.norm) <= self.radius)


class Box:
    """All arrays between `lower` and `upper`, elementwise; the ends belong to it.

    The two have one shape and dtype once they are broadcast and promoted: real numbers, integers or
    booleans. Ends may be infinite, an infinite one stands for that value too. NaN, and `lower >
    upper` anywhere, are errors.

    >>> import retrograd as rg
    >>> rg.verify.Box([0.0, 1.0], [1.0, 2.0])
    Box([0. 1.], [1. 2.], float32)
    """

    __slots__ = ("lower", "round", "upper")
    lower: Array
    upper: Array
    round: Round | None  # the ball that it is the box around

    def __init__(self, lower: Any, upper: Any, round: Round | None = None) -> None:
        low, high = _array(lower, "lower"), _array(upper, "upper")
        try:
            shape = np.broadcast_shapes(low.shape, high.shape)
        except ValueError:
            raise ShapeError(
                f"a Box of lower {low.shape} and upper {high.shape}: the shapes differ and do not "
                "broadcast"
            ) from None
        dtype = low.dtype if low.dtype == high.dtype else np.result_type(low.dtype, high.dtype)
        for name, x in (("lower", low), ("upper", high)):
            if x.dtype.kind not in "iub" and np.isnan(x.astype(np.float64)).any():
                raise OptionError(f"a Box with NaN in {name}: nothing is between that and a number")
        low, high = (np.broadcast_to(x, shape).astype(dtype) for x in (low, high))
        empty = low > high
        if empty.any():
            at = tuple(map(int, np.argwhere(empty)[0]))
            raise OptionError(
                f"an empty Box: lower {low[at]} > upper {high[at]} at {at}, one of "
                f"{int(empty.sum())} such elements; swap them, or take their minimum and maximum"
            )
        for x in (low, high):
            x.setflags(write=False)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "round", round)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Box does not change; make another one to set {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Box, (self.lower, self.upper, self.round)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def dtype(self) -> Any:
        """The dtype of both ends, NumPy's."""
        return self.lower.dtype

    def __repr__(self) -> str:
        return f"Box({self.lower}, {self.upper}, {self.dtype})"

    def __contains__(self, x: Any) -> bool:
        found = _array(x, "the point")
        inside = found.shape == self.shape and bool(
            ((self.lower <= found) & (found <= self.upper)).all()
        )
        return inside and (self.round is None or self.round.holds(found))


def _array(value: Any, name: str) -> Array:
    """An array of real numbers; Python's floats are float32, as everywhere in retrograd."""
    is_plain = not hasattr(value, "dtype")
    try:
        x = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"a Box of {name}={value!r}: no array ({error})") from None
    if is_plain and x.dtype == np.float64:
        x = x.astype(np.float32)
    if x.dtype.kind in "cOSUMmV" and x.dtype.name not in ("bfloat16",):
        raise DTypeError(
            f"a Box of {name} of dtype {x.dtype}: its ends are real numbers, integers or booleans"
        )
    return x


def ball(x: Any, eps: Any, norm: float = math.inf, clip: tuple[Any, Any] | None = None) -> Box:
    """The box around all arrays within `eps` of `x` in a norm: `x - eps` to `x + eps`.

    Of a ball in another norm than `inf` intervals see the box around it; linear bounds go by the
    norm that is dual to it. The ends are rounded outward in the dtype of x, so that each `x + d`
    with `|d| <= eps` is inside, exact and rounded. With `clip=(low, high)` what is beyond is cut
    off, as values of pixels beyond 0 and 1 are.

    >>> import retrograd as rg
    >>> rg.verify.ball([0.0, 1.0], 0.5, clip=(0, 1))
    Box([0.  0.5], [0.5 1. ], float32)
    """
    centre = _array(x, "the centre")
    if centre.dtype.kind in "iub":
        raise DTypeError(f"a ball around {centre.dtype}: write a Box of integers with its ends")
    if not (isinstance(norm, int | float) and norm >= 1):
        raise OptionError(f"a ball in the norm {norm!r}: norms are numbers of at least 1, or inf")
    radius = np.asarray(eps, np.float64)
    if np.isnan(radius).any() or (radius < 0).any():
        raise OptionError(f"a ball of eps={eps!r}: a radius is not negative, and not NaN")
    middle = centre.astype(np.float64)
    low, high = (_outward(middle, by, centre.dtype) for by in (-radius, radius))
    if clip is not None:
        if not isinstance(clip, tuple | list) or len(clip) != 2:
            raise OptionError(f"clip={clip!r}: it is a pair, the least and the greatest value")
        ends = [np.asarray(c).astype(centre.dtype) for c in clip]
        low, high = (np.clip(v, *ends).astype(centre.dtype) for v in (low, high))
    if norm == math.inf:
        return Box(low, high)
    if radius.ndim or not np.isfinite(radius):
        raise OptionError(f"a ball of eps={eps!r} in the norm {norm!r}: its radius is one number")
    share, least = float(_spacing(centre.dtype)), float(np.abs(middle).max(initial=0.0))
    size = float(np.linalg.norm(middle.ravel() / (least or 1.0), norm)) * least + float(radius)
    within = (float(radius) + share * size) * (1 + 1e-12) + 1e-30
    return Box(low, high, Round(middle, within, float(norm)))


def _spacing(dtype: Any) -> Any:
    return ml_dtypes.finfo(dtype).eps


def _outward(x: Array, by: Array, dtype: Any) -> Array:
    """`x + by` as the nearest number of the dtype that is not inside of it."""
    total = x + by
    part = total - x
    lost = (x - (total - part)) + (by - part)  # exactly what the sum rounded off (Knuth's TwoSum)
    y = total.astype(np.float32) if np.dtype(dtype).itemsize == 2 else total
    y = np.asarray(y.astype(dtype))
    found = y.astype(np.float64)
    below = (found < total) | ((found == total) & (lost > 0))
    above = (found > total) | ((found == total) & (lost < 0))
    away = np.where(by < 0, -np.inf, np.inf).astype(dtype)
    return np.where(np.where(by < 0, above, below), np.nextafter(y, away), y).astype(dtype)
