"""What passes do to operations that hold graphs."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import verify

X = rg.spec((4,), rg.float64)
MATRIX = rg.spec((4, 4), rg.float64)


def loops(graph, op="scan"):
    return [n for n in graph.nodes if n.op == op]


def optimized(f, *specs):
    """The optimised graph, which computes what the graph as traced does."""
    graph = rg.trace(f, *specs)
    better = graph.optimize()
    verify(better)
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=t.shape)) for t in specs]
    with rg.backend("reference"):
        both = [g(*arrays) for g in (graph, better)]
    for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in both], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-12)
    return better


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


def test_what_nobody_reads_goes():
    def f(x):
        def step(carry, t):
            a, b, same = carry
            return (rg.sin(a) + same, rg.exp(b), same), (b, a)

        (a, _, _), (_, ys) = rg.scan(step, (x, x, x), rg.ones((3, 4), dtype=rg.float64))
        return a + ys.sum(axis=0)

    (scan,) = loops(optimized(f, X))
    assert (scan.attrs["carries"], scan.attrs["scanned"]) == (1, 0)
    assert len(scan.type.items) == 2
    assert "exp" not in [n.op for n in scan.attrs["body"].nodes]


def test_what_is_the_same_in_every_step_is_computed_before():
    def f(w, x):
        return rg.scan(lambda c, t: (rg.sin(w @ x) * c, None), x, length=3)[0]

    (scan,) = loops(optimized(f, MATRIX, X))
    assert [n.op for n in scan.attrs["body"].body] == ["mul"]


def test_what_may_fail_is_not_computed_before():
    """The loop has no step, so nothing may be wrong with its index."""

    def f(x, i):
        return rg.scan(lambda c, t: (c + rg.take(x, i), None), rg.tensor(0.0), length=0)[0]

    assert rg.jit(f)(rg.ones(3), rg.tensor(7)).item() == 0


def test_a_choice_that_is_known_is_made():
    def f(x):
        return rg.cond(rg.tensor(1.0) > 0, rg.sin, rg.cos, x)

    graph = rg.trace(f, X).optimize()
    constant = rg.trace(lambda x: rg.cond(rg.full((), True), rg.sin, rg.cos, x), X).optimize()
    assert [n.op for n in constant.body] == ["sin"]
    assert len(graph.outputs) == 1


def test_operands_that_a_branch_does_not_need_go():
    def f(x, p):
        def then(x):
            return rg.sin(x), rg.exp(p), x

        def other(x):
            return x * x, p, x

        return rg.cond(x.sum() > 0, then, other, x)[0]

    (cond,) = loops(optimized(f, X, X), "cond")
    assert len(cond.inputs) == 2


def test_a_while_loop_keeps_what_its_condition_needs():
    def f(x):
        y, _, _ = rg.while_loop(
            lambda s: s[1] < 5, lambda s: (rg.sin(s[0]), s[1] + 1, rg.exp(s[2])), (x, 0, x)
        )
        return y

    (loop,) = loops(optimized(f, X), "while_loop")
    assert loop.attrs["carries"] == 2


def test_loops_without_end_are_not_run_by_passes():
    def f():
        return rg.while_loop(lambda s: s > 0, lambda s: s + 1, 1)

    assert loops(rg.trace(f).optimize(), "while_loop")


@pytest.mark.parametrize("checkpoint", [None, 4, "log"])
def test_checkpoints_keep_less(checkpoint):
    """Of 1000 steps of 1000 numbers with ten operations each."""
    xs, h = rg.spec((1000, 1), rg.float32), rg.spec((1000,), rg.float32)

    def f(h, xs):
        def step(c, x):
            for _ in range(5):
                c = rg.sin(c * x)
            return c, None

        return rg.scan(step, h, xs, checkpoint=checkpoint)[0].sum()

    peak = rg.trace(rg.grad(f), h, xs).stats().compiled_bytes or 0
    most = {None: 12 * 1000, 4: 300 + 48, "log": 250}[checkpoint] * 4000
    assert peak is not None
    assert peak < most
