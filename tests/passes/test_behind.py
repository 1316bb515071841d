"""Sums that a scan only adds to are products behind it."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.passes.test_ahead import inside, optimized, rng, scans


def carries(graph):
    return [s.prim.carries for s in scans(graph)]


def recurrent(w, u, b, xs):
    def step(h, x):
        h = rg.tanh(h @ w + x @ u + b)
        return h, (h * h).sum()

    h, ys = rg.scan(step, rg.zeros((xs.shape[1], 3), dtype=rg.float64), xs)
    return h.sum() + ys.sum()


@pytest.mark.parametrize("rows", [1, 2])
def test_gradients_of_weights_are_products_over_all_steps(rows):
    graph = optimized(
        rg.value_and_grad(recurrent, argnums=(0, 1, 2)),
        rng(3, 3), rng(5, 3), rng(3), rng(9, rows, 5),
    )  # fmt: skip
    assert carries(graph) == [1, 1], "the state and its cotangent"
    assert inside(graph).count("dot_general") == 2, "one each way"


def test_a_weight_that_is_used_twice_and_turned():
    def f(w, xs):
        def step(h, x):
            return rg.sin(h @ w + (x @ w.T) * h), None

        return rg.scan(step, rg.zeros((3,), dtype=rg.float64), xs)[0].sum()

    graph = optimized(rg.grad(f, argnums=(0, 1)), rng(3, 3), rng(6, 3))
    assert carries(graph)[-1] == 1


def test_a_sum_that_a_step_reads_stays():
    def f(xs):
        def step(c, x):
            total, a = c
            return (total + rg.outer(x, a), a * 0.5 + total[0] @ x), None

        return rg.scan(step, (rg.zeros((4, 4), dtype=rg.float64), xs[0]), xs)[0]

    assert carries(optimized(f, rng(5, 4))) == [2]


def test_a_sum_whose_course_is_a_result_stays():
    def f(w, xs):
        def step(c, x):
            total = c + x @ w
            return total, total

        return rg.scan(step, rg.zeros((2, 4), dtype=rg.float64), xs)

    (scan,) = scans(optimized(f, rng(3, 4), rng(5, 2, 3)))
    assert scan.prim.carries == 1


def test_sums_start_from_what_is_given():
    def f(s, xs, ys):
        def step(c, xy):
            x, y = xy
            total, a = c
            return (total + (x.T @ (y * a)).T + x.T[:4] @ y, rg.sin(a)), a

        (total, a), _ = rg.scan(step, (s, rg.ones((), dtype=rg.float64)), (xs, ys))
        return total, a

    graph = optimized(f, rng(4, 4), rng(6, 3, 4), rng(6, 3, 4))
    assert carries(graph) == [1]


def test_explicit_sums_are_taken_as_they_are_written():
    """One after the other: without a product there is nothing to gain."""
    graph = optimized(lambda xs: rg.scan(lambda c, x: (c + x, None), xs[0], xs)[0], rng(7))
    assert carries(graph) == [1]


def test_stacks_that_would_be_large_are_not_made():
    def f(w, x, seeds):
        def step(c, s):
            return c + rg.outer(rg.sin(x * s), rg.cos(x + s)) + w, None

        return rg.scan(step, w, seeds)[0]

    assert carries(optimized(f, rng(40, 40), rng(40), rng(5))) == [1]


def test_no_steps():
    f = rg.grad(recurrent, argnums=(0, 1, 2))
    args = rng(3, 3), rng(5, 3), rng(3), np.zeros((0, 2, 5))
    for g, a in zip(f(*map(rg.tensor, args)), args, strict=False):
        np.testing.assert_array_equal(g.numpy(), np.zeros_like(a))


def test_second_derivatives():
    w, u, b, xs = rng(3, 3), rng(5, 3), rng(3), rng(4, 2, 5)
    optimized(rg.grad(lambda w: rg.grad(recurrent)(w, u, b, xs)[0].sum()), w)
