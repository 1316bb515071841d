"""Linear programs in boxes, many at once, by an interior point method.

Where the sign of every ReLU of a case is decided, the network is one linear function there, and the
best multiples of the decided arguments are the dual solution of a linear program.
"""

from __future__ import annotations

import numpy as np

from retrograd.verify.network import Array

CENTRING = 0.1  # how far each step goes toward the central path
STEPS = 30


def solve(
    cost: Array, rows: Array, shift: Array, lower: Array, upper: Array
) -> tuple[Array, Array]:
    """Minimize `cost . x` where `rows x + shift >= 0` and x is in a box.

    `cost` is [cases, n], `rows` [cases, m, n], `shift` [cases, m]. Gives x, and multipliers y >= 0
    of the rows: those of the steps whose dual bound `min over the box of (cost - y rows) . x - y
    shift` is best. Where no x satisfies the rows the bound grows without limit, and y proves that.
    An infeasible primal-dual method (Nocedal and Wright, *Numerical Optimization*, chapter 14) in
    the units of the box.
    """
    cases, m, n = rows.shape
    width = upper - lower
    size = np.abs(rows * width[:, None, :]).sum(2) + np.abs(shift) + 1e-300
    g = rows * width[:, None, :] / size[:, :, None]
    h = (np.einsum("cmn,cn->cm", rows, lower) + shift) / size
    scale = np.abs(cost * width).max(1, keepdims=True) + 1e-300
    c = cost * width / scale
    eye = np.broadcast_to(np.eye(n), (cases, n, n))
    every = np.concatenate([g, eye, -eye], 1)  # every @ t + q >= 0
    q = np.concatenate([h, np.zeros((cases, n)), np.ones((cases, n))], 1)
    t = np.full((cases, n), 0.5)
    s = np.maximum(np.einsum("cmn,cn->cm", every, t) + q, 0.1)
    y = np.full((cases, m + 2 * n), 1.0)
    best, best_value = np.zeros((cases, m)), np.full(cases, -np.inf)
    x = t.copy()
    live = np.ones((cases, 1), bool)
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            dual = c - np.einsum("cmn,cm->cn", every, y)
            primal = np.einsum("cmn,cn->cm", every, t) + q - s
            mu = CENTRING * (s * y).mean(1, keepdims=True)
            d = y / s
            matrix = np.matmul((every * d[:, :, None]).swapaxes(1, 2), every)
            matrix = matrix * (1 + 1e-13 * np.eye(n))
            live &= np.isfinite(matrix).all((1, 2))[:, None]
            matrix = np.where(live[:, :, None], matrix, np.eye(n))
            right = np.einsum("cmn,cm->cn", every, mu / s - y - d * primal) - dual
            step_t = np.linalg.solve(matrix, right[..., None])[..., 0]
            step_s = np.einsum("cmn,cn->cm", every, step_t) + primal
            step_y = mu / s - y - d * step_s
            for step in (step_t, step_s, step_y):
                live &= np.isfinite(step).all(1, keepdims=True)  # the others are as good as done
            t = np.where(live, t + _longest(s, step_s) * step_t, t)
            s, y = (
                np.where(live, v + _longest(v, w) * w, v) for v, w in ((s, step_s), (y, step_y))
            )
            own = y[:, :m]
            reduced = c - np.einsum("cmn,cm->cn", g, own)
            value = np.minimum(reduced, 0).sum(1) - (own * h).sum(1)
            better = value > best_value
            best_value = np.where(better, value, best_value)
            best[better] = own[better]
            x = np.clip(t, 0, 1)
            live &= (value < 1000 * n)[:, None]  # the cost is at most n: there is no solution
    return lower + x * width, best * scale / size


def _longest(x: Array, step: Array) -> Array:
    """How far each case may go and stay positive."""
    ratio = np.where(step < 0, -x / step, np.inf)
    return np.minimum(1.0, 0.99 * ratio.min(1, keepdims=True))
