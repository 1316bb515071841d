"""Reverse mode on graphs: what comes back, what does not, and how it is built."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import depends, gradient, pullback, seeds
from retrograd.autodiff.reverse import Cotangents, active, walk
from retrograd.errors import GradientError
from retrograd.ir import (
    Graph,
    Node,
    Provenance,
    Source,
    TensorType,
    float32,
    float64,
    full,
    int32,
    made_by,
    verify,
)
from retrograd.ops.elementwise import cast, exp, floor, gt, mul, select, sin, tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.rule_checks import run

SCALAR = TensorType(float64, ())
VECTOR = TensorType(float64, (3,))


def inputs(*names: str, type: TensorType = SCALAR) -> list[Node]:
    return [input_node(type, name) for name in names]


def test_a_polynomial() -> None:
    x, y = inputs("x", "y")
    g = gradient(Graph([x, y], [x * x * y + y]))
    verify(g)
    assert [v.name for v in g.inputs] == ["x", "y"]
    assert [float(v) for v in run(g, [np.array(3.0), np.array(5.0)])] == [30.0, 10.0]


def test_a_value_used_twice_gets_both_contributions() -> None:
    (x,) = inputs("x")
    (g,) = run(gradient(Graph([x], [x + x + x * x])), [np.array(4.0)])
    assert g == 10


def test_no_dependence_is_none_and_zeros_in_a_graph() -> None:
    x, y = inputs("x", "y")
    out = sin(x)
    found = pullback([out], [full(1, SCALAR)], [x, y], {x, y})
    assert found[0] is not None
    assert found[1] is None
    assert depends([out], [x, y]) == [True, False]
    assert [float(v) for v in run(gradient(Graph([x, y], [out])), [np.array(0.0)] * 2)] == [1, 0]


def test_depends_is_about_differentiable_paths() -> None:
    """A path through a comparison or an integer does not count; one through floor, whose
    derivative is zero, does."""
    (x,) = inputs("x")
    assert depends([floor(x)], [x]) == [True]
    assert depends([cast(gt(x, full(0, SCALAR)), float64)], [x]) == [False]
    assert depends([cast(cast(x, int32), float64)], [x]) == [False]
    assert depends([cast(cast(x, float32), float64)], [x]) == [True]
    assert depends([floor(x) * x], [x]) == [True]


def test_outputs_that_are_inputs() -> None:
    x, y = inputs("x", "y")
    assert [float(v) for v in run(gradient(Graph([x, y], [x])), [np.array(1.0)] * 2)] == [1, 0]


def test_the_same_output_twice_counts_twice() -> None:
    (x,) = inputs("x")
    y = x * x
    assert run(gradient(Graph([x], [y, y])), [np.array(3.0)])[0] == 12


def test_a_non_scalar_output_adds_a_cotangent_input() -> None:
    (x,) = inputs("x", type=VECTOR)
    y = sin(x)
    g = gradient(Graph([x], [y.renamed("y"), ReduceSum((0,))(y), exp(x)]))
    assert [(v.name, v.type) for v in g.inputs] == [
        ("x", VECTOR),
        ("d_y", VECTOR),
        ("d_output2", VECTOR),
    ]
    v = np.array([0.1, 0.2, 0.3])
    (found,) = run(g, [v, np.ones(3), np.full(3, 2.0)])
    np.testing.assert_allclose(found, 2 * np.cos(v) + 2 * np.exp(v))


def test_names_of_added_inputs_are_free() -> None:
    """Also for the gradient of a gradient, whose inputs bear such names already."""
    (x,) = inputs("x", type=VECTOR)
    first = gradient(Graph([x], [x * x]))
    second = gradient(first)
    verify(second)
    assert [v.name for v in second.inputs] == ["x", "d_output0", "d_output0_2"]
    x, d = inputs("x", "d_x", type=VECTOR)
    assert [v.name for v in gradient(Graph([x, d], [x])).inputs] == ["x", "d_x", "d_x_2"]


def test_seeds() -> None:
    (x,) = inputs("x")
    (one,) = seeds([sin(x)])
    assert run(Graph([], [one]), [])[0] == 1
    (v,) = inputs("v", type=VECTOR)
    with pytest.raises(GradientError, match=r"scalar, but the output has the shape \(3,\)"):
        seeds([sin(v)])
    with pytest.raises(GradientError, match="only floating outputs have gradients"):
        seeds([cast(x, int32)])


def test_the_walk_takes_and_goes_on_where_it_is_told() -> None:
    x = input_node(TensorType(float64, ()), "x")
    y = sin(x)
    z = y * full(3, x.type)
    found, one = Cotangents(), full(1, z.type)
    found.add(z, one)
    steps = list(walk(active([z], [x], ()), found, {x, y}.__contains__))
    assert [(node, [other for other, *_ in passed]) for node, passed in steps][:2] == [
        (z, [y]),
        (y, [x]),
    ]
    assert {*found.of} == {x, y, z}
    found = Cotangents()
    found.add(z, one)
    told: list[Node] = []

    def arrive(node: Node) -> bool:
        told.append(node)
        return node is z

    assert [node for node, _ in walk(active([z], [x], ()), found, {x, y}.__contains__,
                                     arrive=arrive)] == [z]  # fmt: skip
    assert told == [z, y]
    assert x not in found.of


def test_questions_without_an_answer() -> None:
    x, y = inputs("x", "y")
    n = input_node(TensorType(int32, ()), "n")
    graph = Graph([x, n], [sin(x), cast(x, int32)])
    with pytest.raises(GradientError, match="only floating outputs"):
        gradient(graph, outputs=[graph.outputs[1]])
    with pytest.raises(GradientError, match="integers and booleans have no gradient"):
        gradient(graph, wrt=[n])
    with pytest.raises(GradientError, match="not a node of the graph"):
        gradient(graph, wrt=[y])
    with pytest.raises(GradientError, match="not a node of the graph"):
        gradient(graph, outputs=[sin(y)])
    with pytest.raises(GradientError, match="no floating output"):
        gradient(Graph([x], [cast(x, int32)]))
    with pytest.raises(GradientError, match=r"must be f64\[\], not f64\[3\]"):
        pullback([sin(x)], [full(1, VECTOR)], [x])


def test_the_gradient_by_an_inner_node() -> None:
    (x,) = inputs("x")
    h = sin(x)
    y = h * h * x
    g = gradient(Graph([x], [y]), wrt=[h, x])
    found = run(g, [np.array(0.5)])
    s, c = np.sin(0.5), np.cos(0.5)
    np.testing.assert_allclose(found, [2 * s * 0.5, s * s + 2 * s * c * 0.5])


def test_a_graph_cut_at_an_inner_node() -> None:
    """An input that is computed from something is a boundary: nothing passes it."""
    (x,) = inputs("x")
    h = sin(x)
    graph = Graph([h, x], [h * x])
    found = run(gradient(graph), [np.array(2.0), np.array(3.0)])
    assert [float(v) for v in found] == [3, 2]
    assert pullback([h * x], [full(1, SCALAR)], [x], stop={h}) != [None]
    assert pullback([h * h], [full(1, SCALAR)], [x], stop={h}) == [None]


def test_pruning() -> None:
    """The gradient by one input holds nothing that only the other's needs."""
    a, b = inputs("a", "b", type=TensorType(float64, (4, 4)))
    y = ReduceSum((0, 1))(matmul(tanh(a), exp(b)))
    by_b = gradient(Graph([a, b], [y]), wrt=[b])
    ops = [node.op for node in by_b.nodes]
    assert ops.count("dot_general") == 1
    assert "sech2" not in ops
    by_a = [node.op for node in gradient(Graph([a, b], [y]), wrt=[a]).nodes]
    assert by_a.count("exp") == 1
    assert by_a.count("zmul") == 1  # of tanh


