"""Graphs that operations hold are shown as scopes below the operation."""

from __future__ import annotations

from dataclasses import dataclass

import retrograd as rg
from retrograd.ir import Graph, Node, Op, Provenance, made_by, spec
from retrograd.ops.leaf import input_node
from retrograd.viz import document, dumps, loads, to_dot, to_svg


@dataclass(frozen=True, repr=False)
class Repeat(Op):
    """An operation that holds graphs, as loops and choices do."""

    body: Graph
    others: tuple[Graph, ...] = ()

    name = "repeat"
    arity = 1

    def infer(self, *types):
        return types[0]


def traced(f) -> Graph:
    return rg.trace(f, spec((3,)))


def looped(*others: Graph) -> Graph:
    inner = Repeat(traced(rg.sin))

    def body(x: Node) -> Node:
        return inner(x + x)

    x = input_node(spec((3,)), "carry")
    held = Graph([x], [body(x)], "body")
    start = input_node(spec((3,)), "start")
    with made_by(Provenance("model.rnn")):
        y = Repeat(held, others)(start)
    return Graph([start], [-y], "looped")


def test_bodies_are_scopes_and_bodies_in_bodies_too():
    doc = document(looped())
    assert loads(dumps(doc)) == doc
    (outer, inner) = [r for r in doc["nodes"] if r["op"] == "repeat"]
    assert outer["scope"] == "model.rnn.repeat#1"
    assert outer["body"] is None
    members = [r for r in doc["nodes"] if r["body"] == outer["id"]]
    assert sorted(r["op"] for r in members) == ["add", "input", "repeat"]
    assert inner in members
    assert {r["op"] for r in doc["nodes"] if r["body"] == inner["id"]} == {"input", "sin"}
    assert inner["scope"].startswith("model.rnn.repeat#1.repeat#")
    for r in members:
        assert r["scope"].startswith("model.rnn.repeat#1")
        assert all(doc["nodes"][x]["body"] == outer["id"] for x in r["inputs"])
    paths = [s["path"] for s in doc["scopes"]]
    assert paths.index("model.rnn") < paths.index("model.rnn.repeat#1")


def test_several_bodies_have_scopes_of_their_own():
    doc = document(looped(traced(rg.exp), traced(rg.cos)))
    scopes = {r["op"]: r["scope"] for r in doc["nodes"]}
    assert scopes["exp"].endswith("repeat#1.others[0]")
    assert scopes["cos"].endswith("repeat#1.others[1]")
    assert scopes["add"].endswith("repeat#1.body")


def test_drawings_hold_them():
    graph = looped()
    assert "sin" in to_dot(graph, closed=False)
    assert "sin" in to_svg(graph, closed=False)


def test_ids_are_positions_and_attributes_do_not_print_graphs():
    doc = document(looped(traced(rg.exp)))
    assert [r["id"] for r in doc["nodes"]] == list(range(len(doc["nodes"])))
    assert all("graph" not in r["attrs"] for r in doc["nodes"])
