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
from retrograd.ops.special.asymptotic_series import STIRLING_SERIES
from retrograd.ops.special.functions import digamma
from retrograd.ops.special.reference import in_double

_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)  # the first has 32 bits


class PortableMath(Protocol):
    """What the formulas ask of numbers, beside their operators."""

    def choose(self, c: Any, a: Any, b: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def round(self, x: Any) -> Any:
        """To the nearest integer, ties to even."""


class NumPyPortableMath:
    """NumPy's doubles."""

    choose, sqrt, round = staticmethod(np.where), staticmethod(np.sqrt), staticmethod(np.rint)


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The constant coefficient first; by Horner's rule."""
    total = x * 0.0 + coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def log(m: PortableMath, x: Any) -> Any:
    """`log(x)` for finite `x >= 2**-1022`; others give something: scaled to `[sqrt(1/2), sqrt(2)]`
    by exact products, then `2 atanh((x - 1) / (x + 1))` by its series."""
    return _log_of_scaled(m, *_scaled(m, x))


def _scaled(m: PortableMath, x: Any) -> tuple[Any, Any]:
    """x between 1 and 2, and how many doublings it was away from there."""
    up = x * 0.0
    for shift in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        large, tiny = x >= 2.0**shift, x < 2.0 ** (1 - shift)
        x = m.choose(large, x * 2.0**-shift, m.choose(tiny, x * 2.0**shift, x))
        up = m.choose(large, up + float(shift), m.choose(tiny, up - float(shift), up))
    return x, up


def _log_of_scaled(m: PortableMath, x: Any, up: Any) -> Any:
    large = x > math.sqrt(2)
    x, up = m.choose(large, x * 0.5, x), m.choose(large, up + 1.0, up)
    s = (x - 1.0) / (x + 1.0)
    series = polynomial([1 / (2 * k + 1) for k in range(12)], s * s)
    return up * _LN2[0] + (s * 2.0 * series + up * _LN2[1])


def exp(m: PortableMath, x: Any) -> Any:
    """`exp(x)`; 0 below -746, infinite above 710."""
    return _doubled(m, *_exp_of_rest(m, x))


def _exp_of_rest(m: PortableMath, x: Any) -> tuple[Any, Any]:
    """The exponential as a number about 1 that is to be doubled so often."""
    x = m.choose(x < -746.0, x * 0.0 - 746.0, m.choose(x > 711.0, x * 0.0 + 711.0, x))
    n = m.round(x * (1 / math.log(2)))
    r = (x - n * _LN2[0]) - n * _LN2[1]
    return polynomial([1 / math.factorial(k) for k in range(15)], r), n


def _doubled(m: PortableMath, y: Any, n: Any) -> Any:
    up, size = n > 0.0, abs(n)
    for shift in (512, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        more = size >= float(shift)
        y = m.choose(more, m.choose(up, y * 2.0**shift, y * 2.0**-shift), y)
        size = m.choose(more, size - float(shift), size)
    return y


def log_of_arrays(x: Any) -> Any:
    """`log` for NumPy, which knows exponents: the same bits sooner."""
    if not np.all((x >= 2.0**-1022) & (x < np.inf)):
        return log(NumPyPortableMath(), x)
    half, up = np.frexp(x)
    return _log_of_scaled(NumPyPortableMath(), half * 2.0, up - 1.0)


def exp_of_arrays(x: Any) -> Any:
    """`exp` for NumPy; the same where no product is rounded."""
    y, n = _exp_of_rest(NumPyPortableMath(), x)
    if not np.all(abs(n) <= 1000.0):
        return _doubled(NumPyPortableMath(), y, n)
    return np.ldexp(y, n.astype(np.int32))


def atan(m: PortableMath, t: Any) -> Any:
    """For `t >= 0`: by halves, then the series."""
    one = t * 0.0 + 1.0
    large = t > 1.0
    s = m.choose(large, one / m.choose(large, t, one), t)
    for _ in range(2):
        s = s / (m.sqrt(s * s + 1.0) + 1.0)
    y = s * 4.0 * polynomial([(-1) ** k / (2 * k + 1) for k in range(13)], s * s)
    return m.choose(large, math.pi / 2 - y, y)


def log_factorial(m: PortableMath, k: Any) -> Any:
    """`log(k!)` for `k >= 0`: Stirling's formula, ten steps up."""
    return _by_stirling(k, lambda x: log(m, x))


def log_factorial_of_arrays(k: Any) -> Any:
    """`log_factorial` for NumPy."""
    return _by_stirling(k, log_of_arrays)


def _by_stirling(k: Any, log: Callable[[Any], Any]) -> Any:
    z = k + 11.0
    product = k + 1.0
    for j in range(2, 11):
        product = product * (k + float(j))
    inverse = 1.0 / z
    series = inverse * polynomial(STIRLING_SERIES, inverse * inverse)
    y = (z - 0.5) * log(z) - z + (0.5 * math.log(2 * math.pi)) + series
    return y - log(product)


def atan_of_arrays(t: Any) -> Any:
    """`atan` for NumPy."""
    return atan(NumPyPortableMath(), t)


# fmt: off
portable_log = unary("portable_log", in_double(log_of_arrays), lambda g, y, x: zdiv(g, x))
portable_exp = unary("portable_exp", in_double(exp_of_arrays), lambda g, y, x: zmul(g, y))
portable_atan = unary("portable_atan", in_double(atan_of_arrays),
                      lambda g, y, x: zdiv(g, 1 + x * x))
portable_log_factorial = unary("portable_log_factorial", in_double(log_factorial_of_arrays),
                               lambda g, y, x: zmul(g, digamma(x + 1)))
# fmt: on
