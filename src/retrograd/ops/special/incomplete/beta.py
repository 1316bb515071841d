"""The regularised incomplete beta function and its derivatives."""

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


def beta_density(m: IncompleteMath, a: Any, b: Any, x: Any, y: Any) -> Any:
    """`D = x^a y^b / B(a, b)` of `y = 1 - x`"""
    c = a + b
    lack = a * y - b * x

    def part(p: Any, z: Any, excess: Any) -> Any:
        """`p log(z c / p) - excess`, `excess = z c - p`"""
        mu = excess / p
        near = (mu < 0.4) & (mu > -0.28)
        inside = m.choose(near, mu, mu * 0.0)
        log = m.log(z) + (m.log(c) - m.log(p))
        return m.choose(near, p * m.log1p_rest(inside), p * log - excess)

    exponent = part(a, x, -lack) + part(b, y, lack)
    exponent = exponent + (m.stirling(c) - m.stirling(a) - m.stirling(b))
    return m.exp(exponent) * m.sqrt(a * (b / c) * (0.5 / math.pi))


def beta_tails(m: IncompleteMath, a: Any, b: Any, x: Any, order: str) -> tuple[Any, Any]:
    """Whether the tail is the right one, and the tail, or a derivative: "" or some of "ab".

    For finite positive `a` and `b`, and `x` between 0 and 1.
    """
    y = 1.0 - x
    low = x <= 0.5
    before = x * (a + b) < a
    right = m.choose(low, x, y) * (a + b) < CLOSE
    right = (low & ~(before | right)) | (~low & ~(before & ~right))
    p, q = m.choose(right, b, a), m.choose(right, a, b)
    x, y = m.choose(right, y, x), m.choose(right, x, y)
    # Derivatives in the parameters as they stand, and with both exchanged.
    orders = [order, order.translate(str.maketrans("ab", "ba"))]
    if len({"".join(sorted(o)) for o in orders}) == 1:
        orders = orders[:1]
    raised = p < float(RAISED)
    top = m.choose(raised, p + float(RAISED), p)
    total = top + q
    lack = top * y - q * x
    width = _beta_width(m, top, q, x, y, lack)
    near = m.choose(x <= 0.5, x, y)
    turn = m.choose(x <= 0.5, x * 0.0 - 1.0, x * 0.0 + 1.0)

    def point(w: Any) -> tuple[Any, ...]:
        z = near * m.expm1(turn * w)
        rest = m.log1p_rest(z)
        e = m.exp(-(lack * w) - total * (rest + near * m.expm1_rest(turn * w)))
        log = rest + z
        # The logarithms of t and 1 - t, less those of x and y.
        first = m.choose(turn < 0.0, -w - log, -log)
        other = m.choose(turn < 0.0, -log, w - log)
        return (e, e * first, e * other, e * first * first, e * first * other, e * other * other)[
            : (1, 3, 6)[len(order)]
        ]

    moments = integrals(m, width, point, (1, 3, 6)[len(order)])
    density = beta_density(m, p, q, x, y)
    results = []
    for o in orders:
        sums, last = _beta_terms(m, p, q, x, y, o)
        scale = m.choose(raised, last * x * (p + q + (RAISED - 1.0)), density * 0.0 + 1.0)
        part = m.choose(raised, sums, sums * 0.0)
        results.append(density * (part + scale * _beta_moment(m, top, q, x, y, lack, moments, o)))
    return right, results[0] if len(results) == 1 else m.choose(right, results[1], results[0])


def _beta_moment(
    m: IncompleteMath, p: Any, q: Any, x: Any, y: Any, lack: Any, moments: Any, order: str
) -> Any:
    if not order:
        return moments[0]
    c = p + q
    joint = m.digamma_rest(c)
    kappa = {
        "a": lambda: log_ratio(m, -lack, x * c, p) + (m.digamma_rest(p) - joint),
        "b": lambda: log_ratio(m, lack, y * c, q) + (m.digamma_rest(q) - joint),
    }
    slot = {"a": 1, "b": 2, "aa": 3, "ab": 4, "ba": 4, "bb": 5}
    if len(order) == 1:
        return kappa[order]() * moments[0] + moments[slot[order]]
    k, j = kappa[order[0]](), kappa[order[1]]()
    if order[0] == order[1]:
        z, own = (x, p) if order[0] == "a" else (y, q)
        square = squared_score(m, k, m.log(z) + m.digamma(c), own)
    else:
        square = k * j
    mixed = k * moments[slot[order[1]]] + j * moments[slot[order[0]]]
    return (square + m.trigamma(c)) * moments[0] + mixed + moments[slot[order]]


def _beta_width(m: IncompleteMath, p: Any, q: Any, x: Any, y: Any, lack: Any) -> Any:
    """Where the integrand has decayed: by Newton's method, from a bound above for the concave
    exponent, or from a guess from which the next step is one."""
    c = p + q
    curvature = c * x * y
    mild = (lack + m.sqrt(lack * lack + curvature * (4 * DECAY / 3))) / (2 * DECAY)
    s = c * y
    ratio = DECAY / s
    guess = m.log1p(ratio + m.sqrt(ratio * ratio + ratio * 2.0))
    guess = m.choose(x <= 0.5, (DECAY - c * m.log(y)) / p, guess)
    slight = mild >= 1.0
    width = m.choose(slight, 1.0 / m.choose(slight, mild, mild * 0.0 + 1.0), guess)
    for _ in range(4):
        fall = m.exp(-width)
        below = y + x * fall
        value = p * width + c * m.log(below)
        slope = p - c * x * fall / below
        newton = width - (value - DECAY) / slope
        width = m.choose(slight, width, newton)
    return width


