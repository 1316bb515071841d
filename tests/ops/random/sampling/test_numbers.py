"""What formulas ask of numbers: the same to the bit of arrays and of nodes."""

from typing import Any

import numpy as np
import pytest

from retrograd.ir import Graph, float32, float64
from retrograd.ops.random.sampling import GraphSampleMath, NumPySampleMath
from retrograd.verify.rule_checks import placeholders, run

X = np.array([[0.3, 2.7, -1.5], [-0.0, 9.0, 0.25]])
Y = np.array([[1.0, -2.0, -1.5], [0.0, 4.0, 8.0]])
WORDS = np.array([1, 2**31 + 5, 12345], np.uint32)
KEY = np.array([3, 5], np.uint32)
ACCEPTED = np.array([[True, False, False], [True, True, False]])
ASKED: dict[str, Any] = {
    "bits": (lambda m, key: m.bits(key, (2, 3)), KEY),
    "rows": (lambda m, x: m.rows(x)[1], X),
    "cast": (lambda m, x: m.cast(x, float32), X),
    "left": (lambda m, w: m.left(w, 3), WORDS),
    "right": (lambda m, w: m.right(w, 3), WORDS),
    "choose": (lambda m, x, y: m.choose(x < y, x, 7.0), X, Y),
    "choose a number": (lambda m, x, y: m.choose(x < y, 7.0, x), X, Y),
    "is zero": (lambda m, x: m.is_zero(x), X),
    "max": (lambda m, x, y: m.max(x, y), X, Y),
    "min": (lambda m, x, y: m.min(x, y), X, Y),
    "max of a number": (lambda m, x: m.max(x, 0.5), X),
    "clamp": (lambda m, x: m.clamp(x, -1.0, 1.0), X),
    "abs": (lambda m, x: m.abs(x), X),
    "floor": (lambda m, x: m.floor(x), X),
    "sqrt": (lambda m, x: m.sqrt(m.abs(x)), X),
    "log": (lambda m, x: m.log(m.abs(x) + 0.1), X),
    "exp": (lambda m, x: m.exp(x), X),
    "atan": (lambda m, x: m.atan(x), X),
    "log factorial": (lambda m, x: m.log_factorial(m.floor(m.abs(x))), X),
    "constant": (lambda m, x: m.constant(2.5, x), X),
    "several": (lambda m, x, y: m.several(x, 2) * m.cast(y, float64), X[0], Y),
    "first": (lambda m, x, c: m.first(x, c), X, ACCEPTED),
}


@pytest.mark.parametrize("name", ASKED)
def test_arrays_and_nodes_agree_to_the_bit(name):
    f, *arrays = ASKED[name]
    inputs = placeholders(arrays)
    (found,) = run(Graph(inputs, [f(GraphSampleMath(), *inputs)]), arrays)
    expected = np.asarray(f(NumPySampleMath(), *arrays))
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_the_first_that_is_accepted_or_the_first():
    assert NumPySampleMath().first(X, ~ACCEPTED).tolist() == [0.3, 2.7, -1.5]
    assert NumPySampleMath().first(X, ACCEPTED).tolist() == [0.3, 9.0, -1.5]
    words = NumPySampleMath().right(np.array([2**31], np.uint32), 31)
    assert words.tolist() == [1]  # zeros come in, no sign
