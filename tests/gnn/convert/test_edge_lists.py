"""Graphs from lists of edges, PyTorch Geometric's arrays and tables."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd import gnn
from retrograd.errors import DTypeError, FormatError, ShapeError


def test_edge_lists_and_arrays_of_pytorch_geometric() -> None:
    g = gnn.from_edge_list([(0, 1, 0.5), (2, 1, 2.0)], 4)
    assert (g.num_nodes, g.edge_weight.tolist()) == (4, [0.5, 2.0])
    assert gnn.from_edge_list([]).num_nodes == 0
    with pytest.raises(ShapeError, match="edge 1 is"):
        gnn.from_edge_list([(0, 1), (1, 2, 3, 4)])
    ids = np.array([0, 0, 2, 2, 2])
    g = gnn.from_edge_index(
        np.array([[0, 3], [1, 4]]),
        x=np.ones((5, 2)),
        batch=ids,
        y=np.arange(3),
        edge_attr=np.ones(2),
    )
    assert g.num_graphs == 3
    assert [part.num_nodes for part in gnn.unbatch(g)] == [2, 0, 3]
    back = gnn.to_edge_index(g)
    assert np.array_equal(back["batch"], ids)
    assert np.array_equal(back["y"], np.arange(3))
    with pytest.raises(ShapeError, match="sorted"):
        gnn.from_edge_index([[0], [1]], batch=[1, 0])
    with pytest.raises(FormatError, match="edge 1 leads from node 0 of graph 0 to node 2"):
        gnn.from_edge_index([[0, 0], [1, 2]], batch=[0, 0, 1])
    with pytest.raises(DTypeError, match=r"edge 1 is \('a', 'b'\).*gnn.from_table"):
        gnn.from_edge_list([(0, 1), ("a", "b")])


def test_tables() -> None:
    edges = {"from": ["x", "y"], "to": ["y", "z"], "w": [1.0, 2.0], "kind": [3, 4]}
    nodes = {"node": ["z", "y", "x"], "size": [1, 2, 3]}
    g = gnn.from_table(
        edges, "from", "to", weight="w", edge_features=["kind"], nodes=nodes, node_features=["size"]
    )
    assert g.edges.tolist() == [[2, 1], [1, 0]]
    lists = gnn.Graph(2, [[0], [1]], {"x": [1.0, 2.0], "y": ([[1.0], [2.0]], [3, 4])})
    assert lists.node_features["y"][0].shape == (2, 1)
    assert g.node_features["size"].tolist() == [1, 2, 3]
    with pytest.raises(FormatError, match="row 2 of the nodes lists 'z' again"):
        gnn.from_table(edges, "from", "to", nodes={"node": ["z", "y", "z"]})
    with pytest.raises(FormatError, match="row 1 of the edges names the node 'z'"):
        gnn.from_table(edges, "from", "to", nodes={"node": ["x", "y"]})
    with pytest.raises(FormatError, match="'from' has 2 rows, the column 'to' 1"):
        gnn.from_table({"from": ["x", "y"], "to": ["y"]}, "from", "to")
    with pytest.raises(FormatError, match="no column 'source'"):
        gnn.from_table(edges)
    with pytest.raises(FormatError, match="'x', which is no number"):
        gnn.from_table(edges, "from", "to", edge_features=["from"])
