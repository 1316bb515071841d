"""Positions of nodes: eigenvectors of the Laplacian, and random walks."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd import gnn


def test_positions() -> None:
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    graph = networkx.karate_club_graph()
    g = gnn.from_networkx(graph, weight=None)
    g = g.replace(edge_features=None)
    vectors = gnn.laplacian_eigenvectors(g, 3).numpy()
    laplacian = networkx.normalized_laplacian_matrix(graph, weight=None).todense()
    for k in range(3):
        v = vectors[:, k].astype(np.float64)
        value = v @ laplacian @ v
        np.testing.assert_allclose(laplacian @ v, value * v, atol=1e-5)
    assert abs(np.linalg.eigvalsh(laplacian)[1] - vectors[:, 0] @ laplacian @ vectors[:, 0]) < 1e-5
    walk = gnn.random_walk_features(g, 4).numpy()
    adjacency = networkx.to_numpy_array(graph, weight=None)
    step = adjacency / adjacency.sum(1, keepdims=True)
    for k in range(4):
        expected = np.diag(np.linalg.matrix_power(step, k + 1))
        np.testing.assert_allclose(walk[:, k], expected, rtol=1e-5, atol=1e-7)
    two = gnn.batch([g, g])
    np.testing.assert_array_equal(gnn.random_walk_features(two, 4).numpy(), np.tile(walk, (2, 1)))
