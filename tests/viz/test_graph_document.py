"""The document holds the whole graph, in plain values, and says how gradient nodes belong."""

import json

import pytest

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.ir import spec
from retrograd.ir.calls import calls_of
from retrograd.viz import document
from tests.viz import graphs


@pytest.mark.parametrize("name", graphs.ALL)
def test_holds_every_node_and_edge(name):
    graph = graphs.ALL[name]()
    doc = document(graph)
    position = {node: i for i, node in enumerate(graph.nodes)}
    called = calls_of(graph.nodes)
    for node, record in zip(graph.nodes, doc["nodes"], strict=False):
        assert record["id"] == position[node]
        assert record["op"] == node.op
        assert record["name"] == node.name
        assert record["type"] == str(node.type)
        assert record["scope"] == (called[node].path if node in called else node.scope)
        assert record["inputs"] == [position[x] for x in node.inputs]
        assert record["computed"]
    assert not any(r["computed"] for r in doc["nodes"][len(graph.nodes) :])
    assert doc["inputs"] == [position[x] for x in graph.inputs]
    assert doc["outputs"] == [position[y] for y in graph.outputs]
    uses = [(x, r["id"], slot) for r in doc["nodes"] for slot, x in enumerate(r["inputs"])]
    assert [(e["from"], e["to"], e["slot"]) for e in doc["edges"]] == uses


@pytest.mark.parametrize("name", graphs.ALL)
def test_is_json_and_pure(name):
    graph = graphs.ALL[name]()
    before = str(graph)
    doc = document(graph)
    assert json.loads(json.dumps(doc)) == doc
    assert document(graph) == doc
    assert str(graph) == before


def test_says_what_each_node_is():
    doc = document(graphs.worked_example(), outputs=["da", "db", "dd"])
    by_op = {r["op"]: r for r in doc["nodes"]}
    assert (doc["format"], doc["version"]) == ("retrograd-graph", 2)
    assert by_op["input"]["role"] == "input"
    assert by_op["mul"]["role"] == "forward"
    assert by_op["zmul"]["role"] == "gradient"
    assert by_op["constant"]["role"] == "constant"
    place = doc["sources"][by_op["mul"]["source"]]
    assert place["text"] == "return rg.relu(a * b + d)"
    assert place["file"].endswith("graphs.py")
    assert doc["output_names"] == ["da", "db", "dd"]
    assert sum(doc["ops"].values()) == len(graphs.worked_example().nodes)


def test_gradient_nodes_belong_to_forward_nodes():
    doc = document(graphs.worked_example())
    op = {r["id"]: r["op"] for r in doc["nodes"]}
    origins = {r["op"]: op[r["origin"]] for r in doc["nodes"] if r["origin"] is not None}
    assert origins["zmul"] == "mul"
    assert origins["gt"] == origins["select"] == "relu"


def test_shows_forward_nodes_that_the_gradient_does_not_need():
    doc = document(graphs.worked_example())
    absent = [r for r in doc["nodes"] if not r["computed"]]
    assert [r["op"] for r in absent] == ["relu"]
    assert [doc["nodes"][x]["op"] for x in absent[0]["inputs"]] == ["add"]


def test_the_forward_graph_can_be_given():
    x = rg.trace(lambda a: rg.exp(a + 1.0) * 0.0 + a, spec(()))
    gradient = x.gradient()
    names = [r["op"] for r in document(gradient, x)["nodes"]]
    assert "exp" in names


def test_pairs_survive_optimization():
    def f(x):
        y = rg.exp(x * 1.0)  # goes, so that everything behind it is made anew
        z = rg.sin(y / 8.0)  # becomes a product
        return rg.tanh(z).sum()

    doc = document(rg.trace(f, spec((3,))).gradient().optimize())
    assert all(r["computed"] for r in doc["nodes"])
    op = {r["id"]: r["op"] for r in doc["nodes"]}
    pairs = {(r["op"], op[r["origin"]]) for r in doc["nodes"] if r["origin"] is not None}
    assert ("cos", "sin") in pairs
    assert ("mul", "mul") in pairs


def test_order_counts_differentiations():
    orders = {r["order"] for r in document(graphs.second_order())["nodes"]}
    assert orders == {0, 1, 2}


def test_what_is_made_of_gradients_is_an_update():
    def step(w, x):
        return w - 0.1 * rg.grad(lambda w: rg.sum((w * x) ** 2))(w)

    doc = document(rg.trace(step, spec((3,)), spec((3,))))
    assert doc["nodes"][doc["outputs"][0]]["role"] == "update"


def test_a_declared_parameter_is_one():
    b = rg.GraphBuilder()
    w = b.parameter("w", (2,), init=1.0)
    b.output(w * 2.0)
    roles = {r["name"]: r["role"] for r in document(b.graph())["nodes"]}
    assert roles["w"] == "parameter"


def test_attributes_are_short():
    doc = document(rg.trace(lambda x: x.sum(axis=1), spec((3, 4))))
    assert doc["nodes"][-1]["attrs"] == "axes=(1,)"
    doc = document(rg.trace(lambda x: x + rg.arange(1000.0), spec((1000,))))
    assert max(len(r["attrs"]) for r in doc["nodes"]) <= 60


def test_wrong_number_of_names():
    with pytest.raises(ShapeError, match="2 names for a graph of 3 outputs"):
        document(graphs.worked_example(), outputs=["a", "b"])


@pytest.mark.slow
def test_depth_is_no_limit():
    graph = graphs.chain(20_000)
    assert len(document(graph)["nodes"]) >= len(graph)
