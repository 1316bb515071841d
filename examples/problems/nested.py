"""A saddle point by nested optimisation: derivatives of a function that itself descends by them.

After Siskind and Pearlmutter's example: `min over x of max over y of g(x, y)`, here with
`g(x, y) = |x - a|^2 / 2 + x . B y - |y|^2 / 2`. The inner maximum is found by gradient ascent in a
loop, and the outer problem is differentiated through that loop. In closed form the inner maximum is
at `y = B^T x`, and the outer function is `|x - a|^2 / 2 + |B^T x|^2 / 2`.
"""

import numpy as np

import retrograd as rg
from examples.problems.problem import Problem

STEPS, RATE = 200, 0.3


def make(n, rng):
    return rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, n)) / np.sqrt(n)


def payoff(x, y, a, b):
    return 0.5 * ((x - a) ** 2).sum() + x @ (b @ y) - 0.5 * (y * y).sum()


def f(x, a, b):
    """The value at the best answer to x."""

    def ascend(i, y):
        return y + RATE * rg.grad(payoff, argnums=1)(x, y, a, b)

    best = rg.fori_loop(0, STEPS, ascend, 0.0 * x)
    return payoff(x, best, a, b)


def reference(x, a, b):
    return 0.5 * np.sum((x - a) ** 2) + 0.5 * np.sum((b.T @ x) ** 2)


def exact_gradient(x, a, b):
    return x - a + b @ (b.T @ x)


def saddle(a, b):
    """The minimum over x of the maximum over y."""
    return rg.minimize(lambda x: f(x, a, b), np.zeros_like(a), tol=1e-10)


def exact_saddle(a, b):
    return np.linalg.solve(np.eye(len(a)) + b @ b.T, a)


PROBLEM = Problem("saddle point", (2, 10, 100, 1000), make, f, reference)
