"""The standard problems by which tools for derivatives are compared, written for retrograd.

Each module has a `PROBLEM`: data of several sizes, the function in retrograd, and the same in NumPy
to check it by. `python -m examples.problems` runs them all.
"""

from examples.problems import (
    bundle,
    cofactors,
    hand,
    kmeans,
    least_squares,
    log_sum_exp,
    lstm,
    mixture,
    nested,
    predators,
)
from examples.problems.problem import Problem

PROBLEMS: tuple[Problem, ...] = (
    log_sum_exp.PROBLEM,
    least_squares.PROBLEM,
    cofactors.PROBLEM,
    kmeans.PROBLEM,
    mixture.PROBLEM,
    bundle.PROBLEM,
    hand.PROBLEM,
    lstm.PROBLEM,
    predators.PROBLEM,
    nested.PROBLEM,
)

__all__ = ["PROBLEMS", "Problem"]
