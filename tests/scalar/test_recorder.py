"""`Value` in Python: rows are written for every operation, and hold what Python computes."""

import math
import operator

import numpy as np
import pytest

from retrograd.scalar import RECORDERS

Value = RECORDERS["python"]


@pytest.mark.parametrize(
    "f", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow], ids=str
)
def test_operators_with_values_and_numbers_on_both_sides(f):
    for a, b in ((2.5, 3.0), (0.5, -1.25), (7.0, 2)):
        expected = f(a, b)
        found = f(Value(a), Value(b)), f(Value(a), b), f(a, Value(b))
        assert [y.data for y in found] == [expected] * 3
        assert f(Value(a), np.float32(b)).data == expected  # a number of another library


@pytest.mark.parametrize("name", ["relu", "tanh", "exp", "log", "sigmoid", "sin", "cos", "sqrt"])
def test_functions(name):
    exact = {
        "relu": lambda x: max(x, 0.0),
        "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    }.get(name) or getattr(math, name)
    x = Value(0.75)
    assert getattr(x, name)().data == pytest.approx(exact(0.75), rel=1e-15)
    assert getattr(Value, name).__name__ == name


def test_a_constant_is_a_row_once_but_a_zero_for_each_sign():
    x = Value(1.0)
    y = x * 0.0
    z = x * -0.0
    assert math.copysign(1, y.data) == 1
    assert math.copysign(1, z.data) == -1
    assert math.copysign(1, (x * 0).data) == 1


def test_a_leaf_on_several_pages_gets_the_gradients_of_all():
    x = Value(3.0)
    y = x * x
    y.backward()  # which closes the tape
    z = x * 2.0 + y
    z.backward()
    assert (y.grad, x.grad) == (1.0, 6.0 + 2.0 + 6.0)


def test_more_rows_than_a_page_begins_with():
    x = Value(0.5)
    y = x
    for _ in range(3000):
        y = y * 1.001 + 0.001
    y.backward()
    assert x.grad == pytest.approx(1.001**3000, rel=1e-12)
