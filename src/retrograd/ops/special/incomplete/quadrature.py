"""What both distributions share: the numbers they are written for, and integrals of decays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

RAISED = 16
PANELS = 8
NODES = (
    0.1252334085114689, 0.3678314989981802, 0.5873179542866175, 0.7699026741943047,
    0.9041172563704749, 0.9815606342467192,
)  # fmt: skip
WEIGHTS = (
    0.24914704581340277, 0.2334925365383548, 0.20316742672306592, 0.16007832854334622,
    0.10693932599531843, 0.04717533638651183,
)  # fmt: skip
DECAY = 40.0  # the integrand is cut off at exp(-40)
CLOSE = 0.1  # so near to the end, in units of the density's scale there, it is not integrated


Point = Callable[[Any], tuple[Any, ...]]
F = TypeVar("F", bound=Callable[..., Any])


# By the names of the ops: `_dx` is the derivative in `x`, `_daa` the second in `a`.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def formula_of(op: str) -> Callable[[F], F]:
    """A decorator that enters the formula of the op of this name, which is made of it."""

    def enter(f: F) -> F:
        FUNCTIONS[op] = f
        return f

    return enter


class IncompleteMath(Protocol):
    """What the formulas ask of numbers in double precision, beside their operators."""

    def exp(self, x: Any) -> Any: ...
    def expm1(self, x: Any) -> Any: ...
    def log(self, x: Any) -> Any: ...
    def log1p(self, x: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def sin(self, x: Any) -> Any: ...
    def bessel_ratio(self, k: Any) -> Any:
        """`I_1(k) / I_0(k)`"""

    def choose(self, c: Any, a: Any, b: Any) -> Any: ...

    def expm1_rest(self, x: Any) -> Any:
        """`exp(x) - 1 - x`, relatively accurate."""

    def log1p_rest(self, x: Any) -> Any:
        """`log(1 + x) - x`, relatively accurate."""

    def stirling(self, a: Any) -> Any:
        """`log Gamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2)`"""

    def digamma(self, a: Any) -> Any: ...
    def digamma_rest(self, a: Any) -> Any:
        """`log a - psi(a)`"""

    def trigamma(self, a: Any) -> Any: ...
    def log_gamma_near_two(self, t: Any) -> Any:
        """`log Gamma(2 + t)` for `|t| <= 1/2`, relatively accurate."""

    def sums(self, half: Any, zero: Any, point: Point, count: int) -> Any:
        """What `one_by_one` gives."""

    def loop(self, count: int, body: Callable[..., tuple[Any, ...]], *state: Any) -> Any:
        """The state after `count` times `state = body(*state)`."""


def least(m: IncompleteMath, a: Any, b: Any) -> Any:
    return m.choose(a < b, a, b)


def integrals(m: IncompleteMath, width: Any, point: Point, count: int) -> Any:
    """The integrals from 0 to `width` of the numbers that `point` gives at a place."""
    half = width * (0.5 / PANELS)
    return [s * half for s in m.sums(half, width * 0.0, point, count)]


def one_by_one(m: IncompleteMath, half: Any, zero: Any, point: Point, count: int) -> Any:
    """The weighted sums of the numbers at the places of all panels, each of twice `half`."""

    def panel(centre: Any, *sums: Any) -> tuple[Any, ...]:
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            for place in (centre - half * node, centre + half * node):
                sums = tuple([s + v * weight for s, v in zip(sums, point(place), strict=True)])
        return (centre + half * 2.0, *sums)

    _, *sums = m.loop(PANELS, panel, half, *[zero] * count)
    return sums


class Panels:
    """The same for NumPy's arrays, at all places at once."""

    count = PANELS * len(NODES) * 2
    _weights = np.tile(np.repeat(WEIGHTS, 2), PANELS)

    @staticmethod
    def places(half: Any) -> Any:
        """They lie along a new first axis, in the order in which they are added up."""
        centres = [half]
        for _ in range(PANELS - 1):
            centres.append(centres[-1] + half * 2.0)
        away = [half * node for node in NODES]
        found = [p for c in centres for d in away for p in (c - d, c + d)]
        return np.array(found)

    @classmethod
    def total(cls, zero: Any, values: Any) -> Any:
        weighted = values * cls._weights.reshape(-1, *[1] * (np.ndim(values) - 1))
        return np.add.accumulate(np.concatenate([zero[None], weighted]))[-1]


def log_ratio(m: IncompleteMath, excess: Any, x: Any, a: Any) -> Any:
    """`log(x / a)` of `excess = x - a`"""
    near = (x < a + a) & (a < x + x)
    return m.choose(near, m.log1p(m.choose(near, excess / a, a * 0.0)), m.log(x) - m.log(a))


def squared_score(m: IncompleteMath, kappa: Any, rest: Any, a: Any) -> Any:
    """`kappa^2 - psi'(a)` of `kappa = rest - psi(a)`; for `a < 1` by way of `a + 1`: squares of
    `1 / a` cancel."""
    inverse = 1.0 / a
    above = rest - m.digamma(a + 1.0)
    low = above * above + above * 2.0 * inverse - m.trigamma(a + 1.0)
    return m.choose(a < 1.0, low, kappa * kappa - m.trigamma(a))


def equal(x: Any, value: float) -> Any:
    return (x <= value) & (x >= value)


def chosen(m: IncompleteMath, good: Any, y: Any, *cases: tuple[Any, float]) -> Any:
    """`y` where it is good, else the value of the first case that holds, else NaN."""
    rest = y * 0.0 + math.nan
    for c, value in reversed(cases):
        rest = m.choose(c, y * 0.0 + value, rest)
    return m.choose(good, y, rest)
