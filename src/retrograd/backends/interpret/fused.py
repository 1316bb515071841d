"""`a * b + c` rounded once, in NumPy, which rounds twice.

By rounding to odd in more precision first: S. Boldo and G. Melquiond, "Emulation of FMA and
correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57
(2008). Where a sum is not exact, the one of its neighbours with an odd last bit stands for it:
rounded once more, to fewer bits, it gives what the sum itself would have.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# What it takes in the time of one element of an operation of NumPy: for each element, and besides.
EACH = {"f32": 8, "f64": 32}
STEP = {"f32": 1 << 14, "f64": 1 << 15}
FEW = 24  # elements for each of which the C library is asked
SPLIT = 2.0**27 + 1  # times a float64, leaves its upper half
RANGE = 2.0**-250, 2.0**250  # of factors whose products, and what these lack, are all exact


def fused(a: Any, b: Any, c: Any) -> Any:
    """The exact sum, rounded, of arrays or numbers of float32, or of float64 that are few, or
    `within_range`."""
    if c.dtype == np.float32:
        return _single(a, b, c)
    return np.asarray(_library()(a, b, c), np.float64) if are_few(a, b, c) else _double(a, b, c)


def are_few(*arrays: Any) -> bool:
    """Whether float64 are so few that they are done one by one, whatever their range."""
    return max([x.size for x in arrays]) <= FEW and _library() is not None


@functools.cache
def _library() -> Any:
    """The function of the C library for arrays, if that is at hand and rounds once."""
    try:
        f = ctypes.CDLL(None).fma
    except (TypeError, OSError, AttributeError):
        return None
    f.argtypes, f.restype = [ctypes.c_double] * 3, ctypes.c_double
    tiny = 2.0**-27
    exact = f(1 + tiny, 1 + tiny, -(1 + 2 * tiny)) == tiny * tiny  # 0 where the product is rounded
    return np.frompyfunc(f, 3, 1) if exact else None


def within_range(*arrays: Any) -> bool:
    """Whether `fused` is right for these factors, and for sums of products of them."""
    return all(x.dtype == np.float32 or _in_range(np.abs(x)) for x in arrays)


def _in_range(sizes: Any) -> bool:
    low, high = RANGE
    if not np.ndim(sizes):
        return bool(sizes == 0 or not sizes < low) and bool(sizes == np.inf or not sizes > high)
    return not (((sizes < low) & (sizes > 0)) | ((sizes > high) & (sizes < np.inf))).any()


def _single(a: Array, b: Array, c: Array) -> Array:
    """A product of float32 is exact as float64, whose range no sum leaves."""
    total, rest = _sum(np.multiply(a, b, dtype=np.float64), c.astype(np.float64))
    return _to_odd(total, rest).astype(np.float32)


def _double(a: Array, b: Array, c: Array) -> Array:
    high, low = _product(a, b)
    up, less = _sum(c, low)
    top, more = _sum(high, up)
    # Zeros have no rest, but signs; and nothing is rounded of what is not finite.
    plain = high + c
    exact = (high == 0) | ~np.isfinite(plain)
    found: Array = np.where(exact, plain, top + _to_odd(*_sum(less, more)))
    return found


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """A sum, and what it lacks (D. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """A product, and what it lacks (T. Dekker)."""
    product = a * b
    (p, q), (r, s) = _halves(a), _halves(b)
    return product, q * s - (((product - p * r) - q * r) - p * s)


def _halves(x: Array) -> tuple[Array, Array]:
    high = x * SPLIT
    high = high - (high - x)
    return high, x - high


def _to_odd(total: Array, rest: Array) -> Array:
    """A rounded sum that lacks `rest`, rounded to odd instead: towards zero, and then to the odd
    one of two neighbours. Where it is not finite, it stays."""
    total, rest = np.asarray(total), np.asarray(rest)
    bits = total.view(np.int64)
    inexact = np.abs(rest) > 0
    beyond = inexact & (bits ^ rest.view(np.int64) < 0)
    found: Array = (bits - beyond | inexact).view(np.float64)
    return found
