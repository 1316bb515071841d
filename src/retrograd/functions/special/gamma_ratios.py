"""Ratios of gamma functions, and inverses of the incomplete gamma and beta functions."""

from __future__ import annotations

import math
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.functions.broadcasting import as_node
from retrograd.functions.special.classical import gammasgn
from retrograd.functions.special.elementary import in_double
from retrograd.functions.special.operands import floats
from retrograd.ir import Node
from retrograd.ops import elementwise as el
from retrograd.ops.identity import StopGradient
from retrograd.ops.special import functions as ops
from retrograd.ops.special import scipy_functions as called
from retrograd.ops.special.functions import like


@op_function
def loggamma(x: ArrayLike, /) -> Any:
    """The principal branch of `log(Gamma(x))` of real numbers: `gammaln` above 0, NaN below, where
    it is not real. Derivative: `digamma(x)`.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.loggamma([5.0, -0.5]).tolist()
    [3.178, nan]
    """
    return in_double(lambda t: el.select(t < 0, like(math.nan, t), ops.lgamma(t)), x)


def _sine_of_pi(x: Node) -> Node:
    """`sin(pi x)` by the distance of x from a whole number, which is exact."""
    whole = el.round(x)
    s = el.sin((x - whole) * math.pi)
    return el.select(el.mod(whole, like(2, x)) > 0.5, -s, s)


def _rgamma(x: Node) -> Node:
    """By reflection below 1/2, where the gamma function has poles and this zeros."""
    low = x < 0.5
    t = el.select(low, like(1, x), x)
    far = t > 170
    above = el.select(far, el.exp(-ops.lgamma(el.select(far, t, like(171, t)))),
                      1 / ops.gamma(el.select(far, like(1, t), t)))  # fmt: skip
    u = el.select(low, x, like(0, x))
    below = el.zmul(_sine_of_pi(u), ops.gamma(1 - u)) / math.pi
    return el.select(low, below, above)


@op_function
def rgamma(x: ArrayLike, /) -> Any:
    """`1 / Gamma(x)`, 0 at its poles, where the derivatives hold too.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.rgamma([-1.0, 0.0, 4.0]).tolist()
    [0.0, 0.0, 0.1667]
    """
    return in_double(_rgamma, x)


def _beta(p: Node, q: Node) -> Node:
    size = el.exp(ops.betaln(p, q))
    sign = as_node(gammasgn(p) * gammasgn(q) * gammasgn(p + q))
    sign = el.select((p > 0) & (q > 0), like(1, p), sign)
    # At poles signs are undefined; the one that is finite there is `(-1)**q B(1 - p - q, q)`.
    poles = _is_pole(p) | _is_pole(q)
    odd = el.mod(el.select(p > q, p, q), like(2, p)) > 0.5
    reflected = poles & odd & el.bitwise_not(el.isinf(size))
    sign = el.select(poles, el.select(reflected, like(-1, p), like(1, p)), sign)
    # At its zeros the sign changes, and the logarithm is infinite: the slope needs a product.
    zero = _is_pole(p + q) & el.bitwise_not(poles)
    u, v = (el.select(zero, t, like(0.5, t)) for t in (p, q))
    signs = as_node(gammasgn(u) * gammasgn(v))
    product = el.zmul(_rgamma(u + v), signs * el.exp(ops.lgamma(u) + ops.lgamma(v)))
    return el.select(zero, product, sign * size)


