"""Scans of single numbers, whose carries stay in registers."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.program import module


@pytest.fixture
def written(monkeypatch):
    """How many loops were written in that way."""
    found = []

    class Noticed(module.RegisterScanEmitter):
        def write_region(self, kernel):
            found.append(kernel)
            return super().write_region(kernel)

    monkeypatch.setattr(module, "RegisterScanEmitter", Noticed)
    return found


def assert_agree(f, *arrays, sizes=None):
    """Compiled code and the reference give the same."""
    shapes = sizes or [a.shape for a in arrays]
    specs = [rg.spec(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
    graph = rg.trace(f, *specs)
    found = graph(*arrays)
    with rg.backend("reference"):
        right = graph(*arrays)
    for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (found, right)], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6)


def flat(f, *args):
    carry, ys = f(*args)
    return (*(carry if isinstance(carry, tuple) else (carry,)), *(ys or ()))


@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_carries_change_places_and_rows_are_read_and_written(written, length, reverse):
    def f(a, b, xs):
        def step(carry, x):
            p, q = carry
            return (q, p * x + q), (p, rg.sin(q))

        return flat(lambda: rg.scan(step, (a, b), xs, reverse=reverse))

    xs = np.random.default_rng(0).normal(size=length)
    assert_agree(f, np.array(0.3), np.array(-1.1), xs)
    assert len(written) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int64", "bool"])
def test_numbers_of_every_kind(written, dtype):
    d = getattr(rg, dtype)
    xs = rg.asarray(np.arange(-4, 9) % 5).astype(d)

    def step(c, x):
        after = (c != x) if dtype == "bool" else c * x + x
        return after, c

    def f(xs):
        c, ys = rg.scan(step, xs[0], xs)
        return c, ys

    graph = rg.trace(f, rg.spec(xs.shape, d))
    found = graph(xs)
    with rg.backend("reference"):
        right = graph(xs)
    for a, b in zip(found, right, strict=True):
        np.testing.assert_array_equal(a.astype(rg.float64).numpy(), b.astype(rg.float64).numpy())
    assert len(written) == 1


def test_arrays_of_one_number_and_branches_of_functions(written):
    """A function near zero and far from it within one loop."""

    def f(x, xs):
        def step(c, x):
            c = rg.tanh(c * 1.7 + x)
            return c, (c[0], rg.maximum(c, x))

        return flat(lambda: rg.scan(step, x, xs))

    rng = np.random.default_rng(1)
    assert_agree(f, rng.normal(size=(1, 1)).astype("f4"), rng.normal(size=(50, 1, 1)).astype("f4"))
    assert len(written) == 1


def test_loops_in_loops_and_their_gradients(written):
    def f(w, xs):
        def outer(c, x):
            d, ys = rg.scan(lambda d, y: (rg.tanh(d * w + y), d * y), c, x)
            return d, ys.sum()

        c, ys = rg.scan(outer, w, xs)
        return c + ys.sum()

    rng = np.random.default_rng(2)
    assert_agree(rg.grad(f, argnums=(0, 1)), np.array(0.4), rng.normal(size=(5, 3)))
    assert len(written) >= 2


def test_length_with_a_name(written):
    n = rg.Dim("N")

    def f(xs):
        return flat(lambda: rg.scan(lambda c, x: (c * x, (c,)), rg.ones((), dtype=rg.float64), xs))

    assert_agree(f, np.random.default_rng(3).normal(size=11), sizes=[(n,)])
    assert written


def test_a_loop_of_unknown_length_and_its_gradient(written):
    def f(x):
        return rg.while_loop(lambda c: c < 100, lambda c: c * x + 1, x, max_steps=50)

    assert_agree(rg.grad(f), np.array(1.3))


def test_bits_are_those_of_a_loop_through_memory():
    """A second carry, a vector, has the other kind of loop written."""

    def number(x):
        return rg.scan(lambda c, _: (rg.sigmoid(c * 3.1) - rg.exp(c) / 7, c), x, None, length=200)

    def both(x):
        def step(c, _):
            return (rg.sigmoid(c[0] * 3.1) - rg.exp(c[0]) / 7, c[1] + 1), c[0]

        (a, _), ys = rg.scan(step, (x, rg.zeros((3,))), None, length=200)
        return a, ys

    x = np.float32(0.3)
    for a, b in zip(rg.jit(number)(x), rg.jit(both)(x), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
