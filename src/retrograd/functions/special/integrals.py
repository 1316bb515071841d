"""Elliptic and exponential integrals, the dilogarithm, hypergeometric and Legendre functions, and
the zeta function on the whole line."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.functions.special.elementary import in_double
from retrograd.functions.special.operands import floats
from retrograd.ir import Node
from retrograd.ops import elementwise as el
from retrograd.ops.special import functions as ops
from retrograd.ops.special import scipy_functions as called
from retrograd.ops.special.functions import like


# -- elliptic integrals ----------------------------------------------------------------------------
@op_function
def ellipk(m: ArrayLike, /) -> Any:
    """The complete elliptic integral of the first kind, of the parameter m:
    `int_0^(pi/2) (1 - m sin(t)**2)**(-1/2) dt`; inf at 1, NaN above.

    Elementwise: the shape of m. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.ellipk([0.0, 0.5]).tolist()
    [1.5708, 1.8541]
    """
    return in_double(lambda t: called.ellipkm1(1 - t), m)


@op_function
def ellipkm1(p: ArrayLike, /) -> Any:
    """`ellipk(1 - p)`, accurate for small p; inf at 0, NaN below.

    Elementwise: the shape of p. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.ellipkm1([1.0, 0.5]).tolist()
    [1.5708, 1.8541]
    """
    return in_double(called.ellipkm1, p)


@op_function
def ellipe(m: ArrayLike, /) -> Any:
    """The complete elliptic integral of the second kind, of the parameter m:
    `int_0^(pi/2) (1 - m sin(t)**2)**(1/2) dt`; 1 at 1, NaN above.

    Elementwise: the shape of m. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.ellipe([0.0, 1.0]).tolist()
    [1.5708, 1.0]
    """
    return in_double(called.ellipe, m)


# -- exponential integrals, dilogarithm ------------------------------------------------------------
@op_function
def exp1(x: ArrayLike, /) -> Any:
    """The exponential integral `int_x^inf exp(-t) / t dt` for x > 0; inf at 0, NaN below.
    Derivative: `-exp(-x) / x`.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.exp1([1.0, 2.0]).tolist()
    [0.2194, 0.0489]
    """
    return in_double(called.exp1, x)


@op_function
def expi(x: ArrayLike, /) -> Any:
    """The exponential integral `Ei`, the principal value of `int_-inf^x exp(t) / t dt`; -inf at 0.
    Derivative: `exp(x) / x`.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.expi([-1.0, 1.0]).tolist()
    [-0.2194, 1.8951]
    """
    return in_double(called.expi, x)


@op_function
def expn(n: ArrayLike, x: ArrayLike, /) -> Any:
    """The exponential integrals `int_1^inf exp(-x t) / t**n dt` for whole `n >= 0` and `x >= 0`.
    Derivative in x: `-expn(n - 1, x)`; there is none in n: it is NaN.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.expn(2, [0.0, 1.0]).tolist()
    [1.0, 0.1485]
    """
    return in_double(called.expn, *floats(n, x))


@op_function
def spence(x: ArrayLike, /) -> Any:
    """Spence's function `int_1^x log(t) / (1 - t) dt`, the dilogarithm of `1 - x`; NaN below 0.
    Derivative: `log(x) / (1 - x)`.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.spence([0.0, 1.0]).tolist()
    [1.6449, 0.0]
    """
    return in_double(called.spence, x)


# -- hypergeometric, Legendre and Bessel functions -------------------------------------------------
@op_function
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    """Kummer's confluent hypergeometric function `M(a, b, x)`, as accurate as SciPy's. Derivative
    in x: `a / b M(a + 1, b + 1, x)`; those in a and b are exact for a, b and x up to 1e3, of the
    first order in these; others are NaN. So is the function where a is beyond 1e10 or b or x beyond
    1e7, but for what its leading terms say.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.hyp1f1(1.0, 1.0, [0.0, 1.0]).tolist()
    [1.0, 2.7183]
    """
    return in_double(called.hyp1f1, a, b, x)


@op_function
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> Any:
    """Gauss' hypergeometric function `F(a, b; c; x)`, as accurate as SciPy's. Derivative in x:
    `a b / c F(a + 1, b + 1; c + 1; x)`; those in a, b and c are exact for parameters up to 200 and
    x between -30 and 0.97, of the first order in these; others are NaN.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.hyp2f1(1.0, 1.0, 2.0, 0.5).item()
    1.3863
    """
    return in_double(called.hyp2f1, a, b, c, x)


@op_function
def lpmv(m: ArrayLike, v: ArrayLike, x: ArrayLike, /) -> Any:
    """The associated Legendre function of whole order m and degree v, for x between -1 and 1, with
    the sign `(-1)**m`. There is no derivative in m and v: it is NaN.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.lpmv(0.0, 2.0, [0.0, 0.5]).tolist()
    [-0.5, -0.125]
    """
    return in_double(called.lpmv, m, v, x)


@op_function
def yn(n: ArrayLike, x: ArrayLike, /) -> Any:
    """The Bessel function of the second kind of whole order n; -inf at 0, NaN below. Derivative in
    x: `(yn(n - 1, x) - yn(n + 1, x)) / 2`; there is none in n: it is NaN.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.yn(2, [1.0, 2.0]).tolist()
    [-1.6507, -0.6174]
    """
    return in_double(called.yn, *floats(n, x))


# -- zeta ------------------------------------------------------------------------------------------
def _corrections(count: int) -> list[float]:
    """`B_2k / (2k)!`, of Bernoulli's numbers."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum((Fraction(math.comb(n + 1, k)) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-total / (n + 1))
    return [float(numbers[2 * k] / math.factorial(2 * k)) for k in range(1, count + 1)]


CORRECTIONS = _corrections(12)
TERMS = 10  # of the sum, before the integral


def _zetac_right(s: Node) -> Node:
    """For `s >= 0` by Euler's and Maclaurin's formula."""
    far = s > 60
    t = el.select(far, like(2, s), s)
    total = like(0, s)
    for n in range(TERMS - 1, 1, -1):
        total = total + el.exp(t * -math.log(n))
    last = el.exp(t * -math.log(TERMS))
    total = total + last * TERMS / (t - 1) + last * 0.5
    rising = t
    for k, c in enumerate(CORRECTIONS):
        total = total + last * rising * (c * TERMS ** -(2.0 * k + 1))
        rising = rising * (t + (2 * k + 1)) * (t + (2 * k + 2))
    u = el.select(far, s, like(60, s))
    tail = el.exp2(-u) + el.exp(u * -math.log(3))
    return el.select(far, tail, total)


def _zetac(s: Node) -> Node:
    """Below 0 by reflection."""
    right = _zetac_right(el.select(s < 0, like(2, s), s))
    t = el.select(s < 0, s, like(-2, s))
    half = t * 0.5
    whole = el.round(half)
    sine = el.sin((half - whole) * math.pi)
    sine = el.select(el.mod(whole, like(2, t)) > 0.5, -sine, sine)
    size = el.exp(t * math.log(2 * math.pi) + ops.lgamma(1 - t)) / math.pi
    left = el.zmul(sine, size * (1 + _zetac_right(1 - t))) - 1
    found = el.select(s < 0, left, right)
    return el.select(el.eq(s, like(1, s)), like(math.inf, s), found)


@op_function
def zetac(x: ArrayLike, /) -> Any:
    """Riemann's zeta function less 1, accurate for large x; inf at 1. With derivatives of every
    order, also for negative x.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.zetac([0.0, 2.0]).tolist()
    [-1.5, 0.6449]
    """
    return in_double(_zetac, x)
