"""Transforms and control flow nested in random orders: whatever the order, one answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

N = 3
Function = Callable[[Any], Any]  # of a vector of N to such a vector


def scanned(rng: random.Random, inner: Function) -> Function:
    ts = np.array([rng.uniform(-1, 1) for _ in range(rng.choice([1, 2, 5]))])
    checkpoint = rng.choice([None, None, 2, "log"])
    options: dict[str, Any] = {"reverse": rng.random() < 0.5, "checkpoint": checkpoint}

    def f(x):
        last, ys = rg.scan(lambda c, t: (0.5 * inner(c) + t * x, rg.sin(c)), x, ts, **options)
        return last + 0.25 * ys.sum(axis=0)

    return f


def chosen(rng: random.Random, inner: Function) -> Function:
    limit = rng.uniform(-1, 1)
    other = smooth(rng)
    return lambda x: rg.cond(x.sum() > limit, inner, lambda x: other(x) * x, x)


def looped(rng: random.Random, inner: Function) -> Function:
    """A number of steps that depends on the data."""
    limit = rng.uniform(1.5, 4)

    def f(x):
        def step(state):
            y, s = state
            return 0.5 * inner(y) + x, s + 0.75 + y[0] * y[0]

        return rg.while_loop(lambda state: state[1] < limit, step, (x, 0.0), max_steps=100)[0]

    return f


def repeated(rng: random.Random, inner: Function) -> Function:
    count = rng.randrange(4)
    return lambda x: rg.fori_loop(0, count, lambda i, y: 0.5 * inner(y) + x / (i + 1), x)


def mapped(rng: random.Random, inner: Function) -> Function:
    return lambda x: rg.vmap(inner)(rg.stack([x, 0.5 * x])).sum(axis=0)


def mapped_with(rng: random.Random, inner: Function) -> Function:
    """Batched over a condition as well."""
    scale = np.array([rng.uniform(-1, 1) for _ in range(2)])

    def one(s, x):
        return rg.cond(s > 0, lambda x: inner(s * x), lambda x: x * s, x)

    return lambda x: rg.vmap(one, in_axes=(0, None))(scale, x).sum(axis=0)


def compiled(rng: random.Random, inner: Function) -> Function:
    return rg.jit(inner)


def differentiated(rng: random.Random, inner: Function) -> Function:
    return lambda x: rg.grad(lambda z: inner(z).sum())(x)


def smooth(rng: random.Random) -> Function:
    a, b = (rng.uniform(0.5, 1.0) for _ in range(2))
    m = np.array([[rng.uniform(-0.5, 0.5) for _ in range(N)] for _ in range(N)])
    return rng.choice(
        [
            lambda x: rg.sin(a * x) + b,
            lambda x: rg.tanh(m @ x),
            lambda x: a * x * rg.cos(b * x),
            lambda x: rg.exp(-x * x) * x,
        ]
    )


WRAPPERS = (scanned, chosen, looped, repeated, mapped, mapped_with, compiled, differentiated)


def random_function(seed: int, depth: int = 3) -> Function:
    rng = random.Random(seed)
    f, taken = smooth(rng), 0
    for _ in range(depth):
        wrapper = rng.choice(WRAPPERS)
        if wrapper is differentiated and taken:  # the order grows with what is done below
            wrapper = scanned
        taken += wrapper is differentiated
        f = wrapper(rng, f)
    return f


def close(found, expected, tolerance=1e-9):
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_allclose(found, expected, tolerance, tolerance * (1 + abs(expected).max()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sample(2)
def test_the_order_of_transforms_does_not_matter(seed):
    f = random_function(seed)
    point = np.random.default_rng(seed).normal(size=N) * 0.5
    x, points = rg.tensor(point), rg.tensor(np.stack([point, -point, 0.3 * point]))

    def total(x):
        return f(x).sum()

    g = rg.grad(total)
    with rg.backend("reference"):
        y, slope = f(x).numpy(), g(x).numpy()
    close(rg.jit(f)(x).numpy(), y)
    close(f(x).numpy(), y)
    for h in (rg.jit(g), rg.grad(rg.jit(total)), g):
        close(h(x).numpy(), slope)
    stack = [g(rg.tensor(p)).numpy() for p in points.numpy()]
    each = rg.grad(lambda xs: rg.vmap(total)(xs).sum())
    for h in (rg.vmap(g), rg.jit(rg.vmap(g)), rg.vmap(rg.jit(g)), each):
        close(h(points).numpy(), stack)
    v = np.random.default_rng(seed + 1).normal(size=N)
    _, moved = rg.jvp(total, (x,), (rg.tensor(v),))
    close(moved.numpy(), slope @ v)
    step = 1e-5
    ends = [total(rg.tensor(point + s * step * v)).item() for s in (1, -1)]
    close((ends[0] - ends[1]) / (2 * step), slope @ v, 1e-6)


@pytest.mark.parametrize("seed", range(100, 112))
@pytest.mark.sample(1)
def test_third_derivatives(seed):
    """Reverse over forward over reverse against differences of the second derivative."""
    f = random_function(seed, depth=2)
    point = np.random.default_rng(seed).normal(size=N) * 0.5
    v = np.random.default_rng(seed + 1).normal(size=N)

    def second(x):
        slope = rg.grad(lambda x: f(x).sum())
        return (rg.jvp(slope, (x,), (rg.tensor(v),))[1] * v).sum()

    third = rg.jit(rg.grad(second))(rg.tensor(point)).numpy()
    with rg.backend("reference"):
        close(rg.grad(second)(rg.tensor(point)).numpy(), third)
    step = 1e-4
    ends = [second(rg.tensor(point + s * step * v)).item() for s in (1, -1)]
    close((ends[0] - ends[1]) / (2 * step), third @ v, 1e-5)


CLOSED_OVER = {
    "product": lambda x, a: rg.jit(lambda a: a * x)(a),
    "map": lambda x, a: rg.jit(lambda a: a * rg.vmap(lambda b: b * b)(x))(a),
    "gradient": lambda x, a: rg.jit(rg.grad(lambda b: (b * b * x).sum()))(a),
    "branch": lambda x, a: rg.jit(lambda a: rg.cond(a.sum() > 0, lambda: a * x, lambda: a))(a),
    "computed": lambda x, a: rg.jit(rg.grad(lambda b: (b * b * (x * 2)).sum()))(x + a),
}


@pytest.mark.parametrize("f", CLOSED_OVER.values(), ids=CLOSED_OVER)
def test_a_compiled_function_closes_over_what_is_differentiated(f, monkeypatch):
    """It took the value for a constant, so that the derivative was zero."""
    x, a, v = (rg.tensor(np.array(n)) for n in ([2.0, 3.0], [1.0, 4.0], [1.0, -1.0]))
    ways: list[Callable[[Function], Any]] = [
        lambda g: rg.jvp(g, (x,), (v,))[1],
        lambda g: rg.vjp(g, x)[1](v)[0],
        lambda g: rg.linearize(g, x)[1](v),
        lambda g: rg.jacfwd(g)(x),
        lambda g: rg.hessian(lambda x: rg.sum(g(x) ** 2))(x),
        lambda g: rg.grad(rg.checkpoint(lambda x: rg.sum(g(x))))(x),
        lambda g: rg.vmap(rg.grad(lambda x: rg.sum(g(x))))(rg.stack([x, v])),
        lambda g: rg.grad(lambda x: rg.vmap(g)(rg.stack([x, v])).sum())(x),
    ]
    with rg.backend("reference"):
        found = [way(lambda x: f(x, a)).tolist() for way in ways]
        monkeypatch.setattr(rg, "jit", lambda f: f)
        assert found == [way(lambda x: f(x, a)).tolist() for way in ways]
