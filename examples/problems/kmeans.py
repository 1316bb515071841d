"""The objective of k-means: squared distances of points to the nearest centre.

Newton's method wants the diagonal of the Hessian, or its product with a direction.
"""

import numpy as np

import retrograd as rg
from examples.problems.problem import Problem


def make(size, rng):
    points, centres, dimensions = size
    return rng.normal(size=(centres, dimensions)), rng.normal(size=(points, dimensions))


def f(centres, points):
    squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return squares.min(axis=1).sum()


def reference(centres, points):
    return np.min(np.sum((points[:, None] - centres[None]) ** 2, axis=2), axis=1).sum()


def hessian_diagonal(centres, points):
    """The diagonal of the Hessian, by its product with a vector of ones: the Hessian is diagonal,
    as no centre's coordinate meets another in the sum."""
    direction = rg.ones(centres.shape, dtype=rg.float64)
    return rg.hvp(lambda c: f(c, points), (centres,), (direction,))[0]


def exact_hessian_diagonal(centres, points):
    """Twice the number of points that are nearest to a centre."""
    nearest = np.argmin(np.sum((points[:, None] - centres[None]) ** 2, axis=2), axis=1)
    counts = np.bincount(nearest, minlength=len(centres))
    return 2.0 * np.repeat(counts[:, None], centres.shape[1], axis=1)


PROBLEM = Problem(
    "k-means", ((20, 3, 2), (1000, 10, 5), (10_000, 50, 20), (50_000, 100, 50)), make, f, reference
)
