import pytest

import retrograd.ops.elementwise as e
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, reachable, spec
from retrograd.ops.leaf import input_node
from tests.random_graphs import random_graph


def pair():
    return input_node(spec(3), "x"), input_node(spec(3), "w")


def test_nodes_come_inputs_first_then_in_order_of_dependence():
    x, w = pair()
    a = e.exp(x)
    b = a * w
    g = Graph([x, w], [b], "g")
    assert g.nodes == (x, w, a, b)
    assert g.body == (a, b)
    assert len(g) == 4
    assert repr(g) == "<Graph 'g': 2 inputs, 4 nodes, 1 outputs>"


def test_what_outputs_do_not_depend_on_is_not_part_of_the_graph():
    x, w = pair()
    y = e.exp(x)
    e.sin(y)
    assert Graph([x, w], [y]).nodes == (x, w, y)


def test_a_graph_can_be_cut_at_any_node():
    x, w = pair()
    a = e.exp(x)
    b = a * w
    g = Graph([a, w], [b])
    assert g.nodes == (a, w, b)
    assert g.users() == {a: [b], w: [b], b: []}
    g.check()


def test_inputs_that_are_not_listed_or_listed_twice_are_errors():
    x, w = pair()
    with pytest.raises(ShapeError, match=r"w = input.*not among the graph's inputs"):
        Graph([x], [x * w])
    with pytest.raises(ShapeError, match="twice"):
        Graph([x, x], [x])


def test_rewrite_replaces_from_the_bottom_up():
    x, w = pair()
    g = Graph([x, w], [e.exp(x) * w])
    swapped = g.rewrite(lambda n, xs: e.sin(*xs) if n.op == "exp" else n.with_inputs(xs))
    assert [n.op for n in swapped.body] == ["sin", "mul"]
    assert swapped.inputs == g.inputs


def test_equality_goes_by_structure():
    def build(name="x", op=e.exp, scope_name=""):
        x, w = input_node(spec((Dim("N"),)), name), input_node(spec((Dim("N"),)))
        return Graph([x, w], [op(x).renamed(scope_name) * w])

    assert build() == build()
    assert hash(build()) == hash(build())
    assert build() != build(name="y")
    assert build() != build(op=e.sin)
    assert build() != build(scope_name="h")
    assert build() != "graph"


def test_users_are_listed_once_for_each_use():
    x, _ = pair()
    y = x * x
    assert Graph([x], [y]).users()[x] == [y, y]


def test_names_of_sizes():
    x = input_node(spec((Dim("N"), Dim("B"))))
    assert Graph([x], [x]).dim_names == ("B", "N")


@pytest.mark.parametrize("seed", range(20))
def test_reachable_is_topological(seed):
    g = random_graph(seed)
    position = {n: i for i, n in enumerate(reachable(g.outputs))}
    assert all(position[x] < i for n, i in position.items() for x in n.inputs)


def test_reachable_stops_where_told():
    x, w = pair()
    a = e.exp(x)
    b = a * w
    assert reachable([b], {a}) == [w, a, b]
