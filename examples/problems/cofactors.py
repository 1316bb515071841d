"""The determinant by expansion along the first row: a great many small operations.

An n x n matrix takes about e n! products; equal minors are computed once here, which leaves n 2^n.
"""

from functools import cache

import numpy as np

from examples.problems.problem import Problem


def make(n, rng):
    return (rng.normal(size=(n, n)),)


def f(a):
    n = a.shape[0]
    entry = [[a[i, j] for j in range(n)] for i in range(n)]

    @cache
    def minor(columns):
        """The determinant of the last rows in these columns."""
        row = n - len(columns)
        total = 0.0
        for k, j in enumerate(columns):
            rest = columns[:k] + columns[k + 1 :]
            product = entry[row][j] * minor(rest) if rest else entry[row][j]
            total = total - product if k % 2 else total + product
        return total

    return minor(tuple(range(n)))


def reference(a):
    return np.linalg.det(a)


def exact_gradient(a):
    """The matrix of cofactors."""
    return np.linalg.det(a) * np.linalg.inv(a).T


PROBLEM = Problem("determinant by cofactors", (3, 5, 7, 9, 11), make, f, reference)
