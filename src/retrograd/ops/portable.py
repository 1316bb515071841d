"""Functions of double precision made of correctly rounded operations: the same bits everywhere.

A mathematics library's `log` differs in the last bit from machine to machine; random numbers must
not. The formulas are for any numbers in double precision, arrays or registers of a compiler, that
round each operation by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from retrograd.ops.elementwise import unary, zdiv, zmul
from retrograd.ops.meaning import in_double
from retrograd.ops.series import STIRLING_SERIES
from retrograd.ops.special import digamma

_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)  # the first has 32 bits


class Numbers(Protocol):
    """What the formulas ask of numbers, beside their operators."""

    def choose(self, c: Any, a: Any, b: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def round(self, x: Any) -> Any:
        """To the nearest integer, ties to even."""


class Arrays:
    """NumPy's doubles."""

    choose, sqrt, round = staticmethod(np.where), staticmethod(np.sqrt), staticmethod(np.rint)


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The constant coefficient first; by Horner's rule."""
    total = x * 0.0 + coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def log(m: Numbers, x: Any) -> Any:
    """`log(x)` for finite `x >= 2**-1022`; others give something: scaled to `[sqrt(1/2), sqrt(2)]`
    by exact products, then `2 atanh((x - 1) / (x + 1))` by its series."""
    up = x * 0.0
    for shift in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        large, tiny = x >= 2.0**shift, x < 2.0 ** (1 - shift)
        x = m.choose(large, x * 2.0**-shift, m.choose(tiny, x * 2.0**shift, x))
        up = m.choose(large, up + float(shift), m.choose(tiny, up - float(shift), up))
    large = x > math.sqrt(2)
    x, up = m.choose(large, x * 0.5, x), m.choose(large, up + 1.0, up)
    s = (x - 1.0) / (x + 1.0)
    series = polynomial([1 / (2 * k + 1) for k in range(12)], s * s)
    return up * _LN2[0] + (s * 2.0 * series + up * _LN2[1])


def exp(m: Numbers, x: Any) -> Any:
    """`exp(x)`; 0 below -746, infinite above 710."""
    x = m.choose(x < -746.0, x * 0.0 - 746.0, m.choose(x > 711.0, x * 0.0 + 711.0, x))
    n = m.round(x * (1 / math.log(2)))
    r = (x - n * _LN2[0]) - n * _LN2[1]
    y = polynomial([1 / math.factorial(k) for k in range(15)], r)
    up, size = n > 0.0, abs(n)
    for shift in (512, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        more = size >= float(shift)
        y = m.choose(more, m.choose(up, y * 2.0**shift, y * 2.0**-shift), y)
        size = m.choose(more, size - float(shift), size)
    return y


def atan(m: Numbers, t: Any) -> Any:
    """For `t >= 0`: by halves, then the series."""
    one = t * 0.0 + 1.0
    large = t > 1.0
    s = m.choose(large, one / m.choose(large, t, one), t)
    for _ in range(2):
        s = s / (m.sqrt(s * s + 1.0) + 1.0)
    y = s * 4.0 * polynomial([(-1) ** k / (2 * k + 1) for k in range(13)], s * s)
    return m.choose(large, math.pi / 2 - y, y)


def log_factorial(m: Numbers, k: Any) -> Any:
    """`log(k!)` for `k >= 0`: Stirling's formula, ten steps up."""
    z = k + 11.0
    product = k + 1.0
    for j in range(2, 11):
        product = product * (k + float(j))
    inverse = 1.0 / z
    series = inverse * polynomial(STIRLING_SERIES, inverse * inverse)
    y = (z - 0.5) * log(m, z) - z + (0.5 * math.log(2 * math.pi)) + series
    return y - log(m, product)


FORMULAS: dict[str, Callable[[Numbers, Any], Any]] = {
    "portable_log": log,
    "portable_exp": exp,
    "portable_atan": atan,
    "portable_log_factorial": log_factorial,
}


def _meaning(f: Callable[[Numbers, Any], Any]) -> Callable[..., Any]:
    return in_double(lambda x: f(Arrays(), x))


# fmt: off
portable_log = unary("portable_log", _meaning(log), lambda g, y, x: zdiv(g, x))
portable_exp = unary("portable_exp", _meaning(exp), lambda g, y, x: zmul(g, y))
portable_atan = unary("portable_atan", _meaning(atan), lambda g, y, x: zdiv(g, 1 + x * x))
portable_log_factorial = unary("portable_log_factorial", _meaning(log_factorial),
                               lambda g, y, x: zmul(g, digamma(x + 1)))
# fmt: on
