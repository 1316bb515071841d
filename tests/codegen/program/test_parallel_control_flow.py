"""Regions that all threads go through: loops with conditions, choices, and regions in them."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import LoopLimitError
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.planning.plan import KernelPlan
from tests.codegen.program.agreeing import W, X, step, the_same_for_threads_and_tiers


def loop(w, x):
    return rg.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, step(w, s[1])), (0, x))[1]


def loop_with_a_large_condition(w, x):
    test = lambda s: (s[0] < 5) & (step(w, s[1]).sum() < 1e9)
    return rg.while_loop(test, lambda s: (s[0] + 1, s[1] * 0.5), (0, x))[1]


def loop_that_keeps_little(w, x):
    body = lambda i, c: step(w, c)
    return rg.fori_loop(rg.tensor(0), rg.tensor(7), body, x, checkpoint=3)


def choice(w, x):
    return rg.cond(x[0, 0] > -50, lambda x: step(w, step(w, x)), lambda x: x, x)


def no_choice(w, x):
    return rg.cond(x[0, 0] > 50, lambda x: step(w, x), lambda x: x * 2, x)


def choices_in_a_scan(w, x):
    f = lambda c, t: (rg.cond(t > 0, lambda c: step(w, c), lambda c: c * 2, c), c[0])
    last, rows = rg.scan(f, x, rg.tensor([1.0, -1.0, 1.0]))
    return last + rows.sum(axis=0)


def scans_in_a_loop(w, x):
    inner = lambda c: rg.scan(lambda d, _: (step(w, d), None), c, length=2)[0]
    return rg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, inner(s[1])), (0, x))[1]


def loops_in_a_choice_in_a_scan(w, x):
    f = lambda c, t: (rg.cond(t > 0, lambda c: loop(w, c), lambda c: scans_in_a_loop(w, c), c), t)
    return rg.scan(f, x, rg.tensor([1.0, -1.0]), reverse=True)[0]


FORMS = (
    loop, loop_with_a_large_condition, loop_that_keeps_little, choice, no_choice,
    choices_in_a_scan, scans_in_a_loop, loops_in_a_choice_in_a_scan,
)  # fmt: skip


def depth(tile_groups):
    """How many regions that threads share are in one another."""
    inner = [0]
    for group in tile_groups:
        for kernel in group.kernels if group.is_region else ():
            for region in regions_of(kernel):
                inner += [1 + depth(block) for block in region.tile_groups]
    return max(inner)


@pytest.mark.parametrize("f", FORMS)
@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.sample(2)
def test_threads_and_tiers_change_no_bit(f, differentiated):
    graph = the_same_for_threads_and_tiers(f, differentiated)
    wanted = 3 if f is loops_in_a_choice_in_a_scan else 1
    assert depth(KernelPlan(graph.optimize()).tile_groups) >= wanted


def test_a_gradient_through_steps_whose_number_was_not_known():
    """All that it runs is inside of a region that learns a size."""
    f = rg.grad(lambda w, x: (loop(w, x) ** 2).sum())
    assert depth(KernelPlan(rg.trace(f, rg.tensor(W), rg.tensor(X)).optimize()).tile_groups) == 2


@pytest.fixture
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("inside", [False, True])
def test_an_endless_loop_can_be_interrupted(usual_handler, inside):
    def endless(w, x, n):
        return rg.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(w, s[1])), (0, x))[1]

    def f(w, x, n):
        if not inside:
            return endless(w, x, n)
        return rg.scan(lambda c, _: (endless(w, c, n), None), x, length=2)[0]

    compiled = rg.jit(f)

    def later():
        time.sleep(0.5)
        _thread.interrupt_main()

    with rg.num_threads(2):
        before = compiled(W, X, 2).numpy()
        thread = threading.Thread(target=later)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(W, X, 10**9).numpy()
        thread.join()
        np.testing.assert_array_equal(compiled(W, X, 2).numpy(), before)


def test_checks_that_fail_in_regions_in_regions():
    def f(w, i, n):
        body = lambda s: (s[0] + 1, step(w, s[1]) + w[i[s[0]]])
        within = lambda c: rg.while_loop(lambda s: s[0] < n, body, (0, c), max_steps=4)[1]
        return rg.scan(lambda c, _: (within(c), None), w, length=2)[0]

    compiled = rg.jit(f)
    with rg.num_threads(2):
        good = compiled(W, np.array([0, 299, 5, 7]), 3).numpy()
        with pytest.raises(IndexError, match="the index 300 on axis 0 of size 300"):
            compiled(W, np.array([0, 300, 5, 7]), 3).numpy()
        with pytest.raises(LoopLimitError, match="after 4 steps"):
            compiled(W, np.array([0, 299, 5, 7]), 5).numpy()
        np.testing.assert_array_equal(compiled(W, np.array([0, 299, 5, 7]), 3).numpy(), good)


def test_failures_give_back_what_was_allocated():
    """A check that fails in a region that learns a size, again and again."""

    def f(w, x, i):
        body = lambda s: (s[0] + 1, step(w, s[1]) * w[i, 0])
        return (rg.while_loop(lambda s: s[0] < 3, body, (0, x))[1] ** 2).sum()

    slope = rg.jit(rg.grad(f))
    with rg.num_threads(2):
        good = slope(W, X, 7).numpy()
        for _ in range(3):
            with pytest.raises(IndexError, match="the index 300"):
                slope(W, X, 300).numpy()
        np.testing.assert_array_equal(slope(W, X, 7).numpy(), good)


@pytest.mark.parametrize("threads", [1, 2])
def test_groups_inside_know_sizes_that_occur_nowhere_else(threads):
    """The rows of what a branch does are `N*P`, a size that nothing before it has."""

    def f(b, x, w):
        return rg.cond(b, lambda z: -z, lambda z: z * z, x @ w)

    r = np.random.default_rng(0)
    g = rg.jit(f, shapes={"b": "", "x": "N K", "w": "K P"})
    with rg.num_threads(threads):
        for n, k, p in ((11, 8, 3), (1, 1, 1), (40, 3, 50), (0, 2, 3)):
            x, w = r.normal(size=(n, k)), r.normal(size=(k, p))
            z = x @ w
            for b in (True, False):
                np.testing.assert_allclose(
                    g(rg.asarray(b), x, w).numpy(), -z if b else z * z, rtol=1e-12, atol=1e-13
                )
    assert g.cache_stats()["compilations"] == 1
