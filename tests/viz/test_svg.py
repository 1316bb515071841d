"""Pictures: well-formed, complete, escaped, of every kind of graph."""

import re
from xml.etree import ElementTree

import pytest

from retrograd.viz import document, to_svg
from retrograd.viz.layout import layout
from retrograd.viz.scene import scene
from tests.viz import graphs

SVG = "{http://www.w3.org/2000/svg}"


def boxes_of(text):
    root = ElementTree.fromstring(text)
    return {e.get("id"): e for e in root.iter(f"{SVG}g") if "box" in e.get("class", "").split()}


@pytest.mark.parametrize("name", graphs.ALL)
def test_well_formed_and_complete(name):
    graph = graphs.ALL[name]()
    boxes = boxes_of(to_svg(graph, max_nodes=10_000))
    for i, node in enumerate(graph.nodes):
        if node.op != "constant":
            assert f"n{i}" in boxes
            assert str(node.type) in "".join(boxes[f"n{i}"].itertext())


@pytest.mark.parametrize("name", graphs.ALL)
def test_boxes_do_not_overlap(name):
    boxes = scene(document(graphs.ALL[name]()), 10_000)
    places = layout(boxes).places
    for i, a in enumerate(places):
        for b in places[:i]:
            beside = abs(a.x - b.x) >= (a.width + b.width) / 2
            above = abs(a.y - b.y) >= (a.height + b.height) / 2
            assert beside or above


def test_every_use_is_a_wire_or_a_stub():
    for name in graphs.ALL:
        boxes = scene(document(graphs.ALL[name]()), 10_000)
        picture = layout(boxes)
        shown = len(picture.wires) + sum(len(p.stubs) for p in picture.places)
        assert shown == sum(len(box.inputs) for box in boxes)


def test_a_used_twice_shows_two_edges():
    text = to_svg(graphs.parallel())
    paths = re.findall(r'data-from="n0" data-to="n1" d="([^"]*)"', text)
    assert len(set(paths)) == 2


def test_forward_runs_down_and_gradient_up_beside_it():
    doc = document(graphs.network())
    boxes = scene(doc, 1000)
    picture = layout(boxes)
    for box, place in zip(boxes, picture.places, strict=True):
        for x, _ in box.inputs:
            if boxes[x].column == box.column == 0:
                assert picture.places[x].y < place.y
            if boxes[x].column == box.column == 1:
                assert picture.places[x].y > place.y
        if box.column == 1 and box.origin is not None:
            top, bottom = picture.bands[picture.band_of[box.origin]]
            assert top <= place.y <= bottom
            assert place.x > picture.places[box.origin].x


def test_constants_are_written_into_their_users():
    text = "".join(boxes_of(to_svg(graphs.worked_example()))["n9"].itertext())
    assert "select(·, 1, 0)" in text


def test_nodes_not_computed_are_marked():
    box = boxes_of(to_svg(graphs.worked_example()))["n12"]
    assert "absent" in box.get("class").split()
    assert "does not compute it" in "".join(box.itertext())


def test_outputs_are_named():
    text = to_svg(graphs.worked_example(), outputs=["∂f/∂a", "∂f/∂b", "<d>"])
    assert "∂f/∂a" in text
    assert "&lt;d&gt;" in text


def test_tooltips_tell_scope_and_source():
    tip = boxes_of(to_svg(graphs.network()))["n4"].find(f"{SVG}title").text
    assert "in model.layers[0]" in tip
    assert "graphs.py:" in tip
    assert "rg.tanh(x @ w1)" in tip


def test_light_and_dark():
    assert "prefers-color-scheme: dark" in to_svg(graphs.single())


def test_markup_in_names_is_text():
    text = to_svg(graphs.hostile())
    assert "<script" not in text
    ElementTree.fromstring(text)


def test_a_large_graph_is_drawn_by_scopes():
    graph = graphs.chain(3000, scoped=12)
    boxes = boxes_of(to_svg(graph))
    texts = ["".join(box.itertext()) for box in boxes.values()]
    assert len(boxes) == 13
    assert sum("250 nodes" in text for text in texts) == 12


def test_groups_pair_forward_and_gradient():
    boxes = scene(document(graphs.network()), 12)
    pairs = [(box.title, boxes[box.origin].title) for box in boxes if box.origin is not None]
    assert ("model.layers[0]", "model.layers[0]") in pairs
    assert len(boxes) <= 12


@pytest.mark.parametrize("most", [1, 2, 8, 50])
def test_a_graph_without_scopes_is_grouped_too(most):
    boxes = boxes_of(to_svg(graphs.chain(2000), max_nodes=most))
    assert 1 <= len(boxes) <= max(4, most)


def test_depth_is_no_limit():
    ElementTree.fromstring(to_svg(graphs.chain(5_000)))
    ElementTree.fromstring(to_svg(graphs.chain(5_000), max_nodes=10**9))


def test_a_long_gradient():
    boxes = boxes_of(to_svg(graphs.chain_with_gradient(600), max_nodes=10**9))
    assert len(boxes) > 1_600
