"""Graphs as values: checks, batches, conversions, trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import DTypeError, FormatError, IndexRangeError, ShapeError
from tests.gnn.graphs import any_dag, any_graph


def test_bad_input_names_the_offender() -> None:
    with pytest.raises(IndexRangeError, match="edge 1 leads from node 5 to node 0"):
        gnn.Graph(3, [[0, 5], [1, 0]])
    with pytest.raises(IndexRangeError, match="edge 0 leads from node -1"):
        gnn.Graph(3, [[-1], [1]])
    with pytest.raises(ShapeError, match=r"node_features\['a'\] has the shape \(2,\).*3 nodes"):
        gnn.Graph(3, [[0], [1]], {"a": np.ones(2)})
    with pytest.raises(ShapeError, match=r"edge_features has the shape \(3, 2\).*1 edges"):
        gnn.Graph(3, [[0], [1]], None, np.ones((3, 2)))
    with pytest.raises(DTypeError, match="float"):
        gnn.Graph(3, [[0.5], [1.0]])
    with pytest.raises(ShapeError, match="from_edge_list"):
        gnn.Graph(3, [[0, 1], [1, 2], [2, 0]])
    with pytest.raises(ShapeError, match="rows of different lengths"):
        gnn.Graph(3, [[0, 1], [1]])
    with pytest.raises(ShapeError, match="number of nodes"):
        gnn.Graph(-1, [])
    g = gnn.Graph(4, [[0, 0, 1], [1, 1, 1]], edge_weight=[1.0, np.nan, -1.0])
    with pytest.raises(FormatError, match="edge 2 leads from node 1 to itself"):
        g.validate(self_loops=False)
    with pytest.raises(FormatError, match="edge 1 leads from node 0 to node 1, as edge 0 does"):
        g.validate(duplicates=False, weights_finite=False)
    with pytest.raises(FormatError, match="node 2 has no edges"):
        g.validate(isolated=False, weights_finite=False)
    with pytest.raises(FormatError, match="edge 1, from node 0 to node 1, has the weight nan"):
        g.validate()
    with pytest.raises(FormatError, match=r"edge 2, .* has the weight -1"):
        g.replace(edge_weight=[1.0, 2.0, -1.0]).validate(negative_weights=False)


def test_structure_is_that_of_scipy() -> None:
    import scipy.sparse

    rng = np.random.default_rng(0)
    for _ in range(30):
        n, edges = any_graph(rng)
        g = gnn.Graph(n, edges)
        matrix = scipy.sparse.coo_matrix((np.ones(edges.shape[1]), edges), (n, n))
        np.testing.assert_array_equal(g.out_degree().numpy(), matrix.sum(1).A1 if n else [])
        np.testing.assert_array_equal(g.in_degree().numpy(), matrix.sum(0).A1 if n else [])
        for (start, listed), end in ((g.csr(), edges[0]), (g.csc(), edges[1])):
            assert np.array_equal(listed, np.argsort(end, kind="stable"))
            assert np.array_equal(np.diff(start), np.bincount(end, minlength=n))


def test_order_and_levels_are_those_of_networkx() -> None:
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, edges = any_dag(rng)
        g = gnn.Graph(n, edges)
        other = networkx.MultiDiGraph()
        other.add_nodes_from(range(n))
        other.add_edges_from(edges.T.tolist())
        expected = [sorted(level) for level in networkx.topological_generations(other)]
        assert [sorted(level.tolist()) for level in gnn.levels(g)] == expected
        place = np.argsort(gnn.topological_order(g).numpy())
        assert (place[edges[0]] < place[edges[1]]).all()


def test_a_graph_is_a_tree() -> None:
    g = gnn.Graph(3, [[0, 1], [1, 2]], np.ones((3, 2)), edge_weight=np.array([2.0, 3.0]))

    def loss(g: Any) -> Any:
        return gnn.message_pass(g.node_features, g, g.edge_weight).sum()

    by_graph = rg.grad(loss)(g)
    assert isinstance(by_graph, gnn.Graph)
    assert by_graph.edge_weight.tolist() == [2.0, 2.0]
    assert by_graph.node_features.tolist() == [[2.0] * 2, [3.0] * 2, [0.0] * 2]
    step = rg.jit(loss)
    assert [step(g).item(), step(g.reversed()).item()] == [10.0, 10.0]
    assert step.cache_stats()["compilations"] == 1


@pytest.mark.slow
def test_one_compilation_serves_batches_of_all_sizes() -> None:
    rng = np.random.default_rng(0)
    layer = gnn.GATConv(2, 3)

    def predict(g: Any) -> Any:
        h = layer(g.node_features["x"][0], g, g.edge_weight)
        return gnn.readout(h, g, "mean")

    graphs = []
    for _ in range(9):
        n, edges = any_graph(rng)
        x = rng.normal(size=(n, 2)).astype(np.float32)
        weight = rng.random(edges.shape[1]).astype(np.float32)
        graphs.append(gnn.Graph(n, edges, {"x": (x, np.ones(n))}, edge_weight=weight))
    step = rg.jit(predict, shapes={"g": graphs[0].shapes()})
    for k in range(1, 9):
        batch = gnn.batch(graphs[:k])
        np.testing.assert_allclose(step(batch).numpy(), predict(batch).numpy(), rtol=1e-6)
    assert step.cache_stats()["compilations"] == 1