def _beta_terms(m: IncompleteMath, p: Any, q: Any, x: Any, y: Any, order: str) -> tuple[Any, Any]:
    """The sum of the 16 terms, in units of the density, or its derivative; and the last term.

    Besides the term, the loop carries the logarithmic derivatives in the parameters of `order`, and
    of two the derivative of one of them in the other."""
    c = p + q
    start: list[Any] = []
    for one in sorted(set(order)):
        if one == "a":
            start.append(m.log(x) - m.digamma(p + 1.0) + m.digamma(c))
        else:
            start.append(m.log(y) - m.digamma(q) + m.digamma(c))
    if len(order) == 2:
        less = {"aa": lambda: m.trigamma(p + 1.0), "bb": lambda: m.trigamma(q)}
        spread = m.trigamma(c)
        start.append(spread - less[order]() if order in less else spread)

    def factor(rest: Any) -> Any:
        if len(order) < 2:
            return rest[0] if order else 1.0
        return rest[0] * rest[len(rest) - 2] + rest[-1]

    def step(k: Any, term: Any, total: Any, *rest: Any) -> tuple[Any, ...]:
        below, above = 1.0 / (p + k), c + (k - 1.0)
        term = term * x * above * below
        if order:
            inverse = 1.0 / above
            moved = [r + (inverse - below if one == "a" else inverse)
                     for one, r in zip(sorted(set(order)), rest, strict=False)]  # fmt: skip
            if len(order) == 2:
                squares = below * below - inverse * inverse if order == "aa" else -inverse * inverse
                moved.append(rest[-1] + squares)
            rest = tuple(moved)
        return k + 1.0, term, total + term * factor(rest), *rest

    first = 1.0 / p
    _, term, total, *_ = m.loop(
        RAISED - 1, step, x * 0.0 + 1.0, first, first * factor(tuple(start)), *start
    )
    return total, term


def _beta_arguments(m: IncompleteMath, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    good = (a > 0.0) & (a < math.inf) & (b > 0.0) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    one = m.choose((a > 0.0) & (a < math.inf), a, 1.0) * 0.0 + 1.0
    a = m.choose(a < 1e-300, one * 1e-300, a)
    b = m.choose(b < 1e-300, one * 1e-300, b)
    return good, m.choose(good, a, one), m.choose(good, b, one), m.choose(good, x, one * 0.5)


@formula_of("betainc")
def betainc(m: IncompleteMath, a: Any, b: Any, x: Any) -> Any:
    good, p, q, v = _beta_arguments(m, a, b, x)
    right, tail = beta_tails(m, p, q, v, "")
    tail = least(m, tail, tail * 0.0 + 1.0)
    inside = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    inside = inside & ((a > 0.0) | (b > 0.0)) & ((a < math.inf) | (b < math.inf))
    return chosen(
        m, good, m.choose(right, 1.0 - tail, tail),
        (inside & equal(x, 0.0), 0.0), (inside & equal(x, 1.0), 1.0),
        (inside & (equal(a, 0.0) | equal(b, math.inf)), 1.0),
        (inside & (equal(b, 0.0) | equal(a, math.inf)), 0.0),
    )  # fmt: skip


@formula_of("betainc_dx")
def betainc_dx(m: IncompleteMath, a: Any, b: Any, x: Any) -> Any:
    good, p, q, v = _beta_arguments(m, a, b, x)
    y = beta_density(m, p, q, v, 1.0 - v) / v / (1.0 - v)
    start, end = equal(x, 0.0) & (b > 0.0), equal(x, 1.0) & (a > 0.0)
    # With a parameter of 0 the function is 0 or 1 in between.
    flat = (x > 0.0) & (x < 1.0) & (equal(a, 0.0) & (b > 0.0) | equal(b, 0.0) & (a > 0.0))
    y = chosen(
        m, good, y, (flat, 0.0),
        (start & (a > 1.0) | end & (b > 1.0), 0.0),
        (start & (a > 0.0) & (a < 1.0) | end & (b > 0.0) & (b < 1.0), math.inf),
    )  # fmt: skip
    return m.choose(start & equal(a, 1.0), b, m.choose(end & equal(b, 1.0), a, y))


def _beta_derivative(order: str) -> Callable[..., Any]:
    def derivative(m: IncompleteMath, a: Any, b: Any, x: Any) -> Any:
        good, p, q, v = _beta_arguments(m, a, b, x)
        right, tail = beta_tails(m, p, q, v, order)
        ends = (equal(x, 0.0) | equal(x, 1.0)) & (a > 0.0) & (b > 0.0)
        # Where one of a and b is 0, the function is 0 or 1 whatever the other is.
        inside = (x > 0.0) & (x < 1.0)
        if order in ("a", "aa"):
            ends = ends | inside & equal(b, 0.0) & (a > 0.0) & (a < math.inf)
        if order in ("b", "bb"):
            ends = ends | inside & equal(a, 0.0) & (b > 0.0) & (b < math.inf)
        return chosen(m, good, m.choose(right, -tail, tail), (ends, 0.0))

    return derivative


for _order in ("a", "b", "aa", "ab", "bb"):
    formula_of(f"betainc_d{_order}")(_beta_derivative(_order))
