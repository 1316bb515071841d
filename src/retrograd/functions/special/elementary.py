"""Formulas with exponentials and logarithms that hold where they cancel; angles in degrees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.functions.broadcasting import as_node
from retrograd.functions.elementwise import pow as power
from retrograd.functions.special.operands import floats
from retrograd.ir import Node, float64
from retrograd.ops import elementwise as el
from retrograd.ops.special.functions import like
from retrograd.ops.special.scipy_functions import log1p_ratio


def in_double(f: Callable[..., Node], *arrays: Any) -> Node:
    """A formula in float64, rounded once to the dtype of the arguments."""
    nodes = floats(*arrays)
    return el.cast(f(*(el.cast(x, float64) for x in nodes)), nodes[0].dtype)


# -- exponentials ----------------------------------------------------------------------------------
@op_function
def exp10(x: ArrayLike, /) -> Any:
    """`10**x`. Derivative: `log(10) 10**x`.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.exp10([0.0, 2.0]).tolist()
    [1.0, 100.0]
    """
    return in_double(lambda t: as_node(power(like(10, t), t)), x)


def _exprel(t: Node) -> Node:
    """Near 0 by its series, so that derivatives hold there."""
    near = (t < 1) & (t > -1)
    small = el.select(near, t, like(0, t))
    series = like(1 / math.factorial(20), t)
    for k in range(18, -1, -1):
        series = series * small + 1 / math.factorial(k + 1)
    far = el.select(near, like(1, t), t)
    return el.select(near, series, el.expm1(far) / far)


@op_function
def exprel(x: ArrayLike, /) -> Any:
    """`(exp(x) - 1) / x`, 1 at 0.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.exprel([0.0, 1.0]).tolist()
    [1.0, 1.7183]
    """
    return in_double(_exprel, x)


@op_function
def cosm1(x: ArrayLike, /) -> Any:
    """`cos(x) - 1`, accurate near 0. Derivative: `-sin(x)`.

    Elementwise: the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.cosm1([0.0, 1e-4]).tolist()
    [0.0, -5e-09]
    """

    def formula(t: Node) -> Node:
        s = el.sin(t * 0.5)
        return s * s * -2.0

    return in_double(formula, x)


def _box_cox(x: Node, log: Node, scale: Node) -> Node:
    """`(exp(scale log) - 1) / scale`, log itself where scale is 0. At x = 0, of which log is the
    logarithm, by the power of x, whose slopes are not those of an exponential of -inf."""
    edge = el.is_zero(x) & el.bitwise_not(el.is_zero(scale))
    base, exponent = el.select(edge, x, like(1, x)), el.select(edge, scale, like(1, x))
    at_edge = (el.pow(base, exponent) - 1) / exponent
    log = el.select(edge, like(0, x), log)
    return el.select(edge, at_edge, _power_of_log(log, scale))


def _power_of_log(log: Node, scale: Node) -> Node:
    z = log * scale
    small = (z < 1) & (z > -1)
    inner = el.select(small, z, like(0, z))
    near = el.select(small, log, like(0, z)) * _exprel(inner)
    bounded = el.select(small, like(1, z), scale)
    outer = el.expm1(el.select(small, like(1, z), z)) / bounded
    return el.select(small, near, el.select(el.is_zero(scale), log, outer))


@op_function
def boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Any:
    """The Box-Cox transformation `(x**lmbda - 1) / lmbda`, `log(x)` where lmbda is 0.

    Elementwise: the shapes broadcast; NaN for negative x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.boxcox([1.0, 4.0], 0.5).tolist()
    [0.0, 2.0]
    """
    return in_double(lambda t, s: _box_cox(t, el.log(t), s), x, lmbda)


@op_function
def boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Any:
    """The Box-Cox transformation of `1 + x`, accurate near 0.

    Elementwise: the shapes broadcast; NaN for x below -1. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.boxcox1p([0.0, 3.0], 0.5).tolist()
    [0.0, 2.0]
    """
    return in_double(lambda t, s: _box_cox(1 + t, el.log1p(t), s), x, lmbda)


def _log_of_power(y: Node, scale: Node) -> Node:
    """`log(1 + scale y) / scale`, y itself where scale is 0."""
    u = y * scale
    small = (u < 0.25) & (u > -0.25)
    near = el.select(small, y, like(0, y)) * log1p_ratio(el.select(small, u, like(0, u)))
    far = el.log1p(el.select(small, like(1, u), u)) / el.select(small, like(1, u), scale)
    return el.select(small, near, far)


@op_function
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, /) -> Any:
    """The inverse of `boxcox`: `(1 + lmbda y)**(1 / lmbda)`, `exp(y)` where lmbda is 0.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.inv_boxcox([0.0, 2.0], 0.5).tolist()
    [1.0, 4.0]
    """
    return in_double(lambda t, s: el.exp(_log_of_power(t, s)), y, lmbda)


@op_function
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, /) -> Any:
    """The inverse of `boxcox1p`: `inv_boxcox(y, lmbda) - 1`, accurate near 0.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.inv_boxcox1p([0.0, 2.0], 0.5).tolist()
    [0.0, 3.0]
    """
    return in_double(lambda t, s: el.expm1(_log_of_power(t, s)), y, lmbda)


# -- losses of residuals ---------------------------------------------------------------------------
@op_function
def huber(delta: ArrayLike, r: ArrayLike, /) -> Any:
    """`r**2 / 2` where `|r| <= delta`, else `delta (|r| - delta / 2)`; inf for a negative delta.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers. The loss of that name is
    `rg.nn.functional.huber_loss`.

    >>> import retrograd as rg
    >>> rg.special.huber(1.0, [0.5, 3.0]).tolist()
    [0.125, 2.5]
    """

    def formula(d: Node, t: Node) -> Node:
        size = el.abs(t)
        near = el.le(size, d)
        inner = el.select(near, t, like(0, t))
        y = el.select(near, inner * inner * 0.5, d * (size - d * 0.5))
        return el.select(d < 0, like(math.inf, d), y)

    return in_double(formula, delta, r)


@op_function
def pseudo_huber(delta: ArrayLike, r: ArrayLike, /) -> Any:
    """`delta**2 (sqrt(1 + (r / delta)**2) - 1)`, 0 where delta is, inf for a negative delta.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.pseudo_huber(1.0, [0.0, 1.0]).tolist()
    [0.0, 0.4142]
    """

    def formula(d: Node, t: Node) -> Node:
        none = el.is_zero(d)
        safe = el.one_if(none, d)
        s = t / safe
        y = t * t / (el.hypot(like(1, s), s) + 1.0)
        return el.select(d < 0, like(math.inf, d), el.select(none, like(0, d), y))

    return in_double(formula, delta, r)


# -- degrees ---------------------------------------------------------------------------------------
def _quarters(x: Node) -> tuple[Node, Node]:
    """An angle in degrees as a number of right angles, modulo 4, and the rest in radians; both
    subtractions are exact."""
    turned = el.mod(el.abs(x), like(360, x))
    x = el.select(el.abs(x) < 360, x, el.select(x < 0, -turned, turned))
    quarter = el.round(x / 90)
    return el.mod(quarter, like(4, x)), (x - 90 * quarter) * (math.pi / 180)


def _sine(x: Node, ahead: int) -> Node:
    """The sine so many right angles ahead."""
    quarter, rest = _quarters(x)
    turn = el.mod(quarter + ahead, like(4, x))
    s, c = el.sin(rest), el.cos(rest)
    y = el.select(el.eq(turn, like(1, x)), c, el.select(el.eq(turn, like(2, x)), -s, -c))
    y = el.select(el.is_zero(turn), s, y)
    return el.select(el.isinf(x), like(math.nan, x), y)


@op_function
def sindg(x: ArrayLike, /) -> Any:
    """The sine of x degrees, exact at multiples of 90.

    Elementwise: the shape of x. Derivative: `pi / 180 cosdg(x)`. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.sindg([30.0, 180.0]).tolist()
    [0.5, 0.0]
    """
    return in_double(lambda t: _sine(t, 0), x)


@op_function
def cosdg(x: ArrayLike, /) -> Any:
    """The cosine of x degrees, exact at multiples of 90.

    Elementwise: the shape of x. Derivative: `-pi / 180 sindg(x)`. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.cosdg([60.0, 180.0]).tolist()
    [0.5, -1.0]
    """
    return in_double(lambda t: _sine(t, 1), x)


@op_function
def tandg(x: ArrayLike, /) -> Any:
    """The tangent of x degrees; inf at 90.

    Elementwise: the shape of x. Derivative: `pi / 180 (1 + tandg(x)**2)`. `DTypeError` for complex
    numbers.

    >>> import retrograd as rg
    >>> rg.special.tandg([0.0, 45.0]).tolist()
    [0.0, 1.0]
    """
    return in_double(lambda t: _ratio(_sine(t, 0), _sine(t, 1)), x)


@op_function
def cotdg(x: ArrayLike, /) -> Any:
    """The cotangent of x degrees; inf at 0.

    Elementwise: the shape of x. Derivative: `-pi / 180 (1 + cotdg(x)**2)`. `DTypeError` for complex
    numbers.

    >>> import retrograd as rg
    >>> rg.special.cotdg([45.0, 90.0]).tolist()
    [1.0, 0.0]
    """
    return in_double(lambda t: _ratio(_sine(t, 1), _sine(t, 0)), x)


def _ratio(a: Node, b: Node) -> Node:
    """A quotient of sine and cosine, of which poles are +inf."""
    pole = el.is_zero(b)
    return el.select(pole, like(math.inf, a), a / el.one_if(pole, b))


@op_function
def radian(d: ArrayLike, m: ArrayLike, s: ArrayLike, /) -> Any:
    """Degrees, minutes and seconds as radians.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.radian(180.0, 0.0, 0.0).item()
    3.1416
    """
    return in_double(lambda a, b, c: ((a * 60 + b) * 60 + c) * (math.pi / 648000), d, m, s)
