"""Linear lower bounds of a network by going backwards through it, for many cases at once.

`backward` turns rows `a . v` over a value v into linear functions of the input that are not above
them: through sums exactly, through a ReLU by `slope z <= relu(z) <= s (z - l)` for an argument z in
[l, u] (CROWN: Zhang et al., NeurIPS 2018). Where a case has decided the sign of an argument, any
multiple of it of that sign may be taken away (beta-CROWN: Wang et al., NeurIPS 2021). All slopes
and multiples give right bounds; `dual_ascent.py` looks for good ones.

Every bound holds for the program in real numbers, and for the one that runs: what its roundings may
do is added at each sum (`Affine.dtype`), and what the roundings of this file may do is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import OptionError
from retrograd.verify.network import EXACT, ROUNDING, Affine, Array, Relu, ReluNetwork

UNIT = 2.0**-53
# Centres [cases, inputs] and radii [cases] in the 2-norm.
Ball = tuple[Array, Array]
Slopes = Mapping[int, Array]  # of each ReLU's value: [cases, size]


@dataclass(eq=False)
class ValueBounds:
    """For each value [cases, size]: lower and upper, and how far the program is from the sum."""

    lower: list[Array]
    upper: list[Array]
    errors: list[Array]
    ball: Ball | None = None  # that the inputs are in, too

    def take(self, cases: Any) -> ValueBounds:
        """Those of some cases."""
        lower, upper, errors = (
            [x[cases] for x in part] for part in (self.lower, self.upper, self.errors)
        )
        ball = self.ball and (self.ball[0][cases], self.ball[1][cases])
        return ValueBounds(lower, upper, errors, ball)

    @staticmethod
    def stacked(parts: Sequence[ValueBounds]) -> ValueBounds:
        """All cases of several."""
        rows = ([p.lower for p in parts], [p.upper for p in parts], [p.errors for p in parts])
        lower, upper, errors = (
            [np.concatenate(xs) for xs in zip(*part, strict=True)] for part in rows
        )
        balls = [p.ball for p in parts if p.ball is not None]
        if not balls:
            return ValueBounds(lower, upper, errors)
        ball = np.concatenate([b[0] for b in balls]), np.concatenate([b[1] for b in balls])
        return ValueBounds(lower, upper, errors, ball)

    def most(self, value: int) -> Array:
        """The largest magnitude of each element."""
        return np.maximum(np.abs(self.lower[value]), np.abs(self.upper[value]))


class Lower(NamedTuple):
    """`coefficients . x + constant`, [cases, rows, inputs] and [cases, rows], is not above the
    rows that were asked for once `slack` is taken off, which is what roundings may have done.
    `at` holds the coefficients of each ReLU's result on the way."""

    coefficients: Array
    constant: Array
    slack: Array
    at: dict[int, Array]

    def take(self, cases: Any) -> Lower:
        """Those of some cases."""
        at = {k: a[cases] for k, a in self.at.items()}
        return Lower(self.coefficients[cases], self.constant[cases], self.slack[cases], at)

    @staticmethod
    def stacked(parts: Sequence[Lower]) -> Lower:
        """All cases of several."""
        return Lower(
            np.concatenate([p.coefficients for p in parts]),
            np.concatenate([p.constant for p in parts]),
            np.concatenate([p.slack for p in parts]),
            {k: np.concatenate([p.at[k] for p in parts]) for k in parts[0].at},
        )

    def minimum(self, bounds: ValueBounds) -> Array:
        """The least in the box and the ball of the inputs, [cases, rows], rounded down."""
        a = self.coefficients
        low, high = bounds.lower[0][:, None, :], bounds.upper[0][:, None, :]
        terms = np.where(a > 0, a * low, a * high)
        size = np.abs(terms).sum(-1) + np.abs(self.constant)
        rounding = (a.shape[-1] + 4) * 2 * UNIT
        least = terms.sum(-1) - rounding * size
        if bounds.ball is not None:
            centre, radius = bounds.ball
            terms = a * centre[:, None, :]
            reach = radius[:, None] * np.sqrt((a * a).sum(-1))
            size = np.abs(terms).sum(-1) + reach + np.abs(self.constant)
            least = np.maximum(least, terms.sum(-1) - reach - rounding * size)
        return least + self.constant - self.slack