def test_contributions_are_added_in_a_fixed_order() -> None:
    """From the last user to the first, so the bits are the same every time."""
    (x,) = inputs("x")
    ys = [x * float(v) for v in (1e16, 1.0, -1e16, 3.0)]
    total = ys[0] + ys[1] + ys[2] + ys[3]
    (g,) = run(gradient(Graph([x], [total])), [np.array(1.0)])
    assert float(g) == ((3.0 + -1e16) + 1.0) + 1e16
    again = gradient(Graph([x], [total]))
    assert again == gradient(Graph([x], [total]))


def test_where_a_gradient_node_comes_from() -> None:
    """Origin, scope and source line of the forward node."""
    (x,) = inputs("x")
    frame = sys._getframe()
    here = Source(frame.f_code, frame.f_lasti)
    with made_by(Provenance("model.layers[2]", here)):
        y = sin(x)
    z = exp(y)
    g = gradient(Graph([x], [z]))
    forward = {x, y, z}
    made = [n for n in g.nodes if n not in forward and n.op != "constant"]
    assert {n.origin for n in made} == {y, z}
    for node in made:
        assert node.scope == node.origin.scope
        assert node.source is node.origin.source
    assert [n.op for n in made if n.origin is y] == ["cos", "zmul"]


def test_the_gradient_of_a_gradient_remembers_too() -> None:
    (x,) = inputs("x")
    with made_by(Provenance("layer")):
        y = sin(x) * sin(x)
    second = gradient(gradient(Graph([x], [y])))
    assert {n.scope for n in second.nodes if n.op not in ("constant", "input")} == {"layer"}


def test_derivatives_to_fifth_order() -> None:
    """d^n/dx^n sin(2 x) = 2^n sin(2 x + n pi / 2)."""
    (x,) = inputs("x")
    graph = Graph([x], [sin(2 * x)])
    for n in range(1, 6):
        graph = gradient(graph)
        verify(graph)
        expected = 2**n * np.sin(2 * 0.3 + n * np.pi / 2)
        np.testing.assert_allclose(run(graph, [np.array(0.3)])[0], expected, rtol=1e-13)


def test_a_rule_of_the_wrong_type_is_reported() -> None:
    class Odd(type(ReduceSum((0,)))):  # type: ignore[misc]
        name = "odd"

        def vjp(self, g: Node, y: Node, *xs: Node) -> Any:
            return (g,)

    (v,) = inputs("v", type=VECTOR)
    y = Odd((0,))(v)
    with pytest.raises(GradientError, match=r"odd gave f64\[\] for an input of type f64\[3\]"):
        gradient(Graph([v], [y]))


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion() -> None:
    (x,) = inputs("x")
    y = x
    for _ in range(20_000):
        y = mul(y, x) if y is x else sin(y)
    g = gradient(Graph([x], [y]))
    assert len(g.nodes) > 20_000
    del g


def test_a_select_passes_each_side_its_own() -> None:
    x, y = inputs("x", "y", type=VECTOR)
    out = select(gt(x, y), x, y)
    g = gradient(Graph([x, y], [out]))
    a, b = run(g, [np.array([1.0, 5.0, 2.0]), np.array([3.0, 4.0, 2.0]), np.ones(3)])
    assert (a.tolist(), b.tolist()) == ([0, 1, 0], [1, 0, 1])
