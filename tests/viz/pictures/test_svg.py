"""Pictures: well-formed, complete, escaped, of every kind of graph."""

import re
from xml.etree import ElementTree

import pytest

from retrograd.viz import to_svg
from tests.viz import graphs

SVG = "{http://www.w3.org/2000/svg}"


def boxes_of(text):
    root = ElementTree.fromstring(text)
    return {e.get("id"): e for e in root.iter(f"{SVG}g") if "box" in e.get("class", "").split()}


@pytest.mark.parametrize("name", graphs.ALL)
def test_well_formed_and_complete(name):
    graph = graphs.ALL[name]()
    boxes = boxes_of(to_svg(graph, max_nodes=10_000, closed=False))
    for i, node in enumerate(graph.nodes):
        if node.op != "constant":
            assert f"n{i}" in boxes
            assert str(node.type) in "".join(boxes[f"n{i}"].itertext())


def test_a_used_twice_shows_two_edges():
    text = to_svg(graphs.parallel())
    paths = re.findall(r'data-from="n0" data-to="n1" d="([^"]*)"', text)
    assert len(set(paths)) == 2


def test_constants_are_written_into_their_users():
    text = "".join(boxes_of(to_svg(graphs.worked_example(), words=False))["n9"].itertext())
    assert "select(·, 1, 0)" in text


def test_operations_are_called_by_words_or_by_their_names():
    graph = graphs.network()
    words, names = to_svg(graph, closed=False), to_svg(graph, closed=False, words=False)
    assert ">matrix product<" in words
    assert ">dot_general<" not in words
    assert ">dot_general<" in names
    assert ">h = tanh<" in words  # a function is called by its name


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


@pytest.mark.slow
def test_a_large_graph_is_drawn_by_scopes():
    graph = graphs.chain(3000, scoped=12)
    for closed, most in ((True, 12), (False, 13)):  # on the page inputs stand where they are used
        boxes = boxes_of(to_svg(graph, closed=closed))
        texts = ["".join(box.itertext()) for box in boxes.values()]
        assert len(boxes) == most
        assert sum("250 nodes" in text for text in texts) == 12 - closed
        assert sum("251 nodes" in text for text in texts) == closed


@pytest.mark.parametrize("most", [1, 2, 8, 50])
def test_a_graph_without_scopes_is_grouped_too(most):
    boxes = boxes_of(to_svg(graphs.chain(2000), max_nodes=most))
    assert 1 <= len(boxes) <= max(4, most)


@pytest.mark.slow
def test_depth_is_no_limit():
    ElementTree.fromstring(to_svg(graphs.chain(5_000)))
    ElementTree.fromstring(to_svg(graphs.chain(5_000), max_nodes=10**9))


@pytest.mark.slow
def test_a_long_gradient():
    boxes = boxes_of(to_svg(graphs.chain_with_gradient(600), max_nodes=10**9))
    assert len(boxes) > 1_600
