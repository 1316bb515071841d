"""Edges left out in training."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn


def test_edge_dropout() -> None:
    g = gnn.Graph(1, np.zeros((2, 4000), np.int64))
    drop = gnn.EdgeDropout(0.25, generator=rg.random.Generator(0))
    weight = drop(g).numpy()
    assert set(np.unique(weight).tolist()) == {0.0, float(np.float32(4 / 3))}
    assert abs((weight == 0).mean() - 0.25) < 0.03
    fewer = gnn.drop_edges(g.replace(edge_weight=np.arange(4000.0)), 0.5, seed=1)
    assert abs(fewer.num_edges - 2000) < 200
    assert fewer.edge_weight.shape == (fewer.num_edges,)


def test_edges_to_keep_are_checked() -> None:
    g = gnn.Graph(3, [[0, 1], [1, 2]], edge_features=[[1.0], [2.0]])
    kept = gnn.keep_edges(g, rg.tensor([False, True]))
    assert (kept.edges.tolist(), kept.edge_features.tolist()) == ([[1], [2]], [[2.0]])
    with pytest.raises(rg.IndexRangeError, match="edge 2 of a graph with 2 edges"):
        gnn.keep_edges(g, [2])
