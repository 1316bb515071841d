"""What passes do to operations that hold graphs."""

from __future__ import annotations

import pytest

import retrograd as rg
from retrograd.passes.loops import pruned
from tests.passes.agreement import loops, optimized

X = rg.spec((4,), rg.float64)
MATRIX = rg.spec((4, 4), rg.float64)


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


def test_operands_that_no_result_depends_on_go_from_the_inside_out():
    """A branch in a loop does not read v, so the loop does not, so what v was made of is gone."""

    def f(x, v):
        w = rg.scan(lambda c, t: (c * t, c), v, x)[1]
        step = lambda c, t: (rg.cond(c[0] > 0, lambda u, _: u * t, lambda u, _: u, c, w), c)
        return rg.scan(step, x, x)[0]

    graph = rg.trace(f, X, X)
    found = pruned(graph)
    assert {graph.inputs[1]} <= {x for n in graph.body for x in n.inputs}
    assert graph.inputs[1] not in {x for n in found.body for x in n.inputs}
    assert found.inputs == graph.inputs
    x = [0.5, -1.0, 2.0, 3.0]
    assert found(x, x).tolist() == graph(x, x).tolist()
    assert pruned(found) is found
