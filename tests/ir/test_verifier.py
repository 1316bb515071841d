"""The checker is tested with planted errors."""

from typing import Any

import pytest

import retrograd.ops.elementwise as e
from retrograd.errors import FormatError
from retrograd.ir import Graph, Node, spec, verify
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Expand, Permute
from tests.random_graphs import random_graph


def chain():
    x = input_node(spec((2, 3)), "x")
    return x, e.exp(x)


@pytest.mark.parametrize("seed", range(30))
def test_well_formed_graphs_pass(seed):
    verify(random_graph(seed))


def test_wrong_type():
    x, y = chain()
    bad = Node(e.exp, (y,), spec((3, 2)))
    with pytest.raises(FormatError, match=r"node 2: the type should be f32\[2, 3\]: exp"):
        verify(Graph([x], [bad]))


def test_inputs_that_do_not_fit():
    x, y = chain()
    bad = Node(Permute((0, 1, 2)), (y,), spec((2, 3)))
    with pytest.raises(FormatError, match=r"ill-typed: permute.*lists each of 0 to 1"):
        verify(Graph([x], [bad]))


def test_attributes_of_the_wrong_kind():
    wrong: Any = ("no shape", None)
    x, y = chain()
    with pytest.raises(FormatError, match="ill-typed: expand"):
        verify(Graph([x], [Node(Expand(*wrong), (y,), y.type)]))


def test_wrong_number_of_inputs():
    x, y = chain()
    with pytest.raises(FormatError, match="exp takes 1 inputs, not 2"):
        verify(Graph([x], [Node(e.exp, (y, y), y.type)]))


def test_inputs_of_one_name():
    a, b = input_node(spec(2), "x"), input_node(spec(2), "x")
    with pytest.raises(FormatError, match="two inputs are named 'x'"):
        verify(Graph([a, b], [a + b]))


def planted(graph, nodes):
    """The graph with other nodes than it found itself."""
    graph.nodes = tuple(nodes)
    return graph


def test_order_and_repetition():
    x, y = chain()
    z = e.sin(y)
    with pytest.raises(FormatError, match="node 1 reads a node that comes later: sin"):
        verify(planted(Graph([x], [z]), [x, z, y]))
    with pytest.raises(FormatError, match="node 2 occurs twice"):
        verify(planted(Graph([x], [z]), [x, y, y, z]))
    with pytest.raises(FormatError, match=r"the output sin.*is not among the nodes"):
        verify(planted(Graph([x], [z]), [x, y]))
