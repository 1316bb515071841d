"""The logarithm of a sum of exponentials, as losses of classification have it."""

from scipy import special

import retrograd as rg
from examples.problems.problem import Problem


def make(n, rng):
    return (rng.normal(0, 50, n),)


def f(x):
    return rg.logsumexp(x)


def reference(x):
    return special.logsumexp(x)


PROBLEM = Problem("log-sum-exp", (10, 1000, 100_000, 10_000_000), make, f, reference)

# The gradient is the softmax, exactly, also where exp(x) would overflow.
exact_gradient = special.softmax
