"""What a scan computes of its rows alone is computed before it."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import verify
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor


def scans(graph):
    return [n for n in graph.nodes if n.op == "scan"]


def inside(graph):
    """The names of the operations in the bodies of scans."""
    return [n.op for s in scans(graph) for n in s.attrs["body"].nodes]


def optimized(f, *arrays, sizes=None):
    """The optimised graph of arrays, which computes what the graph as traced does, natively too."""
    specs = [rg.spec(s, rg.float64) for s in sizes or [a.shape for a in arrays]]
    graph = rg.trace(f, *specs)
    better = graph.optimize()
    verify(better)
    with rg.backend("reference"):
        right, found = (g(*arrays) for g in (graph, better))
    for a, b, c in zip(*map(several, (right, found, graph(*arrays))), strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), 1e-12, 1e-14)
        np.testing.assert_allclose(c.numpy(), a.numpy(), 1e-12, 1e-14)
    return better


def several(y):
    return y if isinstance(y, tuple) else (y,)


def rng(*shape):
    return np.random.default_rng(0).normal(size=shape)


def test_the_gradient_of_a_chain_of_numbers_waits_for_products_only():
    def chain(x):
        return rg.scan(lambda y, _: (rg.tanh(y * 1.1 + 0.2), None), x, None, length=7)[0]

    graph = optimized(rg.value_and_grad(chain), np.array(0.3))
    back = next(s for s in scans(graph) if s.attrs["reverse"])
    assert {n.op for n in back.attrs["body"].body} <= {"constant", "mul", "zmul"}
    (slope,) = (n for n in graph.nodes if n.op == "sech2")
    assert slope.shape == (7,)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_are_multiplied_with_a_matrix_all_at_once(reverse):
    def rnn(w, u, b, xs):
        def step(h, x):
            h = rg.tanh(h @ w + x @ u + b)
            return h, h.sum()

        h, ys = rg.scan(step, rg.zeros((2, 3), dtype=rg.float64), xs, reverse=reverse)
        return h, ys

    graph = optimized(rnn, rng(3, 3), rng(5, 3), rng(3), rng(9, 2, 5))
    assert inside(graph).count("dot_general") == 1
    (outside,) = (n for n in graph.nodes if n.op == "dot_general")
    assert outside.type.size == 9 * 2 * 3


def test_gradients_of_a_recurrent_net_agree():
    def loss(w, u, xs):
        def step(h, x):
            h = rg.tanh(h @ w + x @ u)
            return h, (h * x[:1]).sum()

        h, ys = rg.scan(step, rg.zeros((3,), dtype=rg.float64), xs)
        return (h * h).sum() + ys.sum()

    optimized(rg.grad(loss, argnums=(0, 1, 2)), rng(3, 3), rng(4, 3), rng(6, 4))


def test_a_result_of_rows_alone_needs_no_loop():
    def f(xs):
        def step(c, x):
            return c * x, (rg.exp(x), c)

        return rg.scan(step, rg.ones((), dtype=rg.float64), xs)

    def flat(xs):
        c, (a, b) = f(xs)
        return c, a, b

    graph = optimized(flat, rng(6))
    assert "exp" not in inside(graph)
    assert len(scans(graph)[0].type.items) == 2


def test_what_reads_carries_stays():
    def f(w, xs):
        return rg.scan(lambda c, x: (rg.sin(c + x) + (c * x) @ w, c @ w), xs[0], xs)

    def flat(w, xs):
        c, ys = f(w, xs)
        return c, ys

    ops = inside(optimized(flat, rng(3, 3), rng(5, 3)))
    assert ops.count("sin") == 1
    assert ops.count("dot_general") == 2


def test_what_would_take_much_memory_stays():
    """A stack of vectors, and a product whose results are much larger than the rows."""

    def f(u, xs):
        def step(c, x):
            return c * 0.5 + rg.exp(x) + (x[:2] @ u)[:64], None

        return rg.scan(step, rg.zeros((64,), dtype=rg.float64), xs)[0]

    ops = inside(optimized(f, rng(2, 600), rng(5, 64)))
    assert "exp" in ops
    assert "dot_general" in ops


def test_length_may_have_a_name():
    def f(xs):
        return rg.scan(
            lambda c, x: (c * 0.5 + rg.exp(x), None), rg.zeros((), dtype=rg.float64), xs
        )[0]

    n = rg.Dim("N")
    graph = optimized(rg.value_and_grad(f), rng(5), sizes=[(n,)])
    assert "exp" not in inside(graph)
    assert rg.trace(f, rg.spec((n,), rg.float64))(np.zeros(0)).item() == 0


@pytest.mark.slow
def test_loops_in_loops_and_steps_that_are_computed_again():
    def f(w, xs):
        def outer(c, x):
            def inner(d, y):
                return rg.tanh(d * w + rg.exp(y)), None

            return rg.scan(inner, c, x)[0], None

        return rg.scan(outer, w, xs)[0]

    optimized(rg.grad(f, argnums=(0, 1)), np.array(0.7), rng(3, 4))
    optimized(rg.grad(rg.grad(lambda w: f(w, rng(3, 4)))), np.array(0.7))


PRODUCTS = {
    "x @ u": (lambda x, u: x @ u, (40,), (40, 20)),
    "x @ u.T": (lambda x, u: x @ u.T, (40,), (20, 40)),
    "u @ x": (lambda x, u: u @ x, (40,), (20, 40)),
    "number": (lambda x, u: x @ u, (40,), (40,)),
    "matrix @ u": (lambda x, u: x @ u, (4, 40), (40, 20)),
    "matrix @ vector": (lambda x, u: x @ u, (4, 40), (40,)),
    "vector @ matrix": (lambda x, u: u @ x, (40, 4), (40,)),
    "u @ column": (lambda x, u: u @ x, (40, 1), (20, 40)),
    "u @ matrix": (lambda x, u: u @ x, (40, 4), (20, 40)),
    "stack": (lambda x, u: rg.einsum("hik,hkj->hij", x, u), (3, 2, 40), (3, 40, 5)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.sample(4)
def test_no_bit_depends_on_it(name):
    """Sums are taken in the order in which they are where nothing is simplified."""
    product, row, fixed = PRODUCTS[name]
    shape = product(rg.zeros(row), rg.zeros(fixed)).shape

    def f(xs, u):
        def step(c, x):
            return c * 0.5 + product(x, u), rg.tanh(product(rg.sin(x.sum()) * x, u) * c).sum()

        h, ys = rg.scan(step, rg.zeros(shape), xs)
        return h, ys

    arrays = [rng(6, *row).astype(np.float32), rng(*fixed).astype(np.float32)]
    graph = rg.trace(f, *map(rg.tensor, arrays))
    right = OpByOpExecutor(graph)(arrays)
    for simplify in (False, True):
        found = Executable(graph, simplify=simplify)(arrays)
        for a, b in zip(found, right, strict=True):
            np.testing.assert_array_equal(a, b)
