"""Graphs from NetworkX and back: nothing is lost, what changed arrives."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from retrograd import gnn


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_there_and_back_to_networkx(kind: str) -> None:
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    original = getattr(networkx, kind)(title="a graph")
    for k, name in enumerate("abcd"):
        original.add_node(name, size=k, colour="red" if k else "blue", at=[k, 1.5])
    for k, (u, v) in enumerate([("a", "b"), ("c", "b"), ("b", "b"), ("c", "d")]):
        original.add_edge(u, v, weight=k + 0.5, note=str(k))
    if "Multi" in kind:
        original.add_edge("a", "b", key="second", weight=9.0, note="again")
    g = gnn.from_networkx(original)
    assert sorted(g.node_features) == ["at", "size"]
    assert g.node_features["at"].shape == (4, 2)
    back = gnn.to_networkx(g)
    assert type(back) is type(original)
    assert networkx.utils.graphs_equal(back, original)
    other = gnn.to_networkx(g.replace(edges=g.edges.numpy()[:, :1], edge_weight=[1.0]))
    assert list(other.edges(data="weight")) == [(0, 1, 1.0)]


@pytest.mark.parametrize("directed", [False, True])
def test_what_changed_arrives_in_networkx(directed: bool) -> None:
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    original = networkx.DiGraph() if directed else networkx.Graph()
    for name, size in (("a", 0.1), ("b", 0.2), ("c", 0.3)):
        original.add_node(name, size=size, at=0.1, colour="red")
    original.add_edge("a", "b", cost=0.1, far=0.7)
    original.add_edge("b", "c", cost=0.2, far=0.7)
    original.add_edge("c", "c", cost=0.4, far=0.7)
    g = gnn.from_networkx(original, weight="cost")
    assert networkx.utils.graphs_equal(gnn.to_networkx(g), original)  # in float64
    weight = cast(Any, g.edge_weight)
    nodes = {**g.node_features, "size": g.node_features["size"] + 1.0}
    back = gnn.to_networkx(g.replace(node_features=nodes, edge_weight=weight * 2.0))
    assert type(back) is type(original)
    assert back.nodes["b"] == {"size": pytest.approx(1.2), "at": 0.1, "colour": "red"}
    assert back["b"]["c"] == {"cost": pytest.approx(0.4), "far": 0.7}
    ways = g.replace(edge_weight=np.arange(g.num_edges, dtype=np.float32))
    back = gnn.to_networkx(ways)  # the two ways of an edge differ now
    assert type(back) is networkx.DiGraph
    found = sorted(back.edges(data="cost"))
    expected = zip(*ways.edges.tolist(), ways.edge_weight.tolist(), strict=True)
    assert found == sorted(("abc"[u], "abc"[v], w) for u, v, w in expected)
    assert back["a"]["b"]["far"] == 0.7
