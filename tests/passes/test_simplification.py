"""The walk that applies identities: to each node, its inputs first, until none fits."""

import pytest

import retrograd.ops.elementwise as e
from retrograd.ir import Graph, Provenance, complex64, float32, made_by, spec
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.shape import Permute
from retrograd.passes import simplify
from tests.passes.agreement import assert_kept, draw, two_inputs


def test_what_is_made_keeps_name_and_place():
    x, w = two_inputs(float32, 3)
    y = (x + -w).renamed("difference")
    g = simplify(Graph([x, w], [y]))
    assert (g.outputs[0].op, g.outputs[0].name) == ("sub", "difference")
    with made_by(Provenance("model.loss", None, x)):
        y = x - -w
    made = simplify(Graph([x, w], [y])).outputs[0]
    assert (made.op, made.scope, made.origin) == ("add", "model.loss", x)


def test_identities_are_applied_in_a_row_and_their_results_looked_at_again():
    x = input_node(spec((2, 3)), "x")
    y = Permute((1, 0))(e.neg(e.neg(Permute((1, 0))(x * 1 + -0.0))))
    g = Graph([x], [e.exp(y)])
    assert [n.op for n in assert_kept(simplify, g, draw(g)).body] == ["exp"]
    assert simplify(Graph([x], [y])).outputs == (x,)


def test_stop_gradient_stays_for_whoever_differentiates_later():
    x = input_node(spec(()), "x")
    g = Graph([x], [StopGradient()(x) * 1])
    assert [n.op for n in simplify(g).body] == ["stop_gradient"]


def test_identities_of_real_numbers_are_not_applied_to_complex_ones():
    """`z + -0.0` changes the sign of an imaginary zero; moving elements is the same for all."""
    z = input_node(spec((2, 2), complex64), "z")
    g = Graph([z], [z + -0.0, Permute((1, 0))(Permute((1, 0))(z))])
    added, moved = simplify(g).outputs
    assert added is g.outputs[0]
    assert moved is z


@pytest.mark.parametrize("readers", [1, 2])
def test_a_product_is_turned_only_for_a_single_reader(readers):
    x, w = input_node(spec((4, 3)), "x"), input_node(spec((3, 5)), "w")
    y = matmul(x, w)
    turned = Permute((1, 0))(y)
    g = Graph([x, w], [turned] if readers == 1 else [turned, y])
    ops = [n.op for n in assert_kept(simplify, g, draw(g), ulps=8).body]
    assert ops == (["dot_general"] if readers == 1 else ["dot_general", "permute"])
