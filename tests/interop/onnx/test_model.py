"""What a model is before it is read: the package `onnx` makes models, good and damaged ones."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as rg
from retrograd.interop.onnx.model import attribute, checked, graphs, label, opsets_of, parsed
from tests.interop.onnx.suite import onnx

h: Any = onnx.helper
X, Y = (h.make_tensor_value_info(name, 1, [2]) for name in "xy")


def made(*nodes: Any, opset: int = 21) -> Any:
    graph = h.make_graph(nodes, "g", [X], [Y])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=10)


def test_order_of_nodes() -> None:
    first, second = h.make_node("Neg", ["x"], ["t"]), h.make_node("Abs", ["t"], ["y"], name="last")
    assert checked(made(first, second), "m") is not None
    with pytest.raises(rg.FormatError, match="m: Abs 'last' uses 't' before it is made"):
        checked(made(second, first), "m")
    with pytest.raises(rg.FormatError, match="'t' is made twice, the second time by Neg that"):
        checked(made(first, first, second), "m")
    with pytest.raises(rg.FormatError, match="'x' is made twice"):
        checked(made(h.make_node("Neg", ["x"], ["x"])), "m")


def test_graphs_within_graphs_are_looked_over() -> None:
    """One that is damaged, two levels down."""
    out = h.make_empty_tensor_value_info("z")
    worst = h.make_graph([h.make_node("Neg", ["z"], ["z"])], "c", [], [out])
    middle = h.make_graph([h.make_node("If", ["x"], ["z"], then_branch=worst)], "b", [], [out])
    whole = made(h.make_node("If", ["x"], ["y"], then_branch=middle, else_branch=worst))
    assert sorted(g.name for g in graphs(whole.graph)) == ["b", "c", "c", "g"]
    with pytest.raises(rg.FormatError, match="before it is made"):
        checked(whole, "m")


def test_what_is_no_model_and_versions() -> None:
    good = made(h.make_node("Neg", ["x"], ["y"])).SerializeToString()
    assert parsed(good, "m").graph.node[0].op_type == "Neg"
    for bad in (b"", b"no model", good[:-3]):
        with pytest.raises(rg.FormatError, match="m is no ONNX model, or was cut"):
            parsed(bad, "m")
    with pytest.raises(rg.FormatError, match="of opset 999, and the package onnx knows"):
        checked(made(h.make_node("Neg", ["x"], ["y"]), opset=999), "m")
    old = checked(made(h.make_node("Neg", ["x"], ["y"]), opset=9), "m")
    assert opsets_of(old.opset_import) == {"": 13}
    ids = [h.make_opsetid("ai.onnx", 15), h.make_opsetid("other", 2)]
    assert opsets_of(ids) == {"": 15, "other": 2}


def test_attributes_are_what_onnx_reads() -> None:
    tensor = h.make_tensor("t", 1, [1], [2.0])
    graph, kind = made().graph, h.make_tensor_type_proto(1, [2])
    for value in (1.5, 3, [1.0, 2.5], [1, -2], tensor, graph, kind):
        assert attribute(h.make_attribute("a", value)) == value
    assert attribute(h.make_attribute("a", "é")) == "é"
    assert attribute(h.make_attribute("a", ["b", "c"])) == ["b", "c"]
    with pytest.raises(rg.FormatError, match="the attribute 'a' is of a kind"):
        attribute(h.make_attribute("a", [tensor]))


def test_labels() -> None:
    assert label(h.make_node("Add", [], ["s"], name="n")) == "Add 'n'"
    assert label(h.make_node("Add", [], ["s", "t"], domain="ai.onnx")) == "Add that makes 's, t'"
    assert label(h.make_node("F", [], ["s"], name="n", domain="d")) == "d:F 'n'"
