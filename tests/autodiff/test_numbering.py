"""Value numbering before differentiation: bits do not depend on how duplicates were recorded."""

import random
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.autodiff import gradient
from retrograd.ir import Graph, float64, full, spec
from retrograd.ops import elementwise as e
from retrograd.ops.leaf import input_node

UNARY = [
    rg.sin, rg.tanh, rg.exp, rg.sigmoid, rg.softplus, rg.silu, rg.square, rg.gelu,
    lambda x: x * 0.3, lambda x: 1.7 - x, lambda x: x / 3.0, lambda x: x**2,
    lambda x: rg.logaddexp(x, 0.1), lambda x: rg.softmax(x) * 3,
]  # fmt: skip
BINARY = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a * b + b,
    rg.maximum, lambda a, b: a / (b * b + 1.3), lambda a, b: rg.where(a > b, a * 0.3, b),
]  # fmt: skip


def random_program(seed: int) -> Any:
    """A function of two vectors in which many an expression is written several times."""
    choose = random.Random(seed)
    steps: list[tuple] = []
    for _ in range(choose.randrange(6, 18)):
        n = len(steps) + 2
        if choose.random() < 0.5:
            steps.append((choose.choice(UNARY), choose.randrange(n)))
        else:
            steps.append((choose.choice(BINARY), choose.randrange(n), choose.randrange(n)))
        while choose.random() < 0.5:
            steps.append(choose.choice(steps))

    def f(x, y):
        values = [x, y]
        for step, *operands in steps:
            values.append(step(*[values[i] for i in operands]))
        total = x * 0.2 + y * 0.1
        for v in values[2:]:
            total = total + rg.tanh(v) * 0.37
        return total.sum()

    return f


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sample(3)
def test_all_ways_to_a_gradient_give_the_same_bits(seed):
    f = random_program(seed)
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=5), rng.normal(size=5)
    ways = []
    for _ in range(3):  # learned, recalled, and compiled
        leaves = [rg.tensor(a, requires_grad=True) for a in (x, y)]
        f(*leaves).backward()
        ways.append([leaf.grad.numpy() for leaf in leaves])
    ways.append(rg.grad(f, (0, 1))(x, y))  # type: ignore[arg-type]
    ways.append(rg.vjp(f, x, y)[1](rg.tensor(1.0, dtype=rg.float64)))  # type: ignore[arg-type]
    ways.append(rg.trace(f, x, y).gradient()(x, y))
    if seed < 6:
        ways.append(rg.jit(rg.grad(f, (0, 1)))(x, y))  # type: ignore[arg-type]
    for way in ways[1:]:
        for a, b in zip(way, ways[0], strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    v = rng.normal(size=5)
    slope = (f(*map(rg.tensor, (x + 1e-6 * v, y))) - f(*map(rg.tensor, (x - 1e-6 * v, y)))) / 2e-6
    assert (np.asarray(ways[0][0]) * v).sum() == pytest.approx(slope.item(), rel=1e-5, abs=1e-6)


def test_numbers_that_are_equal_once_need_not_be_the_next_time():
    """The gradient of a recording is remembered for all values of its numbers."""

    def f(x, a, b):
        return (rg.sin(x * a) + rg.sin(x * b) * x + rg.gelu(x * a)).sum()

    for a, b in [(0.3, 0.3), (0.3, 0.7), (0.7, 0.7), (0.044715, 0.3), (0.9, 0.044715)]:
        x: Any = rg.tensor([0.4, -1.2], dtype=rg.float64, requires_grad=True)
        f(x, a, b).backward()
        expected = rg.grad(lambda x, a=a, b=b: f(x, a, b))(x.detach())
        assert x.grad.numpy().tobytes() == expected.numpy().tobytes()
        h = 1e-6
        slopes = [(f(x + d, a, b) - f(x - d, a, b)).item() / (2 * h) for d in np.eye(2) * h]
        np.testing.assert_allclose(x.grad, slopes, rtol=1e-7)


def test_what_is_asked_for_stays_apart():
    """Two arguments of the same value each have a gradient of their own, and so do equal nodes."""
    x = rg.tensor(2.0, dtype=rg.float64)
    assert [g.item() for g in rg.grad(lambda a, b: a * b + a, (0, 1))(x, x)] == [3, 2]
    node = input_node(spec((), float64), "x")
    a, b = e.sin(node), e.sin(node)
    graph = Graph([node], [e.add(e.mul(a, full(2.0, a.type)), b)])
    both = gradient(graph, wrt=[a, b])
    assert [np.asarray(g).item() for g in rg.Graph(both.inputs, both.outputs)(0.5)] == [2, 1]
