"""Calls of the methods that draw random arrays."""

from __future__ import annotations

import retrograd as rg
from benchmarks.calls.arrays import Arrays, Call


def draws(a: Arrays) -> dict[str, Call]:
    """By name, all from one generator."""
    x, n, g = a.x, a.n, rg.random.Generator(4)
    shape = n, 2
    return {
        "bernoulli": lambda: g.bernoulli(0.3, shape),
        "beta": lambda: g.beta(2.0, 3.0, shape),
        "binomial": lambda: g.binomial(10, 0.3, shape),
        "bits": lambda: g.bits(shape),
        "categorical": lambda: g.categorical(x),
        "cauchy": lambda: g.cauchy(shape=shape),
        "chi2": lambda: g.chi2(3.0, shape),
        "choice": lambda: g.choice(a.row, (n,)),
        "dirichlet": lambda: g.dirichlet(a.row),
        "exponential": lambda: g.exponential(2.0, shape),
        "gamma": lambda: g.gamma(2.0, 1.5, shape),
        "geometric": lambda: g.geometric(0.3, shape),
        "gumbel": lambda: g.gumbel(shape=shape),
        "gumbel_softmax": lambda: g.gumbel_softmax(x),
        "laplace": lambda: g.laplace(shape=shape),
        "logistic": lambda: g.logistic(shape=shape),
        "lognormal": lambda: g.lognormal(shape=shape),
        "multivariate_normal": lambda: g.multivariate_normal(a.row[:n], a.spd),
        "normal": lambda: g.normal(shape),
        "permutation": lambda: g.permutation(n),
        "poisson": lambda: g.poisson(3.0, shape),
        "randint": lambda: g.randint(0, 9, shape),
        "shuffle": lambda: g.shuffle(a.row),
        "student_t": lambda: g.student_t(3.0, shape),
        "truncated_normal": lambda: g.truncated_normal(-1.0, 2.0, shape=shape),
        "uniform": lambda: g.uniform(shape),
        "von_mises": lambda: g.von_mises(0.5, 2.0, shape),
    }
