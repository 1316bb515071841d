"""Operations with bodies, for every choice of what is a stack and of what moves.

Bodies have results of all kinds: of one operand alone, of none that is chosen, of a carry that
another feeds, of a carry that a step forgets.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import batched, pullback, pushforward
from retrograd.ir import Graph, Node, Op, TensorType, bool_, float64, full
from retrograd.ops.control import Cond, Scan, WhileLoop
from retrograd.ops.control.body import wide
from retrograd.ops.elementwise import lt, sin
from retrograd.ops.identity import items
from retrograd.ops.leaf import constant, input_node
from retrograd.verify.rule_checks import Array, difference, placeholders, run

T = TensorType(float64, ())


def numbers(count: int) -> list[Node]:
    return [input_node(T) for _ in range(count)]


def scan() -> tuple[Op, list[Any]]:
    w, u, a, b, c, x = inputs = numbers(6)
    body = Graph(inputs, [w, b + a * x, u * c, sin(b), u, full(2, T)])
    return Scan(body, 3, 1, 3), [0.5, 0.75, 2.0, 3.0, 1.5, np.array([1.0, -2.0, 0.5])]


def while_loop() -> tuple[Op, list[Any]]:
    w, u, a, b, c = numbers(5)
    test = Graph([w, u, a, b, c], [lt(a, full(4, T))])
    w2, u2, a2, b2, c2 = inputs = numbers(5)
    body = Graph(inputs, [a2 + w2 * w2, sin(u2), c2 * b2])
    return WhileLoop(test, body, 3), [0.875, 0.75, 2.0, 3.0, 1.5]


def cond() -> tuple[Op, list[Any]]:
    graphs = []
    for f in (lambda x, y: [x * x, y, full(3, T), x], lambda x, y: [x, x * y, y, full(1, T)]):
        x, y = numbers(2)
        graphs.append(Graph([x, y], f(x, y)))
    return Cond(graphs[0], graphs[1]), [np.array(True), 2.0, 3.0]


def other() -> tuple[Op, list[Any]]:
    op, (_, *rest) = cond()
    return op, [np.array(False), *rest]


CASES = pytest.mark.parametrize("make", [scan, while_loop, cond, other])


def subsets(some: list[int]) -> list[tuple[int, ...]]:
    return [s for n in range(len(some)) for s in itertools.combinations(some, n + 1)]


@CASES
def test_stacks(make: Any) -> None:
    """Each sample has the results that it has alone."""
    op, values = make()
    arrays: list[Array] = [np.asarray(v) for v in values]
    inputs = placeholders(arrays)
    ys = items(op(*inputs))
    for chosen in subsets(list(range(len(arrays)))):
        several = [[_sample(a, k) if i in chosen else a for i, a in enumerate(arrays)]
                   for k in range(2)]  # fmt: skip
        given = [np.stack(x) if i in chosen else x[0]
                 for i, x in enumerate(zip(*several, strict=True))]  # fmt: skip
        nodes = placeholders(given)
        stacks = {x: new for i, (x, new) in enumerate(zip(inputs, nodes, strict=True))
                  if i in chosen}  # fmt: skip
        ends = [wide(y, is_stack, 2) for y, is_stack in batched(ys, stacks, 2)]
        found = run(Graph([stacks.get(x, x) for x in inputs], ends), given)
        for k, sample in enumerate(several):
            for one, expected in zip(found, run(Graph(inputs, ys), sample), strict=True):
                np.testing.assert_allclose(one[k], expected, rtol=1e-13, err_msg=str(chosen))


def _sample(x: Array, k: int) -> Array:
    return x ^ (k == 1) if x.dtype == bool_.dtype else x + 0.125 * k


@CASES
def test_what_moves(make: Any) -> None:
    """Forwards against differences, and in reverse as the transpose."""
    op, values = make()
    arrays: list[Array] = [np.asarray(v) for v in values]
    inputs = placeholders(arrays)
    ys = [y for y in items(op(*inputs)) if y.dtype.is_inexact]
    rng = np.random.default_rng(0)
    weights = [np.asarray(rng.normal(size=y.shape)) for y in ys]
    for chosen in subsets([i for i, x in enumerate(inputs) if x.dtype.is_inexact]):
        moving = [inputs[i] for i in chosen]
        along = {i: np.asarray(rng.normal(size=arrays[i].shape)) for i in chosen}
        pushed = pushforward(ys, moving, [constant(along[i]) for i in chosen], set(inputs))
        forward = [full(0, y.type) if t is None else t for y, t in zip(ys, pushed, strict=True)]
        pulled = pullback(ys, [constant(w) for w in weights], moving, set(inputs))
        reverse = [full(0, x.type) if g is None else g for x, g in zip(moving, pulled, strict=True)]
        found = run(Graph(inputs, [*forward, *reverse]), arrays)
        expected = difference(Graph(inputs, ys), arrays, along)
        for t, other_way in zip(found, expected, strict=False):
            np.testing.assert_allclose(t, other_way, rtol=1e-8, atol=1e-9, err_msg=str(chosen))
        ahead = sum(np.sum(w * t) for w, t in zip(weights, found, strict=False))
        back = sum(np.sum(g * along[i]) for g, i in zip(found[len(ys) :], chosen, strict=True))
        np.testing.assert_allclose(ahead, back, rtol=1e-12, atol=1e-12, err_msg=str(chosen))
