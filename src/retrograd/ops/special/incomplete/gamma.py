"""The regularised incomplete gamma functions and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograd.ops.special.incomplete.quadrature import (
    CLOSE,
    DECAY,
    RAISED,
    IncompleteMath,
    chosen,
    equal,
    formula_of,
    integrals,
    least,
    log_ratio,
    squared_score,
)


def _gamma_exponent(m: IncompleteMath, a: Any, x: Any) -> Any:
    """`a log(x / a) - x + a`: how far the density is below its peak."""
    far = x - a
    mu = far / a
    near = (mu < 0.4) & (mu > -0.28)
    inside = m.choose(near, mu, mu * 0.0)
    return m.choose(near, a * m.log1p_rest(inside), a * (m.log(x) - m.log(a)) - far)


def gamma_density(m: IncompleteMath, a: Any, x: Any) -> Any:
    """`D = x^a exp(-x) / Gamma(a)`"""
    exponent = _gamma_exponent(m, a, x) - m.stirling(a)
    return m.exp(exponent) * m.sqrt(a * (0.5 / math.pi))


def gamma_tails(m: IncompleteMath, a: Any, x: Any, order: int) -> tuple[Any, Any]:
    """Whether the tail is `Q`, and the tail, `P` or `Q`, or its derivative of the order in `a`.

    For finite positive `a` and `x`; the derivatives up to the second.
    """
    right = (x >= a) & (x >= CLOSE)
    raised = (a < float(RAISED)) & ~right
    top = m.choose(raised, a + float(RAISED), a)
    sign = m.choose(right, a * 0.0 + 1.0, a * 0.0 - 1.0)
    d = abs(x - top)
    mild = (d + m.sqrt(d * d + x * (4 * DECAY / 3))) / (2 * DECAY)
    steep = m.choose(right, m.log1p(2 * DECAY / x), (x + DECAY) / top)
    slight = (mild >= 1.0) | (right & (x >= 20.0))
    narrow = 1.0 / m.choose(slight, mild, mild * 0.0 + 1.0)
    # The parabola below the exponent has the curvature x/2 on the right, x/3 on the left.
    width = m.choose(slight, narrow, steep)

    def point(w: Any) -> tuple[Any, ...]:
        e = m.exp(-(d * w) - x * m.expm1_rest(sign * w))
        u = sign * w
        return (e, e * u, e * u * u)[: order + 1]

    moments = integrals(m, width, point, order + 1)
    density = gamma_density(m, a, x)
    sums, last = _gamma_terms(m, a, x, order)
    scale = m.choose(raised, last * x, density * 0.0 + 1.0)
    part = m.choose(raised, sums, sums * 0.0)
    if order == 0:
        return right, density * (part + scale * moments[0])
    kappa = log_ratio(m, x - top, x, top) + m.digamma_rest(top)
    if order == 1:
        return right, density * (part + scale * (kappa * moments[0] + moments[1]))
    square = squared_score(m, kappa, m.log(x), top)
    second = square * moments[0] + kappa * 2.0 * moments[1] + moments[2]
    return right, density * (part + scale * second)


def _gamma_terms(m: IncompleteMath, a: Any, x: Any, order: int) -> tuple[Any, Any]:
    """The sum of the 16 terms, in units of the density, or its derivative; and the last term."""
    kappa = m.log(x) - m.digamma(a + 1.0) if order else None
    spread = m.trigamma(a + 1.0) if order == 2 else None

    def factor(kappa: Any, spread: Any) -> Any:
        return kappa if order == 1 else kappa * kappa - spread

    def step(below: Any, term: Any, total: Any, *more: Any) -> tuple[Any, ...]:
        inverse = 1.0 / below
        term = term * x * inverse
        if not order:
            return below + 1.0, term, total + term
        k = more[0] - inverse
        rest = (k,) if order == 1 else (k, more[1] - inverse * inverse)
        return below + 1.0, term, total + term * factor(*rest, *([None] * (order == 1))), *rest

    first = 1.0 / a
    more = () if not order else (kappa,) if order == 1 else (kappa, spread)
    start = first if not order else first * factor(kappa, spread)
    _, term, total, *_ = m.loop(RAISED - 1, step, a + 1.0, first, start, *more)
    return total, term


def gamma_small(m: IncompleteMath, a: Any, x: Any) -> Any:
    """`Q(a, x)` for `a < 1/2` and `x < 0.1`, relatively accurate, from the series of
    `1 - Gamma(a + 1) x^-a P(a, x)` in powers of `x`."""
    log_power = a * m.log(x) - (m.log_gamma_near_two(a) - m.log1p(a))

    def step(k: Any, term: Any, total: Any) -> tuple[Any, ...]:
        term = -(term * x / k)
        return k + 1.0, term, total + term / (a + k)

    one = a * 0.0 + 1.0
    _, _, total = m.loop(18, step, one, one, a * 0.0)
    return -m.expm1(log_power) - m.exp(log_power) * a * total


def _gamma_arguments(m: IncompleteMath, a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Whether both arguments are positive and finite; both, or ones in place of others."""
    good = (a > 0.0) & (a < math.inf) & (x > 0.0) & (x < math.inf)
    one = m.choose((a > 0.0) & (a < math.inf), a, 1.0) * 0.0 + 1.0
    a = m.choose(a < 1e-300, one * 1e-300, a)  # lest 1 / a overflow
    return good, m.choose(good, a, one), m.choose(good, x, one)


