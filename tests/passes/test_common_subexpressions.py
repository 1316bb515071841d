import numpy as np

import retrograd.ops.elementwise as e
from retrograd.ir import Graph, Provenance, full, made_by, spec
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import Permute
from retrograd.passes import cse
from tests.passes.agreement import assert_kept


def inputs():
    return input_node(spec((2, 2)), "x"), input_node(spec((2, 2)), "w")


def test_equal_operations_on_equal_inputs_are_one():
    x, w = inputs()
    y = e.exp(x + w) * e.exp(x + w)
    g = assert_kept(cse, Graph([x, w], [y]), [np.eye(2, dtype=np.float32)] * 2)
    assert [n.op for n in g.body] == ["add", "exp", "mul"]


def test_the_order_of_a_sum_of_two_does_not_matter():
    x, w = inputs()
    g = cse(Graph([x, w], [x + w, w + x, x * w, w * x, e.eq(x, w), e.eq(w, x)]))
    assert [n.op for n in g.body] == ["add", "mul", "eq"]
    g = cse(Graph([x, w], [x - w, w - x, x < w, w < x, e.max(x, w), e.max(w, x)]))
    assert len(g.body) == 6


def test_attributes_and_bits_of_constants_tell_apart():
    x, _ = inputs()
    zeros = [full(0.0, x.type), full(-0.0, x.type), full(0.0, x.type)]
    turned = [Permute((1, 0))(x), Permute((0, 1))(x), Permute((1, 0))(x)]
    g = cse(Graph([x], zeros + turned))
    assert g.outputs[0] is g.outputs[2]
    assert g.outputs[0] is not g.outputs[1]
    assert g.outputs[3] is g.outputs[5]
    assert g.outputs[3] is not g.outputs[4]


def test_equal_arrays_are_one():
    a, b = constant(np.arange(100.0)), constant(np.arange(100.0))
    g = cse(Graph([], [a + b]))
    assert [n.op for n in g.body] == ["constant", "add"]


def test_graph_inputs_stay_apart_whatever_made_them():
    x, w = inputs()
    a, b = x * w, x * w
    g = Graph([a, b, x, w], [a - b, x * w])
    assert cse(g) is g


def test_the_first_keeps_its_place():
    x, _ = inputs()
    with made_by(Provenance("first")):
        a = e.exp(x)
    with made_by(Provenance("second")):
        b = e.exp(x)
    g = cse(Graph([x], [a + b]))
    assert g.body[0] is a
    assert g.body[0].scope == "first"


def test_nothing_to_do_gives_the_same_graph():
    x, w = inputs()
    g = Graph([x, w], [x + w])
    assert cse(g) is g
