"""What elementary functions mean on NumPy's arrays, where that is not NumPy's own function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def each(f: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python floats applied to each element, in double precision."""
    all_of = np.vectorize(f, otypes=[np.float64])
    return lambda x: all_of(x).astype(x.dtype)


def sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def expm1(x: Any) -> Any:
    """Of complex numbers whose real part is not finite NumPy has NaN where more is known."""
    y = np.expm1(x)
    return np.where(np.isfinite(x.real), y, np.exp(x) - 1) if x.dtype.kind == "c" else y


def nextafter(a: Any, b: Any) -> Any:
    """Of equal numbers the second, as in C; of zeros in half precision NumPy takes the first."""
    return np.where(a == b, b, np.nextafter(a, b))


def floor_div(a: Any, b: Any) -> Any:
    """Toward minus infinity. Integers wrap as their arithmetic does, and `a // 0` is 0."""
    if a.dtype.kind not in "iu":
        return np.floor_divide(a, b)
    whole = np.floor_divide(a, np.where((b == 0) | (b == -1), 1, b))
    return np.where(b == 0, 0, np.where(b == -1, np.negative(a), whole))


def mod(a: Any, b: Any) -> Any:
    """What `floor_div` leaves, with the sign of `b`; of integers, `a mod 0` is `a`."""
    return a - floor_div(a, b) * b if a.dtype.kind in "iu" else np.remainder(a, b)


def pow(a: Any, b: Any) -> Any:
    """Of integers: wraps, and a negative exponent gives 0."""
    return np.where(b < 0, 0, np.power(a, np.maximum(b, 0))) if a.dtype.kind == "i" else a**b


def max(a: Any, b: Any) -> Any:
    """The maximum of IEEE 754: NaN if one is NaN, and 0.0 of 0.0 and -0.0, of which NumPy takes
    either."""
    y = np.maximum(a, b)
    if y.dtype.kind in "biu":
        return y
    with np.errstate(all="ignore"):
        return np.where((a == 0) & (b == 0), a + b, y)


def min(a: Any, b: Any) -> Any:
    """The minimum of IEEE 754: NaN if one is NaN, and -0.0 of 0.0 and -0.0."""
    y = np.minimum(a, b)
    if y.dtype.kind in "biu":
        return y
    with np.errstate(all="ignore"):
        return np.where((a == 0) & (b == 0), -(-a - b), y)


def shift_left(a: Any, b: Any) -> Any:
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0)


def shift_right(a: Any, b: Any) -> Any:
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    sign_bits = np.where(a < 0, -1, 0).astype(a.dtype)
    return np.where(inside, np.right_shift(a, np.where(inside, b, 0)), sign_bits)
