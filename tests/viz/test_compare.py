"""What changed between two graphs, in one document."""

import pytest

import retrograd as rg
from retrograd.ir import spec
from retrograd.viz import compared, document, dumps, loads
from tests.viz import graphs


def changes(before, after):
    doc = compared(document(before), document(after))
    assert loads(dumps(doc)) == doc
    found: dict[str, list[str]] = {}
    for r in doc["nodes"]:
        found.setdefault(r["change"], []).append(r["op"])
    return found, doc


@pytest.mark.parametrize("name", graphs.ALL)
def test_a_graph_is_the_same_as_itself(name):
    found, doc = changes(graphs.ALL[name](), graphs.ALL[name]())
    assert set(found) <= {"same"}
    assert len(doc["nodes"]) == len(document(graphs.ALL[name]())["nodes"])


def test_added_removed_and_changed():
    def f(x, w):
        return rg.sum(rg.tanh(x @ w))

    def g(x, w):
        return rg.sum(rg.exp(x @ w) * 3.0)

    one = rg.trace(f, spec((2, 3)), spec((3, 4)))
    two = rg.trace(g, spec((2, 3)), spec((3, 4)))
    found, doc = changes(one, two)
    assert found["removed"] == ["tanh"]
    assert found["changed"] == ["reduce_sum"]
    assert sorted(found["added"]) == ["constant", "exp", "mul"]
    assert "dot_general" in found["same"]
    assert doc["compared"] == ["f", "g"]


def test_a_changed_node_tells_what_it_was():
    def f(axis):
        return lambda x: rg.sum(rg.concat([x, x], axis=axis) * 2)

    one, two = (rg.trace(f(axis), spec((2, 2))) for axis in (0, 1))
    _, doc = changes(one, two)
    (changed,) = [r for r in doc["nodes"] if r["op"] == "concat"]
    assert changed["change"] == "changed"
    assert changed["was"].startswith("concat")


def test_a_call_before_others_leaves_these_what_they_are():
    """Though it changes how they are numbered."""

    def f(more):
        def g(x):
            if more:
                x = rg.softmax(x * 2.0, -1)
            return rg.softmax(x + 1.0, -1)

        return rg.trace(g, rg.spec((2, 3)))

    told = compared(document(f(False)), document(f(True)))
    kinds = {(r["scope"], r["change"]) for r in told["nodes"] if r["scope"]}
    assert kinds == {("softmax()", "added"), ("softmax_2()", "same")}
    assert {c["scope"] for c in told["calls"]} == {"softmax()", "softmax_2()"}
    fewer = compared(document(f(True)), document(f(False)))
    assert {c["scope"] for c in fewer["calls"]} == {"softmax()", "softmax_2()"}
    assert all(c["source"] < len(fewer["sources"]) for c in fewer["calls"])


def test_what_the_optimizer_did():
    made = graphs.network()
    graph = rg.Graph(made.inputs, made.outputs)
    found, doc = changes(graph, graph.optimize())
    assert found["removed"]
    kept = [r for r in doc["nodes"] if r["change"] != "removed"]
    assert len(kept) == len(document(graph.optimize())["nodes"])


@pytest.mark.slow
def test_linear_in_size():
    one, two = graphs.chain(20_000), graphs.chain(20_001)
    found, _ = changes(one, two)
    assert len(found["same"]) == 20_001
    assert found["added"] == ["neg"]
