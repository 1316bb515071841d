"""Gradient nodes find the forward nodes they belong to, also such as the graph leaves out."""

import retrograd as rg
from retrograd.ir import spec
from retrograd.viz.missing import relatives
from tests.viz import graphs


def test_what_the_gradient_does_not_need_is_found():
    """That of relu(a * b + d) needs neither the relu nor what it is of, but for its sign."""
    graph = graphs.worked_example()
    found = relatives(graph)
    assert "relu" in {n.op for n in found.missing}
    assert "relu" not in {n.op for n in graph.nodes}
    assert {n.op for n in found.origin.values()} >= {"relu", "mul"}
    known = {*graph.nodes, *found.missing}
    for node, origin in found.origin.items():
        assert origin in known
        assert node in known


def test_missing_nodes_come_after_what_they_are_computed_from():
    graph = rg.trace(lambda a, b: rg.sin(rg.relu(a) + b), spec(()), spec(())).gradient(wrt="b")
    found = relatives(graph)
    there = set(graph.nodes)
    for node in found.missing:
        assert all(found.same.get(x, x) in there for x in node.inputs)
        there.add(node)


def test_a_graph_without_gradients_misses_nothing():
    graph = rg.trace(lambda a: rg.sin(a) * 2, spec(()))
    found = relatives(graph)
    assert (found.origin, found.missing) == ({}, [])


def test_after_a_pass_origins_are_the_nodes_that_stand_for_them():
    graph = graphs.network(optimized=True)
    found = relatives(graph)
    own = {*graph.nodes, *found.missing}
    assert found.origin
    assert all(origin in own for origin in found.origin.values())
    tanh = next(n for n in graph.nodes if n.op == "tanh")
    assert any(o is tanh for o in found.origin.values())
