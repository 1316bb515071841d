"""Graphs of nodes and edges in notebooks."""

import numpy as np

import retrograd as rg
from retrograd import gnn, notebook
from tests.notebook.test_array import well_formed
from tests.notebook.test_image import pixels


def shown(graph):
    root = well_formed(graph._repr_html_())
    return root, "".join(root.itertext())


def test_what_it_carries_and_where_its_edges_are():
    features = {"<a>": rg.ones((3, 2)), "b": rg.ones((3,))}
    root, words = shown(gnn.Graph(3, [[0, 0, 1], [1, 2, 2]], features, edge_weight=[1.0, 0.5, 2.0]))
    assert "3 nodes · 3 edges" in words
    rows = [["".join(c.itertext()) for c in r.findall("td")] for r in root.iter("tr")]
    assert ["edge_weight", "float32 [3]"] in rows
    assert any("<a>" in name and kind == "float32 [3, 2]" for name, kind in rows[1:])
    assert root.find(".//img").get("src").startswith("data:image/png;base64,")


def test_the_picture_has_a_mark_for_each_edge(monkeypatch):
    seen = []
    real = notebook.picture

    def watched(counts):
        seen.append(counts)
        return real(counts)

    monkeypatch.setattr(notebook, "picture", watched)
    shown(gnn.Graph(3, [[0, 0, 1], [1, 2, 2]]))
    np.testing.assert_array_equal(seen[0], [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    assert pixels(real(seen[0])).shape == (3, 3, 3)
    shown(gnn.Graph(1000, [[0, 999, 999], [0, 999, 0]]))
    assert seen[1].shape == (128, 128)
    assert seen[1].sum() == 3
    assert (seen[1][0, 0], seen[1][127, 127], seen[1][127, 0]) == (1, 1, 1)


def test_empty_batched_and_traced():
    assert "0 nodes" in shown(gnn.Graph(0, np.zeros((2, 0), np.int64)))[1]
    one = gnn.Graph(2, [[0], [1]])
    assert "2 graphs · 4 nodes" in shown(gnn.batch([one, one]))[1]
    seen = []

    @rg.jit
    def f(graph):
        seen.append(shown(graph)[1])
        return graph.edges.sum()

    f(one)
    assert "2 nodes · 1 edges" in seen[0]
