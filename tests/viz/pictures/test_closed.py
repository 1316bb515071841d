"""Closed scopes as boxes: what they say, where they stand, and that nothing is lost."""

import re

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.ir import Graph, Provenance, lookup, made_by, spec
from retrograd.ops.leaf import input_node
from retrograd.viz import document
from retrograd.viz.pictures.closed import closed_boxes
from retrograd.viz.pictures.scene import scene
from retrograd.viz.pictures.svg import render
from tests.viz import graphs, test_outline

GRAPHS = {**test_outline.GRAPHS, **graphs.ALL}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_is_in_one_box_and_every_edge_is_drawn(name):
    doc = document(GRAPHS[name]())
    boxes = scene(doc, 10**9)
    at = {i: k for k, box in enumerate(boxes) for i in box.members}
    folded = {r["id"] for r in doc["nodes"] if r["role"] == "constant" and not r["outputs"]}
    assert set(at) >= {r["id"] for r in doc["nodes"]} - folded
    assert sum(len(box.members) for box in boxes) == len(at)
    wanted = {
        (at[e["from"]], at[e["to"]])
        for e in doc["edges"]
        if e["from"] in at and at[e["from"]] != at[e["to"]]
        and not (boxes[at[e["to"]]].role == "update" and not doc["nodes"][e["from"]]["inputs"])
    }  # fmt: skip
    drawn = {(x, k) for k, box in enumerate(boxes) for x, _ in box.inputs}
    assert wanted <= drawn
    assert all((x, k) in wanted or boxes[k].role == "update" for x, k in drawn)
    assert all(x < k for x, k in drawn)


def test_a_call_says_what_it_is():
    boxes = {box.title: box for box in closed_boxes(document(test_outline.classifier()), True)}
    norm = boxes["[2] · LayerNorm"]
    assert norm.formula == ["y = γ · (x − μ) / sqrt(σ² + ε) + β"]
    assert norm.lines[:2] == ["f32[5, 8]", "reads weight, bias"]
    assert norm.lines[2].startswith(f"{len(norm.members)} nodes · test_outline.py:")
    assert "model(x)" in norm.tooltip
    assert boxes["cross_entropy"].lines[:2] == ["f32[]", "reads t"]
    assert boxes["cross_entropy"].results == ["output"]


def test_gradients_stand_beside_what_they_are_of():
    graph = test_outline.classifier().gradient()
    boxes = scene(document(graph), 400)
    assert len(boxes) == 10
    for box in boxes:
        assert box.column == (box.origin is not None)
        if box.origin is not None:
            assert box.title == f"gradient of {boxes[box.origin].title}"
    named = "".join(boxes[k].results[0] for k in range(10) if boxes[k].column and boxes[k].results)
    assert "output 0" in named


def test_the_picture_of_a_gradient_names_what_each_is_of():
    text = test_outline.classifier().gradient().to_svg()
    assert "∂model[2].weight, ∂model[2].bias" in text
    assert "gradient of cross_entropy" in text


def test_calls_of_a_layer_that_is_applied_twice_are_boxes_of_their_own():
    boxes = scene(document(test_outline.applied_twice()), 400)
    assert [box.title for box in boxes if "linear" in box.title] == ["linear", "linear"]
    assert [box.lines[0] for box in boxes if "linear" in box.title] == ["f32[5, 4]"] * 2


def test_scopes_that_need_each_other_in_turns():
    """Of the edges of a circle one leads back; the picture has both."""
    x = input_node(spec(()), "x")
    y, neg = x, lookup("neg")()
    for i in range(200):
        with made_by(Provenance(f"part[{i % 2}]")):
            y = neg(y)
    doc = document(Graph([x], [y]))
    boxes = scene(doc, 400)
    assert [box.title for box in boxes] == ["[0]", "[1]"]
    assert [[k for k, _ in box.inputs] for box in boxes] == [[1], [0]]
    assert len(re.findall(r'data-from="s\d"', render(doc))) == 2


def test_a_rule_tells_its_steps_and_parameters():
    step = test_outline.training_step(rg.optim.Adam(lr=0.1), layers=1)
    (rule,) = [box for box in scene(document(step), 400) if box.title == "Adam × 4"]
    assert rule.formula[0] == "m = β₁ m + (1 − β₁) g"
    assert len(rule.formula) == 3
    assert rule.lines[0].startswith("model[0].weight, model[0].bias")
    assert (rule.role, rule.column, rule.updates) == ("update", 2, True)


def test_second_derivatives_have_a_column():
    boxes = scene(document(graphs.second_order()), 400)
    found = {box.title: box.column for box in boxes if box.title.endswith(" of tanh")}
    assert found == {"gradient of tanh": 1, "second order of tanh": 2}


@pytest.mark.slow
def test_a_large_model_is_a_few_boxes():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(400)))
    graph = rg.trace(lambda m, x: (m(x) ** 2).sum(), model, rg.spec((5, 4))).gradient()
    assert len(scene(document(graph), 1000)) <= 810
    assert len(scene(document(graph), 100)) <= 100
