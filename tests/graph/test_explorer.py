"""What the explorer is told of a graph: the backward pass, its steps, its numbers."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.viz import dumps, loads

SCALARS = [rg.spec((), rg.float64)] * 3


def worked(a, b, d):
    return rg.relu(a * b + d)


def numbers(doc, i):
    return doc["values"][str(i)]["data"][0]


def test_the_worked_example():
    graph = rg.trace(worked, *SCALARS)
    doc = graph.to_document((2.0, -3.0, 10.0))
    assert loads(dumps(doc)) == doc
    names = {r["name"]: r for r in doc["nodes"] if r["name"]}
    found = {n: numbers(doc, names[n]["gradient"]) for n in "abd"}
    assert found == {"a": -3.0, "b": 2.0, "d": 1.0}
    assert [doc["nodes"][s["node"]]["op"] for s in doc["steps"]] == ["relu", "add", "mul"]
    assert doc["output_names"] == ["", "∂a", "∂b", "∂d"]


def check_steps(doc):
    """Sums are sums, contributions add up to gradients, and every step's upstream is complete."""
    total: dict[int, float] = {}
    for s in doc["steps"]:
        if s["node"] in total:
            assert np.allclose(total[s["node"]], numbers(doc, s["upstream"]))
        for _, to, part, accumulated in s["parts"]:
            total[to] = total.get(to, 0.0) + numbers(doc, part)
            assert numbers(doc, accumulated) == pytest.approx(total[to])
    return total


def test_steps_agree_with_the_gradient_and_with_finite_differences():
    def f(a, b, d):
        c = rg.tanh(a * b) + rg.exp(d) * a
        return c * c + rg.log(b) / (a + d)

    graph = rg.trace(f, *SCALARS)
    at = (1.3, 0.7, 0.4)
    doc = graph.to_document(at)
    total = check_steps(doc)
    h = 1e-6
    for k, i in enumerate(doc["inputs"]):
        up, down = ([x + (s * h if j == k else 0) for j, x in enumerate(at)] for s in (1, -1))
        numeric = (graph(*up).item() - graph(*down).item()) / (2 * h)
        assert total[i] == pytest.approx(numeric, rel=1e-7)


def test_a_gradient_graph_is_shown_as_it_is_with_its_steps():
    graph = rg.trace(worked, *SCALARS)
    gradient = graph.gradient(wrt="a")
    doc = gradient.to_document((2.0, -3.0, 10.0))
    computed = [r for r in doc["nodes"] if r["computed"]]
    assert [r["op"] for r in computed] == [n.op for n in gradient.nodes]
    assert [doc["nodes"][s["node"]]["op"] for s in doc["steps"]] == ["relu", "add", "mul"]
    relu = next(r for r in doc["nodes"] if r["op"] == "relu")
    assert not relu["computed"]
    assert numbers(doc, relu["id"]) == 4.0


def test_cotangents_of_outputs_that_are_no_scalars():
    graph = rg.trace(lambda x: x * x, rg.spec((2,), rg.float64))
    doc = graph.gradient().to_document(([1.0, 2.0], [10.0, 100.0]))
    (x, _) = doc["inputs"]
    assert doc["values"][str(doc["nodes"][x]["gradient"])]["data"] == [20.0, 400.0]


def recurrent(w, x):
    def cell(h, t):
        h = rg.tanh(h @ w + t)
        return h, rg.sum(h)

    h, ys = rg.scan(cell, rg.zeros((3,)), x)
    return rg.sum(h * h) + rg.sum(ys)


def test_loops_have_their_bodies_steps_and_gradients():
    graph = rg.trace(recurrent, rg.spec((3, 3)), rg.spec((5, 3)))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=s).astype("f4") for s in ((3, 3), (5, 3))]
    doc = graph.to_document(given, profile=True)
    assert loads(dumps(doc)) == doc
    scan = next(r for r in doc["nodes"] if r["op"] == "scan")
    body = {r["op"] for r in doc["nodes"] if r["body"] == scan["id"]}
    assert {"dot_general", "tanh", "reduce_sum"} <= body
    step = next(s for s in doc["steps"] if s["node"] == scan["id"])
    assert step["upstream"] is None  # of two results
    assert [slot for slot, *_ in step["parts"]] == [0, 2]
    for i, g in zip(doc["inputs"], graph.gradient()(*given), strict=True):
        found = doc["values"][str(doc["nodes"][i]["gradient"])]
        if "data" in found:
            assert found["data"] == pytest.approx(g.numpy().reshape(-1).tolist(), rel=1e-4)
        assert found["norm"] == pytest.approx(np.linalg.norm(g.numpy()), rel=1e-4)


def test_values_are_those_of_the_reference():
    graph = rg.trace(lambda x, w: rg.mean(rg.tanh(x @ w)), rg.spec((5, 7)), rg.spec((7, 6)))
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 7)).astype("f4"), rng.normal(size=(7, 6)).astype("f4")
    doc = graph.to_document({"w": w, "x": x})
    product = next(r for r in doc["nodes"] if r["op"] == "dot_general" and r["role"] == "forward")
    assert doc["values"][str(product["id"])]["norm"] == pytest.approx(
        np.linalg.norm(x @ w), rel=1e-5
    )
    gradients = graph.gradient()(x, w)
    for i, g in zip(doc["inputs"], gradients, strict=True):
        found = doc["values"][str(doc["nodes"][i]["gradient"])]["norm"]
        assert found == pytest.approx(np.linalg.norm(g.numpy()), rel=1e-4)


def test_without_inputs_there_are_no_values_but_parameters_have_their_own():
    graph = rg.trace(worked, *SCALARS)
    assert "values" not in graph.to_document()
    b = rg.GraphBuilder()
    w = b.parameter("w", (2,), init=3.0)
    b.output(rg.sum(w * w))
    doc = b.graph().to_document()
    assert doc["values"][str(doc["nodes"][doc["inputs"][0]]["gradient"])]["data"] == [6.0, 6.0]


def test_graphs_without_a_gradient_are_shown_forward():
    for f, spec in (
        (lambda x: x + 1, rg.spec((3,), rg.int32)),
        (lambda x: rg.sum(x, axis=0), rg.spec((3, 2))),
        (lambda x: x > 0, rg.spec(())),
    ):
        doc = rg.trace(f, spec).to_document()
        assert "steps" not in doc
        assert not any(r["role"] == "gradient" for r in doc["nodes"])


def test_kernels_cover_the_graph_and_are_measured(tmp_path):
    graph = rg.trace(lambda x, w: rg.mean(rg.tanh(x @ w)), rg.spec((32, 32)), rg.spec((32, 32)))
    one = np.ones((32, 32), np.float32)
    doc = graph.to_document((one, one), profile=True)
    assert loads(dumps(doc)) == doc
    listed = [i for k in doc["kernels"] for i in k["nodes"]]
    assert len(listed) == len(set(listed))
    heavy = {r["id"] for r in doc["nodes"] if r["op"] in ("dot_general", "tanh")}
    assert heavy <= set(listed)
    assert all(k["ns"] > 0 for k in doc["kernels"])
    assert doc["arena"]["peak"] >= max(doc["arena"]["times"], default=0)


def test_show_writes_a_page_and_the_wrong_inputs_are_an_error(tmp_path, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    graph = rg.trace(worked, *SCALARS)
    path = graph.show(1.0, 2.0, d=3.0, path=tmp_path / "g.html")
    assert path == tmp_path / "g.html"
    assert opened == [path.as_uri()]
    assert graph.show(open=False).exists()
    with pytest.raises(rg.ShapeError, match="3 arguments"):
        graph.show(1.0, open=False)
