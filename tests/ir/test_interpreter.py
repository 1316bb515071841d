"""A graph computed by the definitions of its operations."""

import weakref
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, TensorType, apply, float32, full, interpret
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import SizeOf, input_node

N = Dim("n")
VECTOR = TensorType(float32, (3,))


class Watched(np.ndarray[Any, Any]):
    """An array that can be watched going away."""


def test_nodes_are_computed_in_order_from_their_inputs():
    x, y = input_node(VECTOR), input_node(VECTOR)
    graph = Graph([x, y], [el.mul(x + y, x), y])
    a, b = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    product, same = interpret(graph, [a, b], apply)
    assert product.tolist() == [5, 14, 27]
    assert same is b


def test_a_size_has_the_value_that_is_given():
    assert apply(SizeOf(2 * N, float32)(), [], {"n": 5}) == 10


def test_a_value_is_dropped_after_its_last_use_unless_it_is_a_result():
    x = input_node(VECTOR)
    kept = el.neg(x)
    graph = Graph([x], [kept, el.exp(el.sin(kept))])
    alive: list[tuple[str, list[str]]] = []
    made: dict[str, weakref.ref[Any]] = {}

    def value(node: Node, given: Any) -> Any:
        found = apply(node, given).view(Watched)
        given.clear()
        alive.append((node.op, [op for op, of in made.items() if of() is not None]))
        made[node.op] = weakref.ref(found)
        return found

    interpret(graph, [np.ones(3, np.float32)], value)
    assert alive == [("neg", []), ("sin", ["neg"]), ("exp", ["neg", "sin"])]
    long = Graph([x], [el.tanh(el.exp(el.sin(el.neg(x))))])
    alive.clear()
    made.clear()
    interpret(long, [np.ones(3, np.float32)], value)
    assert alive[-1] == ("tanh", ["exp"])


def test_arrays_and_inputs_are_as_many():
    x = input_node(VECTOR)
    with pytest.raises(ValueError, match="shorter"):
        interpret(Graph([x], [x + full(1, VECTOR)]), [], apply)
