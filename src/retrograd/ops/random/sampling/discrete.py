"""Samples that are counts, from a key, as doubles; -1 where the parameters are out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.ir import float64
from retrograd.ops.random.sampling.continuous import PROPOSALS, keys, minus_log, unit
from retrograd.ops.random.sampling.numbers import SampleMath

TERMS = 64  # of a sum of probabilities


def _unless(m: SampleMath, c: Any, count: Any) -> Any:
    return m.choose(c, count, -1.0)


def _by_inversion(
    m: SampleMath, u: Any, first: Any, ratio: Callable[[Any, float], Any], terms: int
) -> Any:
    """The least k with `u < P(0) + ... + P(k)`, with `P(k) = ratio(P(k - 1), k)`."""
    total, term, count = first, first, m.constant(0.0, u)
    for k in range(1, terms):
        count = count + m.cast(u >= total, float64)
        term = ratio(term, float(k))
        total = total + term
    return count


def geometric(m: SampleMath, key: Any, shape: Any, p: Any) -> Any:
    """How many trials up to the first success, from 1 on."""
    certain = p >= 1.0
    q = m.choose(certain, 0.5, 1.0 - p)
    u = unit(m, key, shape)
    count = m.floor(minus_log(m, u) / minus_log(m, q)) + 1.0
    return _unless(m, (p > 0.0) & (p <= 1.0), m.choose(certain, 1.0, count))


def poisson(m: SampleMath, key: Any, shape: Any, rate: Any) -> Any:
    """By inversion below 10; else by transformed rejection (W. Hoermann, "The transformed rejection
    method for generating Poisson random variables", 1993)."""
    large = rate >= 10.0
    k1, k2, k3 = keys(m, key, 3)
    low = m.choose(large, 1.0, rate)
    small = _by_inversion(
        m, unit(m, k1, shape), m.exp(-low), lambda term, k: term * low * (1 / k), TERMS
    )
    every = (PROPOSALS, *shape)
    high = m.several(m.choose(large, rate, 10.0), PROPOSALS)
    b = 0.931 + 2.53 * m.sqrt(high)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    u = unit(m, k2, every) - 0.5
    v = unit(m, k3, every)
    us = 0.5 - m.abs(u)
    k = m.floor((2.0 * a / us + b) * u + high + 0.43)
    quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
    possible = (k >= 0.0) & ((us >= 0.013) | (v <= us))
    whole = m.max(k, 0.0)
    left = m.log(v * inverse_alpha / (a / (us * us) + b))
    right = whole * m.log(high) - high - m.log_factorial(whole)
    drawn = m.first(k, quick | (possible & (left <= right)))
    return _unless(m, rate >= 0.0, m.choose(large, drawn, small))


def binomial(m: SampleMath, key: Any, shape: Any, trials: Any, chance: Any) -> Any:
    """By inversion where the mean is below 10; else by transformed rejection (W. Hoermann, "The
    generation of binomial random variates", 1993). Of the rarer of success and failure."""
    flipped = chance > 0.5
    q = m.choose(flipped, 1.0 - chance, chance)
    large = trials * q >= 10.0
    k1, k2, k3 = keys(m, key, 3)
    small_n = m.choose(large, 1.0, trials)
    small_q = m.choose(large, 0.5, q)
    odds = small_q / (1.0 - small_q)
    first = m.exp(-small_n * minus_log(m, 1.0 - small_q))
    first = m.choose(m.is_zero(small_q), 1.0, first)

    def ratio(term: Any, k: float) -> Any:
        return term * (small_n - (k - 1)) * odds * (1 / k)

    small = m.min(_by_inversion(m, unit(m, k1, shape), first, ratio, TERMS), small_n)
    drawn = _large_binomial(
        m, k2, k3, shape, m.choose(large, trials, 40.0), m.choose(large, q, 0.5)
    )
    count = m.choose(large, drawn, small)
    possible = (trials >= 0.0) & (chance >= 0.0) & (chance <= 1.0)
    return _unless(m, possible, m.choose(flipped, trials - count, count))


def _large_binomial(m: SampleMath, k1: Any, k2: Any, shape: Any, n: Any, p: Any) -> Any:
    n, p = m.several(n, PROPOSALS), m.several(p, PROPOSALS)
    root = m.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    top = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * root
    log_odds = m.log(p / (1.0 - p))
    mode = m.floor((n + 1.0) * p)
    u = unit(m, k1, (PROPOSALS, *shape)) - 0.5
    v = unit(m, k2, (PROPOSALS, *shape))
    us = 0.5 - m.abs(u)
    k = m.floor((2.0 * a / us + b) * u + c)
    quick = (us >= 0.07) & (v <= top)
    possible = (k >= 0.0) & (k <= n)
    whole = m.clamp(k, 0.0, n)
    left = m.log(v * alpha / (a / (us * us) + b))
    right = (
        m.log_factorial(mode)
        + m.log_factorial(n - mode)
        - m.log_factorial(whole)
        - m.log_factorial(n - whole)
        + (whole - mode) * log_odds
    )
    return m.first(k, possible & (quick | (left <= right)))
