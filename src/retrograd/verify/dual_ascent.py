"""Better slopes and multiples for linear bounds, by gradient ascent (alpha-CROWN, beta-CROWN).

The bound of a case is a function of the slopes of its ReLUs, of the multiples (betas) of the
arguments that it has decided, and of the weights of the constraints that are added up. It is
written with retrograd and differentiated by `value_and_grad`: one compiled program for all networks
of a structure and any number of cases. What is found is only a choice; bounds are made of it by
`dual_bound.py`, which is careful about roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from retrograd.functions.elementwise import maximum, relu, sqrt
from retrograd.functions.reductions import sum as total_of
from retrograd.transforms.grad import value_and_grad
from retrograd.transforms.jit.jit import jit
from retrograd.tuning import TUNING
from retrograd.verify.dual_bound import ValueBounds, upper_line
from retrograd.verify.network import Affine, Array, ReluNetwork, Structure

BETA1, BETA2 = 0.9, 0.999  # of Adam


@dataclass(eq=False)
class Dual:
    """The choices of some cases: `slopes` [cases, size] by ReLU, `betas` [cases, size] by value (of
    each argument of a ReLU, at least 0) and `weights` [cases, constraints]."""

    slopes: dict[int, Array]
    betas: dict[int, Array]
    weights: Array

    def take(self, cases: Any) -> Dual:
        """Those of some cases."""
        return Dual(
            {k: x[cases] for k, x in self.slopes.items()},
            {k: x[cases] for k, x in self.betas.items()},
            self.weights[cases],
        )

    @staticmethod
    def stacked(parts: Sequence[Dual]) -> Dual:
        """All cases of several."""
        first = parts[0]
        return Dual(
            {k: np.concatenate([p.slopes[k] for p in parts]) for k in first.slopes},
            {k: np.concatenate([p.betas[k] for p in parts]) for k in first.betas},
            np.concatenate([p.weights for p in parts]),
        )

    def arrays(self) -> list[Array]:
        """All of them, as one list."""
        return [*self.slopes.values(), *self.betas.values(), self.weights]

    def like(self, arrays: Sequence[Array]) -> Dual:
        """The same with other numbers."""
        n, m = len(self.slopes), len(self.slopes) + len(self.betas)
        return Dual(
            dict(zip(self.slopes, arrays[:n], strict=True)),
            dict(zip(self.betas, arrays[n:m], strict=True)),
            arrays[m],
        )

    def rounded(self) -> Dual:
        """With few binary places, as certificates write them."""
        places = [2.0**20] * len(self.slopes) + [2.0**32] * len(self.betas) + [2.0**20]
        pairs = zip(self.arrays(), places, strict=True)
        return self.like([np.round(x * p) / p for x, p in pairs])


@lru_cache(maxsize=32)
def _compiled(structure: Structure, is_round: bool) -> Callable[..., Any]:
    """The sum of the bounds, the bounds and the gradient with respect to all choices."""
    relus = [k + 1 for k, step in enumerate(structure) if step[0] == "relu"]
    sums = [k + 1 for k, step in enumerate(structure) if step[0] != "relu"]
    arguments = sorted({structure[k - 1][1] for k in relus})

    def bound(choices: Any, data: Any, weights_of: Any) -> Any:
        slopes = dict(zip(relus, choices[0], strict=True))
        betas = dict(zip(arguments, choices[1], strict=True))
        weights = relu(choices[2])
        weights = weights / (total_of(weights, axis=1, keepdims=True) + 1e-30)
        rows: dict[int, Any] = {
            len(structure): total_of(weights[:, :, None] * data["rows"], axis=1)
        }
        total = total_of(weights * data["constants"], axis=1)
        for k in range(len(structure), -1, -1):
            if k in betas:
                away = betas[k] * data["signs"][arguments.index(k)]
                rows[k] = rows[k] - away if k in rows else 0.0 - away
            if k == 0 or k not in rows:
                continue
            a, step = rows.pop(k), structure[k - 1]
            if step[0] == "relu":
                fixed, open_, s, t = data["relus"][relus.index(k)]
                plus, minus = relu(a), -relu(-a)
                passed = plus * (fixed + open_ * slopes[k]) + minus * (fixed + open_ * s)
                total = total + total_of(minus * t, axis=1)
                rows[step[1]] = rows[step[1]] + passed if step[1] in rows else passed
                continue
            matrices, bias = weights_of[k - 1]
            error = data["errors"][sums.index(k)]
            total = total + a @ bias - total_of(abs(a) * error, axis=1)
            for v, w in zip(step[1:], matrices, strict=True):
                rows[v] = rows[v] + a @ w if v in rows else a @ w
        a = rows.get(0)
        if a is None:
            return total_of(total), total
        least = total_of(relu(a) * data["lower"] - relu(-a) * data["upper"], axis=1)
        if "centres" in data:
            reach = data["radii"] * sqrt(total_of(a * a, axis=1) + 1e-60)
            least = maximum(least, total_of(a * data["centres"], axis=1) - reach)
        total = total + least
        return total_of(total), total

    cases = dict.fromkeys(("constants", "lower", "upper", "relus", "errors", "signs"), "B _")
    if is_round:
        cases |= {"centres": "B _", "radii": "B"}
    shapes = {"choices": "B _", "data": {"rows": "B _ _", **cases}}
    return jit(value_and_grad(bound, has_aux=True), shapes=shapes)


def initial(net: ReluNetwork, bounds: ValueBounds, constraints: int) -> Dual:
    """Slopes of the smallest area, no betas, equal weights."""
    cases = len(bounds.lower[0])
    slopes, betas = {}, {}
    for k in net.relus:
        v = net.source(k)
        slopes[k] = (bounds.upper[v] > -bounds.lower[v]).astype(np.float64)
        betas[v] = np.zeros_like(bounds.lower[v])
    betas = dict(sorted(betas.items()))
    return Dual(slopes, betas, np.full((cases, constraints), 1.0 / max(constraints, 1)))


def ascend(
    net: ReluNetwork, bounds: ValueBounds, rows: Array, constants: Array, signs: dict[int, Array],
    start: Dual, steps: int, mask: Array,
) -> Dual:  # fmt: skip
    """The best choices that some steps of Adam find; it stops where every case is proved.

    `rows` [cases, constraints, outputs] and `constants` are those of the unsafe sets, `signs`
    [cases, size] by value are -1 and 1 where the argument of a ReLU is decided, else 0; `mask`
    [cases, constraints] says which constraints there are.
    """
    step = _compiled(net.structure, bounds.ball is not None)
    data = _data(net, bounds, rows, constants, signs)
    weights_of = [
        ([w for _, w in s.terms], s.bias) if isinstance(s, Affine) else None for s in net.steps
    ]
    free = [np.ones_like(x) for x in start.slopes.values()]
    free += [np.abs(signs[v]) for v in start.betas]
    free.append(mask if rows.shape[1] > 1 else np.zeros_like(mask))
    rates = [TUNING.slope_rate] * len(start.slopes) + [TUNING.beta_rate] * len(start.betas)
    rates.append(TUNING.slope_rate)
    now = [np.array(x) for x in start.arrays()]
    best, best_bound = [x.copy() for x in now], np.full(len(rows), -np.inf)
    mean, square = [np.zeros_like(x) for x in now], [np.zeros_like(x) for x in now]
    n, m = len(start.slopes), len(start.slopes) + len(start.betas)
    for i in range(steps + 1):
        choices = (now[:n], now[n:m], now[m])
        (_, found), gradients = step(choices, data, weights_of)
        value = np.asarray(found.numpy())
        better = value > best_bound
        best_bound = np.where(better, value, best_bound)
        for x, y in zip(best, now, strict=True):
            x[better] = y[better]
        if i == steps or (best_bound > 0).all():
            break
        flat = [*gradients[0], *gradients[1], gradients[2]]
        decay = TUNING.ascent_decay**i
        for j, g in enumerate(flat):
            g = np.asarray(g.numpy()) * free[j]
            mean[j] = BETA1 * mean[j] + (1 - BETA1) * g
            square[j] = BETA2 * square[j] + (1 - BETA2) * g * g
            up = mean[j] / (1 - BETA1 ** (i + 1))
            up = up / (np.sqrt(square[j] / (1 - BETA2 ** (i + 1))) + 1e-12)
            now[j] = np.maximum(now[j] + rates[j] * decay * up * free[j], 0.0)
            if j < n:
                now[j] = np.minimum(now[j], 1.0)
        total = (now[m] * mask).sum(1, keepdims=True)
        now[m] = np.where(total > 0, now[m] * mask / np.where(total > 0, total, 1.0), start.weights)
    return start.like(best)


def _data(
    net: ReluNetwork, bounds: ValueBounds, rows: Array, constants: Array, signs: dict[int, Array]
) -> dict[str, Any]:
    relus = []
    for k in net.relus:
        low, high = bounds.lower[net.source(k)], bounds.upper[net.source(k)]
        is_open = ((low < 0) & (high > 0)).astype(np.float64)
        s, t = upper_line(low, high)
        fixed = ((low >= 0) & (high > 0)).astype(np.float64)
        relus.append((fixed, is_open, np.where(is_open > 0, s, 0.0), np.where(is_open > 0, t, 0.0)))
    sums = [k + 1 for k, step in enumerate(net.steps) if isinstance(step, Affine)]
    ball = {} if bounds.ball is None else {"centres": bounds.ball[0], "radii": bounds.ball[1]}
    return {
        **ball,
        "rows": rows, "constants": constants, "lower": bounds.lower[0], "upper": bounds.upper[0],
        "relus": relus, "errors": [bounds.errors[k] for k in sums],
        "signs": [signs[v] for v in sorted({net.source(k) for k in net.relus})],
    }  # fmt: skip
