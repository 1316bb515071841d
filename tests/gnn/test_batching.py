"""Batches: disjoint graphs as one, and apart again."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import ShapeError
from tests.gnn.graphs import any_graph


def test_batches() -> None:
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(6):
        n, edges = any_graph(rng)
        graphs.append(
            gnn.Graph(
                n, edges, {"x": rng.normal(size=(n, 2))}, rng.normal(size=edges.shape[1]),
                rng.random(edges.shape[1]), graph_features=rng.normal(size=(1, 3)),
            )
        )  # fmt: skip
    whole = gnn.batch([gnn.batch(graphs[:2]), *graphs[2:]])
    assert whole.num_graphs == 6
    for one, again in zip(graphs, gnn.unbatch(whole), strict=True):
        leaves, structure = rg.tree.flatten(one)
        others, same = rg.tree.flatten(again)
        assert structure == same
        for a, b in zip(leaves, others, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    with pytest.raises(ShapeError, match="graph 1 has node_features of the structure"):
        gnn.batch([graphs[0], graphs[1].replace(node_features={"y": graphs[1].node_features["x"]})])
    with pytest.raises(ShapeError, match=r"edge_features of graph 1 .*rows differ"):
        gnn.batch([graphs[0], graphs[1].replace(edge_features=np.ones((graphs[1].num_edges, 2)))])
    with pytest.raises(ShapeError, match="no graphs"):
        gnn.batch([])
    with pytest.raises(TypeError, match=r"number 1 is no gnn\.Graph but str"):
        gnn.batch([graphs[0], cast(Any, "graph")])


def test_a_key_of_the_content_sorts_alike_in_any_order() -> None:
    graphs = [
        gnn.Graph(n, [[0], [n - 1]], np.full((n, 1), w)) for n in (1, 2, 3) for w in (0.0, 1.0)
    ]
    keys = [gnn.content_key(g) for g in graphs]
    assert len(set(keys)) == len(graphs)
    assert keys == [gnn.content_key(gnn.unbatch(g)[0]) for g in graphs]


def test_rows_are_as_many_as_nodes() -> None:
    g = gnn.batch([gnn.Graph(1, []), gnn.Graph(2, [])])
    assert [len(rows) for rows in gnn.rows_of(g, rg.ones((3, 2)))] == [1, 2]
    with pytest.raises(ShapeError, match="one row each"):
        gnn.rows_of(g, rg.ones((2, 2)))
