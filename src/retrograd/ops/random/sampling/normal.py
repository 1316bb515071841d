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

from retrograd.ir import float32, float64, int32, int64
from retrograd.ops.random.sampling.numbers import SampleMath
from retrograd.ops.special.asymptotic_series import PPND16

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


PPND16_TERMS, PPND7_TERMS = 12, 6  # of the logarithm


def normal(m: SampleMath, key: Any, shape: Any) -> Any:
    """In double precision."""
    return quantile(m, _centred64(m, key, shape), PPND16, PPND16_TERMS)


def normal32(m: SampleMath, key: Any, shape: Any) -> Any:
    """In single precision."""
    return quantile(m, _centred32(m, key, shape), PPND7, PPND7_TERMS)


def quantile(
    m: SampleMath,
    q: Any,
    table: Sequence[Sequence[Sequence[float]]],
    terms: int,
    log_tail: Any = None,
) -> Any:
    """The normal quantile of `q + 1/2`; minus the logarithm of `1/2 - |q|` may be given, else it
    is a series of so many terms."""
    size = m.abs(q)
    central = q * _ratio(m, table[0], 0.180625 - q * q)
    r = m.sqrt(_minus_log(m, 0.5 - size, terms) if log_tail is None else log_tail)
    far = m.choose(r > 5.0, _ratio(m, table[2], r - 5.0), _ratio(m, table[1], r - 1.6))
    tail = m.choose(q < 0, -far, far)
    return m.choose(size <= 0.425, central, tail)


def _centred32(m: SampleMath, key: Any, shape: Any) -> Any:
    """Uniform on the odd multiples of 2**-25 in (-1/2, 1/2)."""
    whole = m.cast(m.right(m.bits(key, shape), 8), int32) - 2**23
    return (m.cast(whole, float32) + 0.5) * 2.0**-24


def _centred64(m: SampleMath, key: Any, shape: Any) -> Any:
    """Uniform on the odd multiples of 2**-53 in (-1/2, 1/2)."""
    high, low = (m.cast(x, int64) for x in m.rows(m.bits(key, (2, *shape))))
    whole = (m.left(high, 20) | m.right(low, 12)) - 2**51
    return (m.cast(whole, float64) + 0.5) * 2.0**-52


def _ratio(m: SampleMath, table: Sequence[Sequence[float]], x: Any) -> Any:
    return _polynomial(m, table[0], x) / _polynomial(m, table[1], x)


def _polynomial(m: SampleMath, coefficients: Sequence[float], x: Any) -> Any:
    """The constant coefficient first; by Horner's rule."""
    total = m.constant(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _minus_log(m: SampleMath, p: Any, terms: int) -> Any:
    """`-log(p)` for 2**-63 < p < 1: scale to [1/2, 1) by exact products, then the series of
    `log(m) = log(c) + 2 atanh((m - c) / (m + c))` around `c = sqrt(1/2)`."""
    exponent = m.constant(0, p)
    for shift in (32, 16, 8, 4, 2, 1):
        small = p < 2.0**-shift
        p = m.choose(small, p * 2.0**shift, p)
        exponent = m.choose(small, exponent + shift, exponent)
    c = math.sqrt(0.5)
    s = (p - c) / (p + c)
    series = _polynomial(m, [1 / (2 * k + 1) for k in range(terms)], s * s)
    return exponent * math.log(2) - (2 * s * series + math.log(c))
