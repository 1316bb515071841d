"""Stochastic arithmetic: the run again and again, every result moved by random last bits.

Each rounded element is moved by k units in its last place, k random with the standard deviation
that one rounding has there; what is exact stays. The spread of what comes out is what rounding
does, terms of every order and the correlations included (Vignes, "A stochastic arithmetic for
reliable scientific computation", 1993; Parker, "Monte Carlo Arithmetic", 1997). It shares neither
derivatives nor bounds with `first_order.py`, which is why the two are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograd.ir import Node
from retrograd.runtime.executors.reference import value_of
from retrograd.verify.rounding_error.formats import Array, format_of
from retrograd.verify.rounding_error.local_error import LocalError
from retrograd.verify.rounding_error.straight_line import StraightLine


class Spread(NamedTuple):
    """Of the samples of a value: the mean, the standard deviation, for booleans and integers how
    often it was another than in the run."""

    mean: Array
    std: Array
    changed: Array


def sampled(
    run: StraightLine, local: Mapping[Node, LocalError], samples: int, seed: int
) -> dict[Node, Spread]:
    """The spread of every node over so many runs."""
    rng = np.random.default_rng(seed)
    graph, nodes = run.graph, run.graph.nodes
    sums = {n: _Moments(run.values[n]) for n in nodes}
    for _ in range(samples):
        values: dict[Node, Any] = {x: run.values[x] for x in graph.inputs}
        with np.errstate(all="ignore"):
            for node in graph.body:
                given = [values[x] for x in node.inputs]
                error = local[node]
                if error.backward:
                    given = [_shaken(x, error.backward, rng) for x in given]
                y = value_of(node, given, {})
                values[node] = y if not node.dtype.is_inexact else moved(node, y, error.std, rng)
                sums[node].add(values[node])
    return {n: s.spread() for n, s in sums.items()}


def moved(node: Node, y: Any, std: Array, rng: np.random.Generator) -> Any:
    """A value moved by random last bits, of a given standard deviation."""
    if not np.any(std):
        return y
    f = format_of(node.dtype)
    wide = np.asarray(y, np.float64)
    unit = f.ulp(wide)
    share = np.where(np.isfinite(wide), std, 0.0) / unit
    few = rng.random(wide.shape) < np.square(share)
    sign = np.where(rng.random(wide.shape) < 0.5, -1.0, 1.0)
    steps = np.where(share <= 1, few * sign, np.rint(share * rng.standard_normal(wide.shape)))
    return np.asarray(wide + steps * unit).astype(node.dtype.dtype)


def _shaken(x: Any, relative: float, rng: np.random.Generator) -> Any:
    """A matrix moved by a quarter of so much of its norm."""
    if x.dtype.kind in "biu" or not x.size or x.ndim < 1:
        return x
    wide = np.asarray(x, np.float64)
    axes = tuple(range(-min(2, x.ndim), 0))
    norm = np.sqrt(np.square(wide).mean(axis=axes, keepdims=True))
    noise = rng.standard_normal(wide.shape) * norm * (relative / 4)
    return np.asarray(wide + noise).astype(x.dtype)


class _Moments:
    """Sums of deviations from the value of the run, which are small, and of their squares."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.start = np.asarray(value).astype(np.float64)
        self.first = np.zeros(self.start.shape)
        self.second = np.zeros(self.start.shape)
        self.changed = np.zeros(self.start.shape)
        self.count = 0

    def add(self, value: Any) -> None:
        new = np.asarray(value).astype(np.float64)
        alike = (new == self.start) | (np.isnan(new) & np.isnan(self.start))
        with np.errstate(all="ignore"):
            off = np.where(alike, 0.0, new - self.start)
        self.first += off
        self.second += off * off
        self.changed += off != 0
        self.count += 1

    def spread(self) -> Spread:
        n = max(self.count, 1)
        mean = self.first / n
        with np.errstate(all="ignore"):
            variance = np.maximum(self.second - n * mean * mean, 0.0) / max(n - 1, 1)
            return Spread(self.start + mean, np.sqrt(variance), self.changed / n)


def _all_finite(given: list[Any]) -> bool:
    return bool(given) and all(np.isfinite(np.asarray(x, np.float64)).all() for x in given)


def beyond_overflow(run: StraightLine) -> list[Array] | None:
    """The outputs where each element that overflowed is the largest number instead; None where
    none did. The true values of what overflowed lie beyond that, and short of infinity."""
    values: dict[Node, Any] = {x: run.values[x] for x in run.graph.inputs}
    found = False
    with np.errstate(all="ignore"):
        for node in run.graph.body:
            given = [values[x] for x in node.inputs]
            y = value_of(node, given, {})
            if node.dtype.is_float and np.isinf(y).any() and _all_finite(given):
                found = True
                most = format_of(node.dtype).largest
                y = np.clip(np.asarray(y, np.float64), -most, most).astype(node.dtype.dtype)
            values[node] = y
    return [np.asarray(values[y]) for y in run.graph.outputs] if found else None
