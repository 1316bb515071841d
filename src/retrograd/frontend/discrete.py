"""Samples that are counts or choices, from keys; without gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import ShapeError
from retrograd.frontend.broadcasting import as_node, broadcast_to, together
from retrograd.frontend.elementwise import ArrayLike
from retrograd.frontend.function import function
from retrograd.frontend.sampling import (
    PROPOSALS,
    first_accepted,
    given,
    keys,
    minus_log,
    several,
    unit,
)
from retrograd.ir import Node, as_shape, float64, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.portable import portable_exp, portable_log, portable_log_factorial
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import expand, reshape, slice_axis


@function
def geometric(key: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    """How many trials up to the first success, from 1 on."""
    _, (wide,), size = given(shape, p)
    certain = wide >= 1.0
    q = el.select(certain, full(0.5, wide.type), 1.0 - wide)
    u = unit(key, size)
    count = el.floor(minus_log(u) / minus_log(q)) + 1.0
    return _counted((wide > 0.0) & (wide <= 1.0), el.select(certain, full(1, u.type), count))


def _counted(c: Node, count: Node) -> Node:
    """Counts as integers; -1 where the parameters are out of their range."""
    return el.cast(el.select(c, count, full(-1, count.type)), int64)


def _by_inversion(u: Node, first: Node, ratio: Callable[[Node, float], Node], terms: int) -> Node:
    """The least k with `u < P(0) + ... + P(k)`, with `P(k) = P(k - 1) ratio(k)`."""
    total, term, count = first, first, full(0, u.type)
    for k in range(1, terms):
        count = count + el.cast(u >= total, float64)
        term = ratio(term, float(k))
        total = total + term
    return count


@function
def poisson(key: ArrayLike, rate: ArrayLike, shape: Any) -> Any:
    """By inversion below 10; else by transformed rejection (W. Hoermann, "The transformed rejection
    method for generating Poisson random variables", 1993)."""
    _, (lam,), size = given(shape, rate)
    large = lam >= 10.0
    k1, k2, k3 = keys(key, 3)
    low = el.select(large, full(1, lam.type), lam)
    small = _by_inversion(
        unit(k1, size), portable_exp(-low), lambda term, k: term * low * (1 / k), 64
    )
    high = several(el.select(large, lam, full(10, lam.type)), PROPOSALS)
    b = 0.931 + 2.53 * el.sqrt(high)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    u = unit(k2, high.shape) - 0.5
    v = unit(k3, high.shape)
    us = 0.5 - el.abs(u)
    k = el.floor((2.0 * a / us + b) * u + high + 0.43)
    quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
    possible = (k >= 0.0) & ((us >= 0.013) | (v <= us))
    whole = el.max(k, full(0, k.type))
    left = portable_log(v * inverse_alpha / (a / (us * us) + b))
    right = whole * portable_log(high) - high - portable_log_factorial(whole)
    drawn = first_accepted(k, quick | (possible & (left <= right)))
    return _counted(lam >= 0.0, el.select(large, drawn, small))


@function
def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    """By inversion where the mean is below 10; else by transformed rejection (W. Hoermann, "The
    generation of binomial random variates", 1993). Of the rarer of success and failure."""
    _, (trials, chance), size = given(shape, el.cast(as_node(n), float64), p)
    flipped = chance > 0.5
    q = el.select(flipped, 1.0 - chance, chance)
    large = trials * q >= 10.0
    k1, k2, k3 = keys(key, 3)
    small_n = el.select(large, full(1, q.type), trials)
    small_q = el.select(large, full(0.5, q.type), q)
    odds = small_q / (1.0 - small_q)
    first = portable_exp(-small_n * minus_log(1.0 - small_q))
    first = el.select(el.is_zero(small_q), full(1, q.type), first)
    small = _by_inversion(
        unit(k1, size), first, lambda term, k: term * (small_n - (k - 1)) * odds * (1 / k), 64
    )
    small = el.min(small, small_n)
    drawn = _large_binomial(
        k2, k3,
        several(el.select(large, trials, full(40, q.type)), PROPOSALS),
        several(el.select(large, q, full(0.5, q.type)), PROPOSALS),
    )  # fmt: skip
    count = el.select(large, drawn, small)
    possible = (trials >= 0.0) & (chance >= 0.0) & (chance <= 1.0)
    return _counted(possible, el.select(flipped, trials - count, count))


def _large_binomial(k1: Node, k2: Node, n: Node, p: Node) -> Node:
    root = el.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    top = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * root
    log_odds = portable_log(p / (1.0 - p))
    mode = el.floor((n + 1.0) * p)
    u = unit(k1, n.shape) - 0.5
    v = unit(k2, n.shape)
    us = 0.5 - el.abs(u)
    k = el.floor((2.0 * a / us + b) * u + c)
    quick = (us >= 0.07) & (v <= top)
    possible = (k >= 0.0) & (k <= n)
    whole = el.clamp(k, full(0, k.type), n)
    left = portable_log(v * alpha / (a / (us * us) + b))
    right = (
        portable_log_factorial(mode)
        + portable_log_factorial(n - mode)
        - portable_log_factorial(whole)
        - portable_log_factorial(n - whole)
        + (whole - mode) * log_odds
    )
    return first_accepted(k, possible & (quick | (left <= right)))


@function
def by_probability(key: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    """Numbers of the elements of p, drawn with these probabilities, by inversion."""
    (wide,) = (el.cast(together(p, floating=True)[0], float64),)
    if wide.type.rank != 1 or wide.shape[0] == 0:
        raise ShapeError(f"choice: the probabilities are a vector, not of shape {wide.shape}")
    total = CumSum(0)(wide)
    last = slice_axis(total, 0, wide.shape[0] - 1, wide.shape[0])
    size = as_shape(shape)
    u = unit(key, size) * broadcast_to(reshape(last, ()), size)
    rank = len(size)
    every = (*size, wide.shape[0])
    above = expand(u, every, (rank,)) >= expand(total, every, tuple(range(rank)))
    count = ReduceSum((rank,))(el.cast(above, int64))
    return el.min(count, full(wide.shape[0] - 1, count.type))


@function
def races(key: ArrayLike, p: ArrayLike) -> Any:
    """Exponential times of rates p: the first to arrive are a sample without replacement (P. S.
    Efraimidis, P. G. Spirakis, 2006)."""
    rates = el.cast(together(p, floating=True)[0], float64)
    return minus_log(unit(key, rates.shape)) / rates
