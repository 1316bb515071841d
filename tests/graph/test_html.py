"""Graphs in notebooks."""

import xml.etree.ElementTree as ET

import retrograd as rg
from retrograd import nn
from retrograd.train.gpt import GPT, GPTConfig, token_loss
from tests.notebook.test_array import well_formed

SVG = "{http://www.w3.org/2000/svg}"


def relu_product(a, b, d):
    return rg.relu(a * b + d)


def drawing(graph):
    return graph._repr_svg_()


def test_a_small_graph_is_drawn_with_its_gradient():
    graph = rg.trace(relu_product, *[rg.spec(())] * 3)
    root = well_formed(graph._repr_html_())
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert {"forward ↓", "gradient ↑", "∂a", "∂b", "∂d"} <= {*texts}
    assert "6 nodes · 3 inputs · 1 outputs" in "".join(root.itertext())
    assert ET.fromstring(drawing(graph)).tag == f"{SVG}svg"
    assert graph._repr_html_() == graph._repr_html_()


def test_a_gradient_graph_is_drawn_as_what_it_is():
    graph = rg.trace(relu_product, *[rg.spec(())] * 3).gradient()
    texts = {t.text for t in ET.fromstring(drawing(graph)).iter(f"{SVG}text")}
    assert {"forward ↓", "gradient ↑"} <= texts


def test_calls_and_layers_are_closed_in_the_picture():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))
    loss = lambda m, x, t: nn.functional.cross_entropy(m(x), t)
    graph = rg.trace(loss, model, rg.spec((5, 4)), rg.spec((5,), rg.int64))
    texts = {t.text for t in ET.fromstring(drawing(graph)).iter(f"{SVG}text")}
    assert {"[0] · Linear", "cross_entropy", "gradient of cross_entropy"} <= texts
    assert "dot_general" not in texts


def test_a_picture_that_nobody_can_read_is_tables():
    def many(x):
        for _ in range(150):
            x = x * 2.0
        return x

    assert drawing(rg.trace(many, rg.spec(()))) is None


def test_a_large_graph_is_tables():
    tokens = rg.ones((2, 8), dtype=rg.int32)
    graph = rg.trace(token_loss, GPT(GPTConfig(depth=4), rg.random.Generator(0)), tokens, tokens)
    root = well_formed(graph._repr_html_())
    assert graph._repr_svg_() is None
    titles = ["".join(s.itertext()) for s in root.iter("summary")]
    assert any(t.startswith("GPT.blocks[3] ") for t in titles)
    assert any(t.endswith("()") or "() " in t for t in titles), "calls have tables of their own"
    assert "picture" not in titles
    rows = ["".join(r.itertext()) for r in root.iter("tr")]
    assert any("gather" in r and "f32[2, 8, 16]" in r for r in rows)


def test_a_very_large_graph_is_cut():
    def many(x):
        for _ in range(3_000):
            x = x + 1.0
        return x

    graph = rg.trace(many, rg.spec(()))
    html = graph._repr_html_()
    well_formed(html)
    assert "more nodes; print(graph) shows all" in html


def test_names_are_text():
    b = rg.GraphBuilder()
    x = b.input("<script>alert(1)</script>", (2,), rg.float32)
    b.output(x * 2)
    html = b.graph()._repr_html_()
    well_formed(html)
    assert "&lt;script&gt;" in html
