"""The interior point method against SciPy's linprog."""

import numpy as np
import pytest
from scipy.optimize import linprog

from retrograd.verify.linear_program import solve


def dual_bound(cost, rows, shift, low, high, y):
    reduced = cost - y @ rows
    return np.where(reduced > 0, reduced * low, reduced * high).sum() - y @ shift


@pytest.mark.parametrize("seed", range(4))
def test_solution_and_multipliers(seed):
    random = np.random.default_rng(seed)
    cases, m, n = 5, 7, 4
    cost, rows = random.normal(size=(cases, n)), random.normal(size=(cases, m, n))
    shift = random.random((cases, m)) * 0.5
    low, high = -random.random((cases, n)), random.random((cases, n))
    x, y = solve(cost, rows, shift, low, high)
    assert (y >= 0).all()
    for k in range(cases):
        ends = list(zip(low[k], high[k], strict=True))
        exact = linprog(cost[k], A_ub=-rows[k], b_ub=shift[k], bounds=ends)
        assert cost[k] @ x[k] == pytest.approx(exact.fun, abs=1e-6)
        bound = dual_bound(cost[k], rows[k], shift[k], low[k], high[k], y[k])
        assert bound <= exact.fun + 1e-9
        assert bound == pytest.approx(exact.fun, abs=1e-6)


def test_where_nothing_fits_the_bound_is_as_large_as_one_likes():
    rows = np.array([[[1.0, 0.0], [-1.0, 0.0]]])
    shift = np.array([[-0.75, 0.25]])  # x >= 0.75 and x <= 0.25
    low, high = np.zeros((1, 2)), np.ones((1, 2))
    cost = np.array([[1.0, 1.0]])
    _, y = solve(cost, rows, shift, low, high)
    assert dual_bound(cost[0], rows[0], shift[0], low[0], high[0], y[0]) > 100
    assert np.abs(y).max() < 1e9
