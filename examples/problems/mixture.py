"""Log-likelihood of a mixture of Gaussians with a Wishart prior on the precisions.

The problem of ADBench (Srajer, Kukelova, Fitzgibbon, A benchmark of selected algorithmic
differentiation tools on some problems in computer vision and machine learning, 2018). The inverse
Cholesky factor of each covariance has exp(q) on its diagonal and free numbers below.
"""

import numpy as np
from scipy import special

import retrograd as rg
from examples.problems.problem import Problem

GAMMA, M = 1.0, 0  # of the prior


def make(size, rng):
    points, k, d = size
    alphas, means = rng.normal(size=k), rng.uniform(size=(k, d))
    factors = rng.normal(size=(k, d + d * (d - 1) // 2))
    return alphas, means, factors, rng.normal(size=(points, d))


def f(alphas, means, factors, x):
    n, d = x.shape
    k = alphas.shape[0]
    q = factors[:, :d]
    rows, columns = np.tril_indices(d, -1)
    lower = rg.zeros((k, d, d), dtype=factors.dtype).at[:, rows, columns].set(factors[:, d:])
    lower = lower + rg.exp(q)[:, :, None] * rg.eye(d, dtype=factors.dtype)
    moved = rg.einsum("kij,nkj->nki", lower, x[:, None, :] - means[None, :, :])
    main = alphas + q.sum(axis=1) - 0.5 * (moved * moved).sum(axis=2)
    slack = rg.logsumexp(main, axis=1).sum() - n * rg.logsumexp(alphas)
    return -0.5 * n * d * np.log(2 * np.pi) + slack + _prior(q, factors[:, d:], k, d)


def _prior(q, below, k, d):
    """The logarithm of the density of a Wishart distribution, summed over the components."""
    n = d + M + 1
    constant = n * d * (np.log(GAMMA) - 0.5 * np.log(2)) - special.multigammaln(0.5 * n, d)
    squares = (rg.exp(q) ** 2).sum() + (below * below).sum()
    return 0.5 * GAMMA**2 * squares - M * q.sum() - k * constant


def reference(alphas, means, factors, x):
    """The same, a component and a point at a time."""
    n, d = x.shape
    k = len(alphas)
    total = -0.5 * n * d * np.log(2 * np.pi) - n * special.logsumexp(alphas)
    lowers, logs = [], factors[:, :d].sum(axis=1)
    for row in factors:
        lower = np.diag(np.exp(row[:d]))
        lower[np.tril_indices(d, -1)] = row[d:]
        lowers.append(lower)
    for point in x:
        terms = [
            a + s - 0.5 * np.sum((lower @ (point - mean)) ** 2)
            for a, s, lower, mean in zip(alphas, logs, lowers, means, strict=True)
        ]
        total += special.logsumexp(terms)
    n_prior = d + M + 1
    constant = n_prior * d * (np.log(GAMMA) - 0.5 * np.log(2))
    constant -= special.multigammaln(0.5 * n_prior, d)
    squares = sum(np.sum(lower * lower) for lower in lowers)
    return total + 0.5 * GAMMA**2 * squares - M * logs.sum() - k * constant


PROBLEM = Problem(
    "Gaussian mixture",
    ((5, 3, 2), (1000, 10, 10), (1000, 25, 32), (10_000, 25, 32)),
    make,
    f,
    reference,
    wrt=(0, 1, 2),
)
