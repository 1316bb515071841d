"""What nodes without features are described by."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.train.graph import karate
from retrograd.train.graph.model import features_of


def test_nodes_without_features_are_described_by_number_and_pagerank() -> None:
    graph = karate().graphs[0]
    x = features_of(graph, of_nodes=True)
    assert np.array_equal(x[:, :34], np.eye(34))
    a = np.eye(34)
    source, target = graph.edges.numpy()
    weight: Any = graph.edge_weight
    np.add.at(a, (target, source), weight.numpy().astype(np.float64))
    root = a.sum(axis=1) ** -0.5
    rank = x[:, 34:] @ (np.eye(34) - 0.85 * root[:, None] * a * root)  # a multiple of 1
    np.testing.assert_allclose(rank, np.diag(np.diag(rank)), atol=1e-6)
    np.testing.assert_allclose((x[:, 34:] ** 2).sum(axis=1), 1, rtol=1e-6)
