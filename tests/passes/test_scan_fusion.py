"""Two scans over the same steps become one."""

import pytest

import retrograd as rg
from tests.passes.agreement import loops, optimized

X = rg.spec((4,), rg.float64)
MATRIX = rg.spec((4, 4), rg.float64)


def rnn(w, xs):
    def step(h, x):
        h = rg.tanh(w @ h + x)
        return h, (h * h).sum()

    h, ys = rg.scan(step, rg.zeros((4,), dtype=rg.float64), xs)
    return h.sum() + ys.sum()


def test_a_loop_and_its_gradient_go_forward_once():
    graph = optimized(rg.value_and_grad(rnn), MATRIX, rg.spec((9, 4), rg.float64))
    forward, back = loops(graph)
    assert [n.attrs["reverse"] for n in (forward, back)] == [False, True]
    assert sum(n.op == "tanh" for g in (forward, back) for n in g.attrs["body"].nodes) == 1


def test_a_tangent_goes_along_with_its_value():
    def f(w, xs):
        y, t = rg.jvp(lambda w: rnn(w, xs), (w,), (w,))
        return y + t

    assert len(loops(optimized(f, MATRIX, rg.spec((9, 4), rg.float64)))) == 1


def test_loops_over_other_steps_stay_apart():
    def f(x):
        a = rg.scan(lambda c, t: (rg.sin(c), None), x, length=5)[0]
        b = rg.scan(lambda c, t: (rg.sin(c), None), x, length=6)[0]
        c = rg.scan(lambda c, t: (rg.cos(c), None), x, length=5)[0]
        d = rg.scan(lambda c, t: (rg.sin(c), None), a, length=5)[0]
        return a + b + c + d

    assert len(loops(optimized(f, X))) == 4


def test_equal_loops_become_one():
    def f(x):
        a = rg.scan(lambda c, t: (rg.sin(c), c), x, length=5)[0]
        b = rg.scan(lambda c, t: (rg.sin(c), c * c), x, length=5)[1]
        return a + b.sum(axis=0)

    assert len(loops(optimized(f, X))) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_results_of_the_smaller_loop_are_found_among_those_of_the_larger(reverse):
    """Other carries and other rows, which only one of the two has, come along."""

    def f(x, rows, more):
        def large(c, r):
            a, b = c
            return (rg.sin(a + r[0]), b * r[1]), (a, b)

        a = rg.scan(lambda c, r: (rg.sin(c + r), c * c), x, rows, reverse=reverse)[1]
        b = rg.scan(large, (x, x), (rows, more), reverse=reverse)[1]
        return a.sum() + (b[0] * b[1]).sum()

    rows = rg.spec((5, 4), rg.float64)
    (scan,) = loops(optimized(f, X, rows, rows))
    assert (scan.attrs["carries"], scan.attrs["reverse"]) == (2, reverse)
    assert [n.op for n in scan.attrs["body"].nodes].count("sin") == 1


def test_a_loop_that_waits_for_the_other_stays():
    """It reads all that the other does, and what comes out of it."""

    def f(x, rows):
        a = rg.scan(lambda c, r: (rg.sin(c + r), None), x, rows)[0]
        b, ys = rg.scan(lambda c, r: (rg.sin(c + r), c * a), x, rows)
        return b + ys.sum(axis=0)

    assert len(loops(optimized(f, X, rg.spec((5, 4), rg.float64)))) == 2


def test_carries_that_start_alike_but_move_otherwise_stay_apart():
    def f(x):
        a = rg.scan(lambda c, t: (rg.sin(c), None), x, length=5)[0]
        b = rg.scan(lambda c, t: (rg.sin(rg.sin(c)), None), x, length=5)[0]
        return a * b

    assert len(loops(optimized(f, X))) == 2