def affine_bounds(step: Affine, bounds: ValueBounds) -> tuple[Array, Array, Array]:
    """Bounds of a sum by intervals, and how far the program may be from it."""
    cases, size = len(bounds.lower[0]), len(step.bias)
    low = np.broadcast_to(step.bias, (cases, size)).copy()
    high, most = low.copy(), np.abs(low)
    count, weight = np.full(size, 2.0), np.zeros(size)
    reach = np.zeros((cases, size))
    for v, w in step.terms:
        plus, minus = np.maximum(w, 0).T, np.minimum(w, 0).T
        low += bounds.lower[v] @ plus + bounds.upper[v] @ minus
        high += bounds.upper[v] @ plus + bounds.lower[v] @ minus
        top = bounds.most(v)
        most += top @ (plus - minus)
        reach += top @ (w != 0).T
        count += (w != 0).sum(1)
        weight += np.abs(w).sum(1)
    own = 4 * (count + 4) * UNIT * most  # of this file
    errors = np.zeros((cases, size))
    if step.dtype != EXACT:
        unit, least, largest = ROUNDING[step.dtype]
        if (count * unit >= 0.5).any() or (most * 1.01 > largest).any():
            raise OptionError(
                f"a sum of {int(count.max())} terms up to {most.max():.3g} in {step.dtype} may "
                "overflow, or has no error bound; use a wider dtype or a smaller region"
            )
        errors = count * unit / (1 - count * unit) * most + least * (2 * count + weight + reach)
        errors = errors * (1 + 1e-12) + 4 * (count + 4) * UNIT * unit * most
    return low - errors - own, high + errors + own, errors


def propagate(
    net: ReluNetwork, lower: Array, upper: Array, slopes: Mapping[int, Slopes] | None = None,
    known: ValueBounds | None = None, ball: Ball | None = None,
) -> tuple[ValueBounds, dict[int, Slopes]]:  # fmt: skip
    """Bounds of every value for boxes [cases, inputs]: by intervals, and of the arguments of ReLUs
    by going backwards, with `slopes` for each of these, or default ones; within `known`. Returns
    the slopes as well: `propagate` with them gives the same again."""
    arguments = {net.source(k) for k in net.relus}
    chosen: dict[int, Slopes] = {}
    bounds = ValueBounds([lower], [upper], [np.zeros_like(lower)], ball)
    for k, step in enumerate(net.steps):
        v = k + 1
        if isinstance(step, Relu):
            low = np.maximum(bounds.lower[step.source], 0)
            high = np.maximum(bounds.upper[step.source], 0)
            errors = np.zeros_like(low)
        else:
            low, high, errors = affine_bounds(step, bounds)
        if known is not None:
            low, high = np.maximum(low, known.lower[v]), np.minimum(high, known.upper[v])
        bounds.lower.append(low)
        bounds.upper.append(high)
        bounds.errors.append(errors)
        if v in arguments and isinstance(step, Affine):
            own = default_slopes(net, bounds, v) if slopes is None else slopes[v]
            chosen[v] = own
            refine(net, v, bounds, own)
    return bounds, chosen


def refine(net: ReluNetwork, v: int, bounds: ValueBounds, slopes: Slopes) -> None:
    """Tighter bounds of a value, whose elements of either sign are worth it."""
    low, high = bounds.lower[v], bounds.upper[v]
    open_ = np.flatnonzero(((low < 0) & (high > 0)).any(0))
    if not len(open_):
        return
    unit = np.zeros((1, 2 * len(open_), low.shape[1]))
    unit[0, np.arange(len(open_)), open_] = 1.0
    unit[0, len(open_) + np.arange(len(open_)), open_] = -1.0
    rows = np.broadcast_to(unit, (len(low), *unit.shape[1:]))
    found = backward(net, v, rows, bounds, slopes)
    least = found.minimum(bounds)
    was = (low[:, open_] < 0) & (high[:, open_] > 0)  # as the checker does, of these alone
    new_low = np.maximum(low[:, open_], least[:, : len(open_)])
    new_high = np.minimum(high[:, open_], -least[:, len(open_) :])
    low[:, open_] = np.where(was, new_low, low[:, open_])
    high[:, open_] = np.where(was, new_high, high[:, open_])


