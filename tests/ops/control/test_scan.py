"""A graph repeated: any length, both directions, long sums of cotangents, errors."""

import numpy as np
import pytest

from retrograd.errors import ShapeError
from retrograd.ir import Graph, TensorType, float32, float64, full
from retrograd.ops.control.scan import Scan
from retrograd.ops.elementwise import sin
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents

T = TensorType(float64, ())


def body(dtype=float64):
    """`h -> 2 h + w x`, and beside it `h`."""
    w, h, x = (input_node(TensorType(dtype, ())) for _ in range(3))
    return Graph([w, h, x], [h + h + w * x, h])


def results(length, reverse=False):
    inputs = [input_node(T), input_node(T), input_node(TensorType(float64, (length,)))]
    ends = items(Scan(body(), 1, 1, length, reverse)(*inputs))
    arrays = [np.array(3.0), np.array(1.0), np.arange(1.0, length + 1)]
    return [x.tolist() for x in run(Graph(inputs, ends), arrays)]


def test_directions_and_no_steps():
    assert results(3) == [2 * (2 * (2 + 3) + 6) + 9, [1, 5, 16]]
    assert results(3, True) == [2 * (2 * (2 + 9) + 6) + 3, [28, 11, 1]]
    assert results(0) == [1, []]


def test_the_sum_over_steps_does_not_lose_digits():
    """The gradient by w of `sum_t w x_t` in float32: one more in every step."""
    n = 3000
    w, h, x = (input_node(TensorType(float32, ())) for _ in range(3))
    op = Scan(Graph([w, h, x], [h + w * x]), 1, 1, n)
    inputs = [input_node(t) for t in (w.type, w.type, TensorType(float32, (n,)))]
    (y,) = items(op(*inputs))
    (g,) = cotangents(y, inputs[:1])
    xs = np.full(n, 0.1, np.float32)
    xs[0] = 2.0**24
    zero = np.zeros((), np.float32)
    (found,) = run(Graph(inputs, [g]), [zero, zero, xs])
    assert found == np.float32(xs.astype(float).sum())
    assert found != np.add.accumulate(xs)[-1]


def test_cotangents_reach_carries_that_feed_one_another():
    """Of two that change places, and only one of which is asked for."""
    a, b = input_node(T), input_node(T)
    op = Scan(Graph([a, b], [b, sin(a)]), 2, 0, 3)
    x, y = input_node(T), input_node(T)
    first, _ = items(op(x, y))  # after three steps: sin(y), sin(sin(x))
    dx, dy = cotangents(first, [x, y])
    program = Graph([x, y], [first, full(0, T) if dx is None else dx, dy])
    found = run(program, [np.array(0.3), np.array(0.5)])
    np.testing.assert_allclose(found, [np.sin(0.5), 0, np.cos(0.5)])


@pytest.mark.parametrize(
    ("op", "types", "match"),
    [
        (Scan(body(), 1, 1, 3), [T, T], "scan takes 3 inputs, not 2"),
        (Scan(body(), 1, 1, 3), [T, T, T], "what is gone through should be"),
        (Scan(body(), 1, 1, 3), [T, TensorType(float32, ()), T], "the carries should be"),
        (Scan(body(), 2, 2, 3), [T, T, T], "counts 2 carries and 2 scanned"),
        (Scan(body(), 1, 1, -1), [T, T, T], "length is a number that is not negative"),
        (Scan(Graph([x := input_node(T)], [x > 0]), 1, 0, 3), [T], "the carries after a step"),
    ],
)
def test_what_does_not_fit(op, types, match):
    with pytest.raises(ShapeError, match=match):
        op(*map(input_node, types))
