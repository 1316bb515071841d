"""Linear least squares: half the squared distance of A x and b."""

import numpy as np

from examples.problems.problem import Problem


def make(size, rng):
    rows, columns = size
    return rng.normal(size=columns), rng.normal(size=(rows, columns)), rng.normal(size=rows)


def f(x, a, b):
    r = a @ x - b
    return 0.5 * (r * r).sum()


def reference(x, a, b):
    return 0.5 * np.sum((a @ x - b) ** 2)


def exact_gradient(x, a, b):
    """The residual, projected back."""
    return a.T @ (a @ x - b)


PROBLEM = Problem(
    "least squares", ((5, 3), (1000, 100), (5000, 1000), (10_000, 4000)), make, f, reference
)