def default_slopes(net: ReluNetwork, bounds: ValueBounds, below: int) -> dict[int, Array]:
    """Of the ReLUs before a value: 1 where the argument is more positive than negative, else 0,
    which leaves the smallest area between the lines."""
    found = {}
    for k in net.relus:
        if k < below:
            v = net.source(k)
            found[k] = (bounds.upper[v] > -bounds.lower[v]).astype(np.float64)
    return found


def upper_line(low: Array, high: Array) -> tuple[Array, Array]:
    """Slope and intercept of the line above a ReLU whose argument is in [low, high], low < 0 <
    high: rounded so that it is above at both ends."""
    with np.errstate(all="ignore"):
        s = np.minimum(high / (high - low), 1.0)
    t = np.maximum(-s * low, (1.0 - s) * high)
    return s, t * (1 + 8 * UNIT) + 2.0**-1000


def backward(
    net: ReluNetwork, v: int, rows: Array, bounds: ValueBounds, slopes: Slopes,
    betas: Mapping[int, Array] | None = None,
) -> Lower:  # fmt: skip
    """Linear functions of the input below `rows . value v`; rows are [cases, rows, size].

    `betas` [cases, size] of a value, times their signs, are what is taken away of it.
    """
    cases, count = rows.shape[:2]
    coefficients: dict[int, Array] = {v: rows}
    constant = np.zeros((cases, count))
    slack = np.zeros((cases, count))
    at: dict[int, Array] = {}
    for k in range(v, 0, -1):
        _take_away(coefficients, k, betas)
        a = coefficients.pop(k, None)
        if a is None:
            continue
        step = net.steps[k - 1]
        if isinstance(step, Relu):
            at[k] = a
            low, high = bounds.lower[step.source], bounds.upper[step.source]
            passed, shift, off = _through_relu(a, low, high, slopes.get(k))
            constant += shift
            slack += off + 4 * UNIT * np.abs(constant)
            _join(coefficients, step.source, passed)
            continue
        size = np.abs(a)
        constant += a @ step.bias
        error = bounds.errors[k]
        slack += np.einsum("crn,cn->cr", size, error) * (1 + 1e-12)
        slack += (a.shape[-1] + 4) * 2 * UNIT * (size @ np.abs(step.bias))
        for source, w in step.terms:
            _join(coefficients, source, a @ w)
            reach = bounds.most(source)
            spread = np.einsum("crn,cn->cr", size, reach @ np.abs(w).T)
            slack += (a.shape[-1] + 6) * 2 * UNIT * spread
        slack += 4 * UNIT * np.abs(constant)
    _take_away(coefficients, 0, betas)
    first = coefficients.get(0)
    if first is None:
        first = np.zeros((cases, count, net.inputs))
    return Lower(first, constant, slack, at)


def _take_away(rows: dict[int, Array], v: int, betas: Mapping[int, Array] | None) -> None:
    if betas is not None and v in betas:
        _join(rows, v, -betas[v][:, None, :])


def _join(rows: dict[int, Array], v: int, a: Array) -> None:
    rows[v] = rows[v] + a if v in rows else a


def _through_relu(
    a: Array, low: Array, high: Array, slopes: Array | None
) -> tuple[Array, Array, Array]:
    """Coefficients of the argument, the constant, and what roundings may do."""
    s, t = upper_line(low, high)
    is_open = (low < 0) & (high > 0)
    fixed = np.where(low >= 0, 1.0, 0.0) * (high > 0)
    below = np.where(is_open, 0.0 if slopes is None else slopes, fixed)[:, None, :]
    above = np.where(is_open, s, fixed)[:, None, :]
    plus = np.maximum(a, 0.0)
    minus = a - plus
    passed = plus * below
    passed += minus * above
    shift = np.matmul(minus, np.where(is_open, t, 0.0)[:, :, None])[..., 0]
    most = np.maximum(np.abs(low), np.abs(high))[:, :, None]
    off = 4 * UNIT * np.matmul(np.abs(passed), most)[..., 0]
    # The products of the shift have one sign: their magnitudes add up to its own.
    return passed, shift, off + (a.shape[-1] + 4) * 2 * UNIT * np.abs(shift)
