"""Message passing and layers against the same, op by op in PyTorch, on graphs of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import FormatError, IndexRangeError, OptionError, ShapeError
from tests.gnn.graphs import any_dag
from tests.gnn.torch_layers import compare, graphs, reduced

F = 3


@pytest.mark.torch
def test_gcn() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    layer = gnn.GCNConv(F, 2, dtype="float64")
    m, b = (torch.tensor(p.numpy().copy()) for p in (layer.weight, layer.bias))
    for k, (_, n, edges) in enumerate(graphs(15)):
        rng = np.random.default_rng(k)
        x, w = rng.normal(size=(n, F)), rng.uniform(0.1, 1, edges.shape[1])
        g = gnn.Graph(n, edges)

        def theirs(x: Any, w: Any, n: int = n, edges: Any = edges) -> Any:
            matrix = torch.eye(n, dtype=w.dtype).index_put(
                (torch.tensor(edges[1]), torch.tensor(edges[0])), w, accumulate=True
            )
            root = matrix.sum(1) ** -0.5
            return (root[:, None] * matrix * root) @ x @ m + b

        compare(lambda x, w, g=g: layer(x, g, w), theirs, [x, w])


@pytest.mark.torch
def test_relations_gates_and_isomorphism() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    relational = gnn.RelationalConv(F, 2, num_types=3, dtype="float64")
    gin = gnn.GINConv(rg.nn.Linear(F, 2, dtype="float64"), eps=0.3)
    gated = gnn.GatedConv(F, dtype="float64")
    sage = gnn.SAGEConv(F, 2, "max", dtype="float64", normalize=True)
    p = {
        f"{i}.{k}": torch.tensor(v.numpy().copy())
        for i, layer in enumerate((relational, gin, gated, sage))
        for k, v in layer.named_parameters()
    }
    for k, (_, n, edges) in enumerate(graphs(10)):
        rng = np.random.default_rng(k)
        e = edges.shape[1]
        x, w, kind = rng.normal(size=(n, F)), rng.uniform(0.1, 1, e), rng.integers(0, 3, e)
        g = gnn.Graph(n, edges, edge_type=kind)

        def by_type(x: Any, w: Any, n: int = n, edges: Any = edges, kind: Any = kind) -> Any:
            y = x @ p["0.root.weight"].T + p["0.root.bias"]
            for t in range(3):
                own = np.flatnonzero(kind == t)
                rows = (x[edges[0, own]] @ p["0.weight"][t]) * w[own, None]
                y = y + reduced(torch, rows, edges[1, own], n, "mean")
            return y

        def summed(x: Any, w: Any, n: int = n, edges: Any = edges) -> Any:
            a = reduced(torch, x[edges[0]] * w[:, None], edges[1], n, "sum")
            return (1.3 * x + a) @ p["1.network.weight"].T + p["1.network.bias"]

        def updated(x: Any, w: Any, n: int = n, edges: Any = edges) -> Any:
            sent = x @ p["2.maps.0.weight"].T
            a = reduced(torch, sent[edges[0]] * w[:, None], edges[1], n, "sum")
            u = a @ p["2.cell.from_input.weight"].T + p["2.cell.from_input.bias"]
            v = x @ p["2.cell.from_state.weight"].T + p["2.cell.from_state.bias"]
            r, z = (
                torch.sigmoid(u[:, i * F : i * F + F] + v[:, i * F : i * F + F]) for i in (0, 1)
            )
            new = torch.tanh(u[:, 2 * F :] + r * v[:, 2 * F :])
            return (1 - z) * new + z * x

        def greatest(x: Any, w: Any, n: int = n, edges: Any = edges) -> Any:
            a = reduced(torch, x[edges[0]] * w[:, None], edges[1], n, "max")
            y = x @ p["3.conv.root.weight"].T + p["3.conv.root.bias"]
            y = y + a @ p["3.conv.neighbour.weight"].T
            return y / y.norm(dim=-1, keepdim=True)

        for layer, theirs in (
            (relational, by_type), (gin, summed), (gated, updated), (sage, greatest),
        ):  # fmt: skip
            compare(lambda x, w, g=g, layer=layer: layer(x, g, w), theirs, [x, w])


@pytest.mark.slow
def test_layers_give_the_same_bits_in_every_batch_and_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    layers = [gnn.GCNConv(F, 4), gnn.GATConv(4, 2, heads=2), gnn.GraphConv(4, 3, "mean")]
    graphs = []
    for _ in range(10):
        n, edges = any_dag(rng)
        graphs.append(gnn.Graph(n, edges, rng.normal(size=(n, F)).astype(np.float32)))

    def run(g: Any) -> list[bytes]:
        def loss(x: Any) -> Any:
            for layer in layers:
                x = layer(x, g)
            return (x**2).sum()

        return [r.numpy().tobytes() for r in gnn.rows_of(g, rg.grad(loss)(g.node_features))]

    alone = [run(g)[0] for g in graphs]
    for threads in (1, 4):
        order = rng.permutation(len(graphs))
        with rg.num_threads(threads):
            assert run(gnn.batch([graphs[k] for k in order])) == [alone[k] for k in order]


WIDE: dict[str, Any] = {
    "gcn": lambda: gnn.GCNConv(16, 64),
    "gat": lambda: gnn.GATConv(16, 32, heads=2),
    "sage": lambda: gnn.SAGEConv(16, 64),
    "graph": lambda: gnn.GraphConv(16, 64, "max"),
    "gin": lambda: gnn.GINConv(rg.nn.Linear(16, 64)),
    "gated": lambda: gnn.GatedConv(64, steps=2),
    "relations": lambda: gnn.RelationalConv(16, 64, 3),
    "scan": lambda: gnn.GRU(16, 64),
    "tree scan": lambda: gnn.TreeLSTM(16, 64),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(WIDE))
@pytest.mark.sample(1)
def test_no_bit_depends_on_the_order_of_a_batch_or_on_threads(kind: str) -> None:
    """Features, gradients of inputs and weights, and readouts; with graphs sorted by what they
    are, gradients of parameters too."""
    rng = np.random.default_rng(2)
    layer = WIDE[kind]()
    graphs = []
    for _ in range(12):
        n, edges = any_dag(rng, 60)
        x = rng.normal(size=(n, 16)).astype(np.float32)
        w = rng.uniform(0.1, 1.0, edges.shape[1]).astype(np.float32)
        types = rng.integers(0, 3, edges.shape[1])
        graphs.append(gnn.Graph(n, edges, x, edge_weight=w, edge_type=types))

    def loss(layer: Any, x: Any, w: Any, g: Any) -> Any:
        y = gnn.dag_scan(layer, g, x, w) if "scan" in kind else layer(x, g, w)
        y = y["h"] if isinstance(y, dict) else y
        pooled = gnn.readout(y, g)
        return (y**2).sum() + (pooled**2).sum(), (y, pooled)

    step = rg.jit(rg.grad(loss, (0, 1, 2), has_aux=True), shapes={"g": graphs[0].shapes(),
                  "x": "N _", "w": "E"})  # fmt: skip

    def run(g: Any) -> tuple[list[Any], list[bytes]]:
        with rg.no_grad():
            (dlayer, dx, dw), (y, pooled) = step(layer, g.node_features, g.edge_weight, g)
        owner = g.node_graph.numpy()[g.edges.numpy()[0]]
        rows = zip(gnn.rows_of(g, y.numpy()), gnn.rows_of(g, dx.numpy()), strict=True)
        own = [
            (
                a.tobytes(),
                b.tobytes(),
                dw.numpy()[owner == k].tobytes(),
                pooled.numpy()[k].tobytes(),
            )
            for k, (a, b) in enumerate(rows)
        ]
        return own, [p.numpy().tobytes() for p in dlayer.parameters()]

    alone = [run(g)[0][0] for g in graphs]
    _, expected = run(gnn.batch(sorted(graphs, key=gnn.content_key)))
    for threads in (1, 2, 3, 7):
        order = rng.permutation(len(graphs)).tolist()
        with rg.num_threads(threads):
            own, _ = run(gnn.batch([graphs[k] for k in order]))
            shuffled = [graphs[k] for k in order]
            _, found = run(gnn.batch(sorted(shuffled, key=gnn.content_key)))
        assert own == [alone[k] for k in order]
        assert found == expected


def test_bad_input() -> None:
    g = gnn.Graph(3, [[0, 1], [1, 2]])
    with pytest.raises(FormatError, match=r"edge 1, from node 1 to node 2, has the weight -2"):
        gnn.GCNConv(2, 2)(rg.ones((3, 2)), g, rg.tensor([1.0, -2.0]))
    with pytest.raises(FormatError, match=r"edge 0, .* weight nan"):
        gnn.gcn_norm(g, rg.tensor([np.nan, 1.0]))
    with pytest.raises(ShapeError, match=r"x is \(2, 2\).*3 nodes"):
        gnn.message_pass(rg.ones((2, 2)), g)
    with pytest.raises(ShapeError, match=r"edge_weight is \(3,\)"):
        gnn.message_pass(rg.ones((3, 2)), g, rg.ones((3,)))
    with pytest.raises(OptionError, match="aggregate is one of"):
        gnn.message_pass(rg.ones((3, 2)), g, aggregate="median")
    with pytest.raises(OptionError, match="score"):
        gnn.message_pass(rg.ones((3, 2)), g, aggregate="attention")
    with pytest.raises(OptionError, match="edge_type"):
        gnn.RelationalConv(2, 2, 1)(rg.ones((3, 2)), g)
    layer = gnn.RelationalConv(2, 2, 2)
    step = rg.jit(lambda kind: layer(rg.ones((3, 2)), g.replace(edge_type=kind)))
    assert step(rg.tensor([0, 1])).shape == (3, 2)
    for kind in (-1, 2):
        with pytest.raises(IndexRangeError, match=rf"edge 1, from node 1 .* type {kind}"):
            layer(rg.ones((3, 2)), g.replace(edge_type=[0, kind]))
        with pytest.raises(IndexRangeError):
            step(rg.tensor([0, kind]))
