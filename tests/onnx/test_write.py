"""A graph as an ONNX model: its inputs, weights, names and sizes."""

import itertools
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, Node

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
import onnx
from onnx.reference import ReferenceEvaluator

from retrograd.onnx import offered, to_bytes, write


def mlp(x, y, w, b, v):
    h = rg.gelu(x @ w + b)
    return rg.nn.functional.cross_entropy(h @ v, y)


@pytest.mark.slow
def test_a_gradient_is_exported_with_the_model_for_every_batch_size(tmp_path):
    n = rg.Dim("N")
    specs = [rg.spec((n, 5)), rg.spec((n,), rg.int64), *map(rg.spec, [(5, 8), (8,), (8, 3)])]
    graph = rg.trace(mlp, *specs).gradient()
    graph.to_onnx(tmp_path / "gradient.onnx")
    model = onnx.load(tmp_path / "gradient.onnx")
    assert [
        d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim
    ] == ["N", 5]
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=s).astype(np.float32) for s in [(5, 8), (8,), (8, 3)]]
    for size in (1, 4, 7):
        x, y = rng.normal(size=(size, 5)).astype(np.float32), rng.integers(0, 3, size)
        names = [i.name for i in model.graph.input]
        found = ReferenceEvaluator(model).run(None, dict(zip(names, [x, y, *weights], strict=True)))
        for a, b in zip(found, graph(x, y, *weights), strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=2e-5, atol=1e-6)


def test_parameters_are_initializers_which_may_be_replaced(tmp_path):
    b = rg.GraphBuilder("line")
    x = b.input("x", (3,), rg.float32)
    w = b.parameter("w", (3,), init=np.arange(3, dtype=np.float32))
    b.output(rg.sum(x * w), "y")
    graph = b.graph()
    graph.to_onnx(tmp_path / "line.onnx")
    evaluator: Any = ReferenceEvaluator(onnx.load(tmp_path / "line.onnx"))
    ones = np.ones(3, np.float32)
    assert evaluator.run(None, {"x": ones})[0] == 3
    assert evaluator.run(None, {"x": ones, "w": ones})[0] == 3


def test_names_are_distinct():
    def same_name():
        return Node(rg.trace(lambda x: x, rg.spec(())).inputs[0].prim, (), rg.spec(()), name="x_1")

    a, b = same_name(), same_name()
    model = onnx.load_from_string(to_bytes(Graph([a, b], [a + b]), {}))
    names = list(itertools.chain.from_iterable(n.output for n in model.graph.node))
    names += [x.name for x in model.graph.input]
    assert len(names) == len(set(names))


def test_without_the_package_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[onnx\]'"):
        rg.trace(lambda x: x + 1, rg.spec(())).to_onnx(tmp_path / "x.onnx")


def test_a_page_is_offered_a_model_or_the_reason_there_is_none(monkeypatch):
    graph = rg.trace(lambda x: rg.sin(x) + 1, rg.spec((2,)))
    found = offered(graph, {})
    assert b64decode(found["model"]) == to_bytes(graph, {})
    bad = rg.trace(lambda x: rg.linalg.inv(x), rg.spec((2, 2)))
    assert "no counterpart of the op lu" in offered(bad, {})["refused"]
    monkeypatch.setattr(write, "EMBEDDED", len(graph) - 1)
    assert "are not carried by a page" in offered(graph, {})["refused"]


def test_an_output_that_is_an_input_has_a_name_of_its_own():
    graph = rg.trace(lambda x: (x, x), rg.spec((2,)))
    model = onnx.load_from_string(to_bytes(graph, {}))
    names = [y.name for y in model.graph.output]
    assert len({*names, "x"}) == 3
    found = ReferenceEvaluator(model).run(None, {"x": np.ones(2, np.float32)})
    assert [y.tolist() for y in found] == [[1, 1], [1, 1]]
