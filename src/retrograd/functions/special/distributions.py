"""Distribution functions by the incomplete gamma and beta functions, complements and inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.functions.special.elementary import in_double
from retrograd.functions.special.operands import floats
from retrograd.ir import Node
from retrograd.ops import elementwise as el
from retrograd.ops.special import functions as ops
from retrograd.ops.special import scipy_functions as called
from retrograd.ops.special.functions import like
from retrograd.tensor_type import Tensor

_DOC = """{what}

Elementwise: the shapes broadcast; integers are taken as float32. {gradients} `DTypeError` for
complex numbers, `ShapeError` where the shapes do not broadcast.

>>> import retrograd as rg
>>> rg.special.{name}({arguments}).item()
{result}
"""
_SMOOTH = "Derivatives are those of `{of}`, to the second order in its parameters."
_WHOLE = "Derivatives are those of `{of}`; a number of events is rounded down, and has none."


def _named(
    name: str, what: str, of: str, example: str, whole: bool = False
) -> Callable[[Callable[..., Node]], Callable[..., Tensor]]:
    """A decorator: a function of nodes in float64 as one of arrays, with its docstring."""
    arguments, result = example.split(" -> ")
    gradients = (_WHOLE if whole else _SMOOTH).format(of=of)

    def decorate(formula: Callable[..., Node]) -> Callable[..., Tensor]:
        if formula.__code__.co_argcount == 2:

            def two(x1: ArrayLike, x2: ArrayLike, /) -> Any:
                return in_double(formula, *floats(x1, x2))

            call: Callable[..., Any] = two
        else:

            def three(x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> Any:
                return in_double(formula, *floats(x1, x2, x3))

            call = three
        call.__name__ = call.__qualname__ = name
        call.__doc__ = _DOC.format(
            what=what, name=name, arguments=arguments, result=result, gradients=gradients
        )
        return op_function(call)

    return decorate


def _where_nan(bad: Node, y: Node) -> Node:
    return el.select(bad, like(math.nan, y), y)


def _safe(bad: Node, x: Node, value: float = 1.0) -> Node:
    return el.select(bad, like(value, x), x)


# -- chi-square, gamma, Poisson --------------------------------------------------------------------
@_named("chdtr", "The chi-square distribution function of v degrees of freedom at x: "
        "`gammainc(v / 2, x / 2)`, NaN below 0.", "gammainc", "2.0, 2.0 -> 0.6321")  # fmt: skip
def chdtr(v: Node, x: Node) -> Node:
    below = x < 0
    return _where_nan(below, ops.gammainc(v * 0.5, _safe(below, x) * 0.5))


@_named("chdtrc", "`1 - chdtr(v, x)`, accurate where it is small; NaN below 0.", "gammaincc",
        "2.0, 2.0 -> 0.3679")  # fmt: skip
def chdtrc(v: Node, x: Node) -> Node:
    below = x < 0
    return _where_nan(below, ops.gammaincc(v * 0.5, _safe(below, x) * 0.5))


@_named("chdtri", "The x at which `chdtrc(v, x)` is p.", "gammaincc", "2.0, 0.5 -> 1.3863")
def chdtri(v: Node, p: Node) -> Node:
    return called.gammainccinv(v * 0.5, p) * 2.0


@_named("gdtr", "The gamma distribution function of rate a and shape b at x: `gammainc(b, a x)`; "
        "NaN below 0.", "gammainc", "1.0, 2.0, 2.0 -> 0.594")  # fmt: skip
def gdtr(a: Node, b: Node, x: Node) -> Node:
    below = x < 0
    return _where_nan(below, ops.gammainc(b, a * _safe(below, x)))


@_named("gdtrc", "`1 - gdtr(a, b, x)`, accurate where it is small.", "gammaincc",
        "1.0, 2.0, 2.0 -> 0.406")  # fmt: skip
def gdtrc(a: Node, b: Node, x: Node) -> Node:
    below = x < 0
    return _where_nan(below, ops.gammaincc(b, a * _safe(below, x)))


@_named("pdtr", "The probability of k events or less, of a Poisson distribution of mean m: "
        "`gammaincc(floor(k) + 1, m)`; NaN below 0.", "gammaincc", "1, 1.0 -> 0.7358",
        whole=True)  # fmt: skip
def pdtr(k: Node, m: Node) -> Node:
    bad = (k < 0) | (m < 0)
    return _where_nan(bad, ops.gammaincc(el.floor(_safe(bad, k)) + 1, _safe(bad, m)))


@_named("pdtrc", "`1 - pdtr(k, m)`, accurate where it is small.", "gammainc", "1, 1.0 -> 0.2642",
        whole=True)  # fmt: skip
def pdtrc(k: Node, m: Node) -> Node:
    bad = (k < 0) | (m < 0)
    return _where_nan(bad, ops.gammainc(el.floor(_safe(bad, k)) + 1, _safe(bad, m)))


@_named("pdtri", "The mean m at which `pdtr(k, m)` is y.", "gammaincc", "1, 0.5 -> 1.6783",
        whole=True)  # fmt: skip
def pdtri(k: Node, y: Node) -> Node:
    bad = (k < 0) | (y < 0) | (y >= 1.0)
    return _where_nan(bad, called.gammainccinv(el.floor(_safe(bad, k)) + 1, _safe(bad, y, 0.5)))


# -- binomial and negative binomial ----------------------------------------------------------------
def _trials(k: Node, n: Node, p: Node) -> tuple[Node, Node, Node, Node, Node]:
    """Whole numbers of events; whether they are all there are; which arguments are none."""
    k = el.floor(k)
    bad = el.bitwise_not((p >= 0.0) & el.le(p, like(1, p)) & el.le(k, n) & (k >= 0.0))
    every = el.eq(k, n)
    return _safe(bad | every, k), _safe(bad | every, n, 2.0), _safe(bad, p, 0.5), every, bad


@_named("bdtr", "The probability of k events or less in n trials of probability p: "
        "`betainc(n - floor(k), floor(k) + 1, 1 - p)`.", "betainc", "1, 2, 0.5 -> 0.75",
        whole=True)  # fmt: skip
def bdtr(k: Node, n: Node, p: Node) -> Node:
    k, n, p, every, bad = _trials(k, n, p)
    return _where_nan(bad, el.select(every, like(1, p), ops.betainc(n - k, k + 1, 1 - p)))


@_named("bdtrc", "`1 - bdtr(k, n, p)`, accurate where it is small.", "betainc",
        "1, 2, 0.5 -> 0.25", whole=True)  # fmt: skip
def bdtrc(k: Node, n: Node, p: Node) -> Node:
    none = k < 0
    start = el.select(none, like(0, k), k)
    start, n, p, every, bad = _trials(start, n, p)
    found = el.select(every, like(0, p), ops.betainc(start + 1, n - start, p))
    return el.select(none & el.bitwise_not(bad), like(1, p), _where_nan(bad, found))


@_named("bdtri", "The probability p at which `bdtr(k, n, p)` is y.", "betainc",
        "1, 2, 0.75 -> 0.5", whole=True)  # fmt: skip
def bdtri(k: Node, n: Node, y: Node) -> Node:
    k, n, y, every, bad = _trials(k, n, y)
    return _where_nan(bad | every, called.betainccinv(k + 1, n - k, y))


@_named("nbdtr", "The probability of k failures or less before the n-th success, of probability p: "
        "`betainc(n, floor(k) + 1, p)`.", "betainc", "1, 2, 0.5 -> 0.5", whole=True)  # fmt: skip
def nbdtr(k: Node, n: Node, p: Node) -> Node:
    bad = _no_failures(k, p)
    return _where_nan(bad, ops.betainc(n, el.floor(_safe(bad, k)) + 1, _safe(bad, p, 0.5)))


def _no_failures(k: Node, p: Node) -> Node:
    return el.bitwise_not((k >= 0.0) & (p >= 0.0) & el.le(p, like(1, p)))


@_named("nbdtrc", "`1 - nbdtr(k, n, p)`, accurate where it is small.", "betainc",
        "1, 2, 0.5 -> 0.5", whole=True)  # fmt: skip
def nbdtrc(k: Node, n: Node, p: Node) -> Node:
    bad = _no_failures(k, p)
    return _where_nan(bad, ops.betainc(el.floor(_safe(bad, k)) + 1, n, 1 - _safe(bad, p, 0.5)))


@_named("nbdtri", "The probability p at which `nbdtr(k, n, p)` is y.", "betainc",
        "1, 2, 0.5 -> 0.5", whole=True)  # fmt: skip
def nbdtri(k: Node, n: Node, y: Node) -> Node:
    bad = _no_failures(k, y)
    return _where_nan(bad, called.betaincinv(n, el.floor(_safe(bad, k)) + 1, _safe(bad, y, 0.5)))


# -- F and Student's t -----------------------------------------------------------------------------
@_named("fdtr", "The F distribution function of dfn and dfd degrees of freedom at x: "
        "`betainc(dfn / 2, dfd / 2, dfn x / (dfd + dfn x))`; NaN below 0.", "betainc",
        "2.0, 2.0, 1.0 -> 0.5")  # fmt: skip
def fdtr(dfn: Node, dfd: Node, x: Node) -> Node:
    bad = x < 0
    return _where_nan(bad, _ratio_tails(dfn, dfd, _safe(bad, x))[0])


def _ratio_tails(dfn: Node, dfd: Node, x: Node) -> tuple[Node, Node]:
    """Both tails of the F distribution: the one above 1/2 by the other, whose argument of the
    incomplete beta function is not close to 1 then."""
    w = dfn * x
    a, b = dfn * 0.5, dfd * 0.5
    low, high = ops.betainc(a, b, w / (dfd + w)), ops.betainc(b, a, dfd / (dfd + w))
    return el.select(low > 0.5, 1 - high, low), el.select(high > 0.5, 1 - low, high)


@_named("fdtrc", "`1 - fdtr(dfn, dfd, x)`, accurate where it is small.", "betainc",
        "2.0, 2.0, 1.0 -> 0.5")  # fmt: skip
def fdtrc(dfn: Node, dfd: Node, x: Node) -> Node:
    bad = x < 0
    return _where_nan(bad, _ratio_tails(dfn, dfd, _safe(bad, x))[1])


@_named("fdtri", "The x at which `fdtr(dfn, dfd, x)` is p.", "betainc", "2.0, 2.0, 0.5 -> 1.0")
def fdtri(dfn: Node, dfd: Node, p: Node) -> Node:
    # By the quantile of the beta distribution from whichever end is closer.
    low = called.betaincinv(dfn * 0.5, dfd * 0.5, p)
    upper = low > 0.5
    high = called.betainccinv(dfd * 0.5, dfn * 0.5, _safe(el.bitwise_not(upper), p, 0.5))
    ratio = el.select(upper, (1 - high) / high, low / (1 - _safe(upper, low, 0.5)))
    return dfd / dfn * ratio


@_named("stdtr", "Student's t distribution function of df degrees of freedom at t, accurate in its "
        "lower tail: for float64 within `16 + df / 2` units in the last place.", "betainc",
        "1.0, 1.0 -> 0.75")  # fmt: skip
def stdtr(df: Node, t: Node) -> Node:
    # By whichever of both arguments of the incomplete beta function is not close to 1.
    square = t * t
    far = square > 1
    x = df / (df + square)
    tail = ops.betainc(df * 0.5, like(0.5, t), _safe(el.bitwise_not(far), x, 0.5)) * 0.5
    near = _safe(far, t, 0.0)
    middle = ops.betainc(like(0.5, t), df * 0.5, near * near / (df + near * near)) * 0.5
    half = like(0.5, t)
    low = el.select(far, tail, half - middle)
    high = el.select(far, 1 - tail, half + middle)
    found = el.select(t < 0, low, high)
    # At 0, where the square has no slope, by that of the density.
    flat = el.is_zero(t)
    density = el.exp(-ops.betaln(half, df * 0.5)) / el.sqrt(df)
    return el.select(flat, half + t * density, found)


@_named("stdtrit", "The t at which `stdtr(df, t)` is p.", "betainc", "1.0, 0.75 -> 1.0")
def stdtrit(df: Node, p: Node) -> Node:
    upper = p > 0.5
    q = el.select(upper, 1 - p, p)
    # The tail of t is half of that of t**2, which is F distributed; by the quantile of the beta
    # distribution from whichever end is closer.
    outer = called.betaincinv(df * 0.5, like(0.5, q), q * 2.0)
    close = outer > 0.5
    far = el.sqrt(df * (1 - outer) / _safe(close, outer, 0.5))
    central = q > 0.25
    tail = _safe(central | el.bitwise_not(close), q, 0.25)
    body = _safe(el.bitwise_not(central & close), q, 0.4)
    inner = el.select(
        central,
        called.betaincinv(like(0.5, q), df * 0.5, 1 - 2.0 * body),
        called.betainccinv(like(0.5, q), df * 0.5, 2.0 * tail),
    )
    near = el.sqrt(df * inner / (1 - inner))
    size = el.select(close, near, far)
    found = el.select(upper, size, -size)
    middle = el.eq(p, like(0.5, p))
    slope = el.exp(ops.betaln(like(0.5, p), df * 0.5)) * el.sqrt(df)
    return el.select(middle, (p - 0.5) * slope, found)