def _gamma_edges(a: Any, x: Any, below: float, above: float) -> tuple[tuple[Any, float], ...]:
    """Where the gamma distribution leaves all of itself above `x`, or below."""
    return (
        (equal(x, 0.0) & (a > 0.0), below),
        (equal(a, math.inf) & (x >= 0.0) & (x < math.inf), below),
        (equal(a, 0.0) & (x > 0.0), above),
        (equal(x, math.inf) & (a > 0.0) & (a < math.inf), above),
    )


@formula_of("gammainc")
def gammainc(m: IncompleteMath, a: Any, x: Any) -> Any:
    good, u, v = _gamma_arguments(m, a, x)
    right, tail = gamma_tails(m, u, v, 0)
    tail = least(m, tail, tail * 0.0 + 1.0)
    return chosen(m, good, m.choose(right, 1.0 - tail, tail), *_gamma_edges(a, x, 0.0, 1.0))


@formula_of("gammaincc")
def gammaincc(m: IncompleteMath, a: Any, x: Any) -> Any:
    good, u, v = _gamma_arguments(m, a, x)
    right, tail = gamma_tails(m, u, v, 0)
    tail = least(m, tail, tail * 0.0 + 1.0)
    small = (u < 0.5) & (v < CLOSE)
    series = gamma_small(m, m.choose(small, u, u * 0.0 + 0.25), m.choose(small, v, v * 0.0 + 0.05))
    y = m.choose(small, series, m.choose(right, tail, 1.0 - tail))
    return chosen(m, good, y, *_gamma_edges(a, x, 1.0, 0.0))


@formula_of("gammainc_dx")
def gammainc_dx(m: IncompleteMath, a: Any, x: Any) -> Any:
    good, u, v = _gamma_arguments(m, a, x)
    zero = equal(x, 0.0)
    return chosen(
        m, good, gamma_density(m, u, v) / v,
        (equal(x, math.inf) & (a >= 0.0) | equal(a, 0.0) & (x > 0.0), 0.0),
        (zero & (a > 1.0), 0.0), (zero & equal(a, 1.0), 1.0), (zero & (a > 0.0), math.inf),
    )  # fmt: skip


def _gamma_derivative(order: int) -> Callable[..., Any]:
    def derivative(m: IncompleteMath, a: Any, x: Any) -> Any:
        good, u, v = _gamma_arguments(m, a, x)
        right, tail = gamma_tails(m, u, v, order)
        ends = (equal(x, 0.0) | equal(x, math.inf)) & (a > 0.0)
        return chosen(m, good, m.choose(right, -tail, tail), (ends, 0.0))

    return derivative


formula_of("gammainc_da")(_gamma_derivative(1))
formula_of("gammainc_daa")(_gamma_derivative(2))
