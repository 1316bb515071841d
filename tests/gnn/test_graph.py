"""Graphs as values: checks, batches, conversions, trees."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import CycleError, DTypeError, FormatError, IndexRangeError, ShapeError
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


def test_a_cycle_is_told_by_the_names_of_its_nodes() -> None:
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    g = gnn.from_networkx(networkx.DiGraph([("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")]))
    named = r"of 3 nodes: 'a' -> 'b' -> 'c' -> 'a'$"
    for look in (gnn.topological_order, gnn.levels):
        with pytest.raises(CycleError, match=named):
            look(g)
    with pytest.raises(CycleError, match=named):
        gnn.dag_scan(lambda a, x: a + x, g, rg.ones((4, 1)))


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
