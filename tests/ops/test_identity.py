"""Ops that compute nothing: what differentiation makes of them, and results of several."""

from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import depends, pullback, pushforward
from retrograd.errors import ShapeError
from retrograd.ir import Graph, TensorType, bool_, float64, full
from retrograd.ops.control import Cond
from retrograd.ops.elementwise import cos, sin
from retrograd.ops.identity import Alias, Item, StopGradient, items
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents, derive

T = TensorType(float64, ())


def test_what_is_stopped_counts_as_constant():
    value, gradient, hessian = derive(lambda x: x * StopGradient()(x), 3.0)
    assert (value, gradient, hessian) == (9, 3, 0)
    x = input_node(T)
    assert depends([StopGradient()(x)], [x]) == [False]
    assert pushforward([StopGradient()(x)], [x], [full(1, T)]) == [None]


def test_an_alias_is_differentiated_apart_from_its_input():
    x = input_node(T)
    a = Alias()(x)
    y = a * a * x
    by_alias: Any
    (by_alias,) = pullback([y], [full(1, T)], [a], {a})
    assert run(Graph([x], [by_alias]), [np.array(3.0)]) == [18]
    assert derive(lambda x: Alias()(x) * x, 3.0)[1] == 6


def test_one_result_of_several():
    x, c = input_node(T), input_node(TensorType(bool_, ()))
    both = Graph([a := input_node(T)], [sin(a), a * a])
    swapped = Graph([b := input_node(T)], [b, cos(b)])
    first, second = items(Cond(both, swapped)(c, x))
    (slope,) = cotangents(second, [x])
    graph = Graph([c, x], [first, second, slope])
    assert run(graph, [np.array(True), np.array(3.0)])[1:] == [9, 6]
    assert run(graph, [np.array(False), np.array(0.0)]) == [0, 1, 0]
    with pytest.raises(ShapeError, match="there is no such result"):
        Item(2)(first.inputs[0])
    with pytest.raises(ShapeError, match="there is no such result"):
        Item(0)(x)
