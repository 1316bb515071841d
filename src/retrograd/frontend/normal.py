"""Normal random numbers from random bits, with correctly rounded operations only.

Inversion: `z = Phi^-1(u)` by the rational approximations of M. J. Wichura, "Algorithm AS 241: the
percentage points of the normal distribution", Applied Statistics 37 (1988), accurate to about 1e-7
(PPND7, for float32 and below) and 1e-16 (PPND16, for float64). The logarithm it needs in the tails
is computed here by additions, products and quotients as well, since a mathematics library's `log`
differs in the last bit from machine to machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.ir import DType, Node, float32, float64, full, int32, int64
from retrograd.ops import elementwise as el
from retrograd.ops.random import RandomBits
from retrograd.ops.series import PPND16
from retrograd.ops.shape import reshape, slice_axis

# Numerator and denominator coefficients, constant term first, for the centre |u - 1/2| <= 0.425,
# and the tails sqrt(-log p) <= 5 and beyond.
PPND7 = (
    (
        (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
        (1.0, 17.895169469, 78.757757664, 67.187563600),
    ),
    (
        (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
        (1.0, 0.73700164250, 0.12021132975),
    ),
    (
        (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
        (1.0, 0.24197894225, 0.012258202635),
    ),
)


def inverse_normal_cdf(key: Node, shape: Any, dtype: DType) -> Node:
    """Normal numbers of a shape from a key; float64, or float32 for every smaller dtype."""
    return quantile(_centred64(key, shape) if dtype is float64 else _centred32(key, shape))


def quantile(q: Node, log_tail: Node | None = None) -> Node:
    """The normal quantile of `q + 1/2`; minus the logarithm of `1/2 - |q|` may be given."""
    wide = q.dtype is float64
    table: Sequence[Sequence[Sequence[float]]] = PPND16 if wide else PPND7
    size = el.abs(q)
    central = q * _ratio(table[0], 0.180625 - q * q)
    r = el.sqrt(log_tail or _minus_log(0.5 - size, 12 if wide else 6))
    far = el.select(r > 5.0, _ratio(table[2], r - 5.0), _ratio(table[1], r - 1.6))
    tail = el.select(q < 0, -far, far)
    return el.select(el.le(size, full(0.425, size.type)), central, tail)


def _centred32(key: Node, shape: Any) -> Node:
    """Uniform on the odd multiples of 2**-25 in (-1/2, 1/2)."""
    bits = RandomBits(shape)(key)
    whole = el.cast(el.shift_right(bits, full(8, bits.type)), int32) - 2**23
    return (el.cast(whole, float32) + 0.5) * 2.0**-24


def _centred64(key: Node, shape: Any) -> Node:
    """Uniform on the odd multiples of 2**-53 in (-1/2, 1/2)."""
    bits = RandomBits((2, *shape))(key)
    high, low = (el.cast(reshape(slice_axis(bits, 0, i, i + 1), shape), int64) for i in (0, 1))
    high = el.shift_left(high, full(20, high.type))
    whole = el.bitwise_or(high, el.shift_right(low, full(12, low.type))) - 2**51
    return (el.cast(whole, float64) + 0.5) * 2.0**-52


def _ratio(table: Sequence[Sequence[float]], x: Node) -> Node:
    return _polynomial(table[0], x) / _polynomial(table[1], x)


def _polynomial(coefficients: Sequence[float], x: Node) -> Node:
    """The constant coefficient first; by Horner's rule."""
    total = full(coefficients[-1], x.type)
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _minus_log(p: Node, terms: int = 12) -> Node:
    """`-log(p)` for 2**-63 < p < 1: scale to [1/2, 1) by exact products, then the series of
    `log(m) = log(c) + 2 atanh((m - c) / (m + c))` around `c = sqrt(1/2)`."""
    exponent = full(0, p.type)
    for shift in (32, 16, 8, 4, 2, 1):
        small = p < 2.0**-shift
        p = el.select(small, p * 2.0**shift, p)
        exponent = el.select(small, exponent + shift, exponent)
    c = math.sqrt(0.5)
    s = (p - c) / (p + c)
    series = _polynomial([1 / (2 * k + 1) for k in range(terms)], s * s)
    y: Node = exponent * math.log(2) - (2 * s * series + math.log(c))
    return y
