"""Small networks of ReLUs, and their exact minima by mixed-integer programming (SciPy's HiGHS)."""

import itertools

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import retrograd as rg


def mlp(sizes, seed=0):
    """A function of one vector: layers with random weights, ReLUs between them."""
    random = np.random.default_rng(seed)
    layers = []
    for a, b in itertools.pairwise(sizes):
        w = (random.normal(size=(a, b)) / np.sqrt(a) * 1.4).astype(np.float32)
        layers.append((w, (random.normal(size=b) * 0.3).astype(np.float32)))

    def f(x):
        for i, (w, b) in enumerate(layers):
            x = x @ rg.asarray(w) + rg.asarray(b)
            if i < len(layers) - 1:
                x = rg.relu(x)
        return x

    return f, layers


def run(layers, x):
    """The same in NumPy, float64, for rows of inputs."""
    for i, (w, b) in enumerate(layers):
        x = x @ w.astype(np.float64) + b
        if i < len(layers) - 1:
            x = np.maximum(x, 0)
    return x


def minimum(layers, low, high, cost):
    """The least of `cost . f(x)` in a box, exactly: big-M constraints for every ReLU."""
    sizes = [len(low)]
    for _, b in layers:
        sizes += [len(b), len(b)]
    sizes.pop()
    starts = np.cumsum([0, *sizes])
    hidden = sum(len(b) for _, b in layers[:-1])
    total = starts[-1] + hidden
    lower, upper = np.full(total, -np.inf), np.full(total, np.inf)
    lower[: len(low)], upper[: len(low)] = low, high
    whole = np.zeros(total)
    rows, least, most = [], [], []
    flag = starts[-1]
    at, a, b = 0, np.asarray(low, np.float64), np.asarray(high, np.float64)

    def add(entries, low_end, high_end):
        row = np.zeros(total)
        for where, value in entries:
            row[where] = value
        rows.append(row)
        least.append(low_end)
        most.append(high_end)

    for k, (w, shift) in enumerate(layers):
        w = w.astype(np.float64)
        before, z = starts[at], starts[at + 1]
        for i in range(len(shift)):
            columns = [(before + j, -w[j, i]) for j in range(len(w))]
            add([(z + i, 1.0), *columns], shift[i], shift[i])
        plus, minus = np.maximum(w, 0), np.minimum(w, 0)
        a, b = a @ plus + b @ minus + shift, b @ plus + a @ minus + shift
        at += 1
        if k == len(layers) - 1:
            break
        y = starts[at + 1]
        for i in range(len(shift)):
            big_low, big_high = min(a[i], 0) - 1e-6, max(b[i], 0) + 1e-6
            lower[y + i] = 0
            lower[flag], upper[flag], whole[flag] = 0, 1, 1
            add([(y + i, 1), (z + i, -1)], 0, np.inf)
            add([(y + i, 1), (z + i, -1), (flag, -big_low)], -np.inf, -big_low)
            add([(y + i, 1), (flag, -big_high)], -np.inf, 0)
            flag += 1
        at += 1
        a, b = np.maximum(a, 0), np.maximum(b, 0)
    objective = np.zeros(total)
    objective[starts[-2] : starts[-1]] = cost
    found = milp(
        objective,
        constraints=LinearConstraint(np.array(rows), least, most),
        bounds=Bounds(lower, upper),
        integrality=whole,
        options={"mip_rel_gap": 0},
    )
    return found.fun, found.x[: len(low)]