@op_function
def beta(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """`B(x1, x2) = Gamma(x1) Gamma(x2) / Gamma(x1 + x2)`, from `betaln`: for float64 within
    `8 + |log B|` units in the last place.

    Where x1 is 0 or a negative integer it is inf, or its limit, `(-1)**x2 B(1 - x1 - x2, x2)`, if
    x2 is a positive integer and `x1 + x2 <= 0`; likewise for x2. Derivatives are not finite there.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.beta(2.0, 3.0).item()
    0.08333
    """
    return in_double(_beta, x1, x2)


def _poch(z: Node, m: Node) -> Node:
    both = z + m
    near = (el.abs(z) < 100) & (el.abs(both) < 100)
    a, b = (el.select(near, t, like(1, t)) for t in (z, both))
    close = _rgamma(a) * ops.gamma(b)
    # Two poles: the ratio of their residues, by reflection of both.
    poles = _is_pole(a) & _is_pole(b)
    u, v = (el.select(poles, t, like(0, t)) for t in (a, b))
    even = el.mod(u - v, like(2, u)) < 0.5
    residues = ops.gamma(1 - u) / ops.gamma(1 - v)
    close = el.select(poles, el.select(even, residues, -residues), close)
    close = el.select(_is_pole(b) & el.bitwise_not(poles), like(math.inf, b), close)
    p, q = (el.select(near, like(1, t), t) for t in (z, both))
    sign = as_node(gammasgn(p) * gammasgn(q))
    far = sign * el.exp(ops.lgamma(q) - ops.lgamma(p))
    positive = (p > 0) & (q > p)
    gap = el.select(positive, q - p, like(1, q))
    base = el.select(positive, p, like(1, p))
    smooth = el.exp(ops.lgamma(gap) - ops.betaln(base, gap))
    far = el.select(_is_pole(q), like(math.inf, q), el.select(_is_pole(p), like(0, p), far))
    return el.select(near, close, el.select(positive, smooth, far))


STEPS = 32  # up to which whole m are so many factors, so that `z + m` is not rounded next to a pole


def _by_factors(z: Node, m: Node) -> Node:
    whole = el.eq(el.floor(m), m)
    steps = el.select(whole, el.min(el.max(m, like(-STEPS, m)), like(STEPS, m)), like(0, m))
    steps = StopGradient()(steps)
    rest = m - steps
    y, start, one = _poch(z, rest), z + rest, like(1, z)
    for i in range(STEPS):
        y = y * el.select(steps > i + 0.5, start + i, one)
        y = y / el.select(-steps > i + 0.5, start - (i + 1), one)
    pole = _is_pole(z + m) & el.bitwise_not(_is_pole(z))
    return el.select(pole, like(math.inf, y), y)


def _is_pole(x: Node) -> Node:
    return el.le(x, like(0, x)) & el.eq(el.floor(x), x)


@op_function
def poch(z: ArrayLike, m: ArrayLike, /) -> Any:
    """The Pochhammer symbol `Gamma(z + m) / Gamma(z)`, `z (z + 1) ... (z + m - 1)` for whole m. For
    float64 within `64 + |log y|` units in the last place; where a gamma function is of a number
    below -100, within so many times its logarithm.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.poch(2.0, [0.0, 3.0]).tolist()
    [1.0, 24.0]
    """
    return in_double(_by_factors, z, m)


def _binom(n: Node, k: Node) -> Node:
    """By the beta function between 0 and n, where nothing cancels; else by gamma functions."""
    inside = (k >= 0.0) & el.le(k, n)
    a, b = (el.select(inside, t, like(1, t)) for t in (n, k))
    smooth = el.exp(-ops.betaln(1 + a - b, 1 + b)) / (1 + a)
    # Products of whole numbers up to 2**53 are whole: what rounding has lost is put back.
    whole = el.eq(el.floor(a), a) & el.eq(el.floor(b), b) & (smooth < 2.0**49)
    exact = el.round(smooth)
    smooth = el.select(whole, smooth + StopGradient()(exact - smooth), smooth)
    return el.select(inside, smooth, _binom_outside(*(el.select(inside, like(2, t), t)
                                                      for t in (n, k))))  # fmt: skip


def _binom_outside(n: Node, k: Node) -> Node:
    """For k below 0 or above n: 0 at the poles of the denominator, NaN for whole n below 0."""
    near = (el.abs(n) < 80) & (el.abs(k) < 80)
    a, b = (el.select(near, t, like(1, t)) for t in (n, k))
    close = _poch(a - b + 1, b) * _rgamma(b + 1)
    a, b = (el.select(near, like(2, t), t) + 1 for t in (n, k))
    c = a - b + 1
    poles = _is_pole(b) | _is_pole(c)
    b, c = (el.select(poles, like(1, t), t) for t in (b, c))
    size = el.exp(ops.lgamma(a) - ops.lgamma(b) - ops.lgamma(c))
    far = as_node(gammasgn(a) * gammasgn(b) * gammasgn(c)) * size
    found = el.select(near, close, el.select(poles, like(0, a), far))
    return el.select(_is_pole(n + 1), like(math.nan, n), found)


@op_function
def binom(n: ArrayLike, k: ArrayLike, /) -> Any:
    """The binomial coefficient `Gamma(n + 1) / (Gamma(k + 1) Gamma(n - k + 1))` of real numbers.
    Where k is below 0 or above n the error in units is up to the logarithm of a gamma function.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.binom([5.0, 2.5], 2.0).tolist()
    [10.0, 1.875]
    """
    return in_double(_binom, n, k)


@op_function
def gammaincinv(a: ArrayLike, p: ArrayLike, /) -> Any:
    """The x at which `gammainc(a, x)` is p, for p between 0 and 1. Derivatives follow from those of
    `gammainc`, to the second order.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.gammaincinv(1.0, [0.0, 0.5]).tolist()
    [0.0, 0.6931]
    """
    return in_double(called.gammaincinv, a, p)


@op_function
def gammainccinv(a: ArrayLike, q: ArrayLike, /) -> Any:
    """The x at which `gammaincc(a, x)` is q, for q between 0 and 1. Derivatives follow from those
    of `gammaincc`, to the second order.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.gammainccinv(1.0, [0.5, 1.0]).tolist()
    [0.6931, 0.0]
    """
    return in_double(called.gammainccinv, a, q)


@op_function
def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Any:
    """The x at which `betainc(a, b, x)` is y, for y between 0 and 1. Derivatives follow from those
    of `betainc`, to the second order.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.betaincinv(2.0, 2.0, [0.15625, 0.5]).tolist()
    [0.25, 0.5]
    """
    return in_double(called.betaincinv, *floats(a, b, y))


@op_function
def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Any:
    """The x at which `betaincc(a, b, x)` is y, for y between 0 and 1. Derivatives follow from those
    of `betainc`, to the second order.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.betainccinv(2.0, 2.0, 0.84375).item()
    0.25
    """
    return in_double(called.betainccinv, *floats(a, b, y))
