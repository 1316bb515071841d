"""Differentiation believes the rule it is told, of stacks too."""

from dataclasses import dataclass

import numpy as np
import pytest

from retrograd.autodiff import batched
from retrograd.errors import GradientError, ShapeError
from retrograd.ir import Graph, TensorType, float64, full
from retrograd.ops.control.custom import Batched, Custom, CustomRule
from retrograd.ops.elementwise import sin
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents, tangents

T = TensorType(float64, ())


@dataclass(frozen=True)
class Product(CustomRule):
    """Of `y = a b`, with slopes three times too large."""

    def vjp(self, gs, ys, xs):
        return [3 * gs[0] * xs[1], 3 * gs[0] * xs[0]]

    def jvp(self, tangents, ys, xs):
        a, b = (full(0, T) if t is None else t for t in tangents)
        return [3 * (a * xs[1] + b * xs[0])]


def made(a, b, rule=Product()):
    return items(Custom("product", 2, rule)(a, b, a * b))[0]


def test_the_rule_is_what_counts():
    a, b = input_node(T), input_node(T)
    y = made(a, b)
    da, db = cotangents(y, [a, b])
    (second,) = cotangents(da, [b])
    (t,) = tangents(y, a)
    values = run(Graph([a, b], [y, da, db, second, t]), [np.array(2.0), np.array(5.0)])
    assert values == [10, 15, 6, 3, 15]


def test_a_stack_of_samples_and_an_operand_that_all_share():
    a, b = input_node(T), input_node(T)
    stack = input_node(TensorType(float64, (3,)))
    ((ys, is_stack),) = batched([made(a, b)], {a: stack}, 3)
    assert is_stack
    da, db = cotangents(ys, [stack, b])
    (t,) = tangents(ys, stack)
    x = np.array([1.0, 2.0, 4.0])
    values = run(Graph([stack, b], [ys, da, db, t]), [x, np.array(5.0)])
    np.testing.assert_array_equal(values[0], 5 * x)
    np.testing.assert_array_equal(values[1], [15, 15, 15])
    assert values[2] == 3 * x.sum()
    np.testing.assert_array_equal(values[3], [15, 15, 15])
    assert Batched(Product(), 3, (True, False)) == Batched(Product(), 3, (True, False))
    assert Batched(Product(), 3, (True, False)).exact is Product().exact is False


@dataclass(frozen=True)
class Constant(CustomRule):
    """Slopes by the first operand that are 7 everywhere, and none by the second."""

    def vjp(self, gs, ys, xs):
        return [full(7, T), None]

    def jvp(self, tangents, ys, xs):
        return [None if tangents[0] is None else full(7, T)]


def test_what_a_rule_gives_that_no_sample_takes_part_in():
    """It is the same for each; an operand that all share gets the sum; nothing stays nothing."""
    a, b, stack = input_node(T), input_node(T), input_node(TensorType(float64, (3,)))
    x, y = np.array([1.0, 2.0, 4.0]), np.array(5.0)
    ((ys, _),) = batched([made(a, b, Constant())], {a: stack}, 3)
    da, db = cotangents(ys, [stack, b])
    (t,) = tangents(ys, stack)
    assert (db, tangents(ys, b)) == (None, [None])
    for found in run(Graph([stack, b], [da, t]), [x, y]):
        np.testing.assert_array_equal(found, [7, 7, 7])
    ((ys, _),) = batched([made(a, b, Constant())], {b: stack}, 3)
    da, db = cotangents(ys, [a, stack])
    (t,) = tangents(ys, a)
    assert (db, tangents(ys, stack)) == (None, [None])
    found, along = run(Graph([a, stack], [da, t]), [y, x])
    assert found == 21
    np.testing.assert_array_equal(along, [7, 7, 7])


def test_a_result_that_no_sample_takes_part_in_is_the_same_for_each():
    a, b, stack = input_node(T), input_node(T), input_node(TensorType(float64, (3,)))
    ys = items(Custom("f", 2, Product())(a, b, b * b))[0]
    ((ys, is_stack),) = batched([ys], {a: stack}, 3)
    assert is_stack
    (found,) = run(Graph([stack, b], [ys]), [np.ones(3), np.array(5.0)])
    np.testing.assert_array_equal(found, [25, 25, 25])


def test_a_text_has_no_rule():
    a, b = input_node(T), input_node(T)
    y = made(a, b, None)
    assert run(Graph([a, b], [y]), [np.array(2.0), np.array(5.0)]) == [10]
    with pytest.raises(GradientError, match="the derivatives of product are rules in Python"):
        cotangents(y, [a])
    stack = input_node(TensorType(float64, (3,)))
    ((ys, _),) = batched([y], {a: stack}, 3)
    with pytest.raises(GradientError, match="the derivatives of product are rules in Python"):
        cotangents(ys, [stack])
    assert Custom("product", 2).remark == ""
    assert "not in this text" in Custom("product", 2, Product()).remark


def test_more_operands_than_inputs():
    with pytest.raises(ShapeError, match="custom has 1 inputs"):
        Custom("f", 2)(sin(input_node(T)))
