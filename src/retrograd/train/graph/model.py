"""The networks of the recipe, and the features they start from."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import gnn, nn
from retrograd.errors import OptionError
from retrograd.gnn import Graph

PLACES = 2000  # nodes up to which a node without features is described by where it is
RESTART = 0.15
DEGREES, STEPS = 8, 6  # of the features that describe the structure
CONVS = ("gcn", "sage", "gat", "gin")


def features_of(graph: Graph, of_nodes: bool) -> Any:
    """Features `[N, F]`: those that nodes have, scaled; else, for nodes of one graph, their place
    in it, or what the graph looks like around them: their degree, and how likely random walks come
    back."""
    held = graph.node_features
    columns = [np.asarray(t.numpy(), np.float32) for t in rg.tree.flatten(held)[0]]
    if columns:
        table = np.concatenate([c.reshape(graph.num_nodes, -1) for c in columns], axis=1)
        spread = table.std(axis=0)
        return (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if of_nodes and graph.num_nodes <= PLACES:
        return places(graph)
    return np.concatenate(
        [degrees(graph), gnn.random_walk_features(graph, STEPS).numpy()], axis=1
    ).astype(np.float32)


def places(graph: Graph) -> Any:
    """Which node it is, and personalized PageRank: one-hot numbers, and rows of
    `(1 - (1 - r) A)^-1` scaled to length 1, with A the matrix of a GCN layer and r = `RESTART`;
    `[N, 2 N]`.

    J. Klicpera et al. (2019) spread predictions so. With it two layers know more of a node than who
    is two edges away, and nodes further from all that are labelled are not left to chance.
    """
    n = graph.num_nodes
    weight, own = (w.numpy() for w in gnn.gcn_norm(graph, graph.edge_weight))
    step = np.diag(own.astype(np.float64))
    source, target = graph.edges.numpy()
    np.add.at(step, (target, source), weight)
    found = np.linalg.inv(np.eye(n) - (1 - RESTART) * step)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return np.concatenate([np.eye(n), found], axis=1).astype(np.float32)


def degrees(graph: Graph) -> Any:
    """The degree of each node as one of `DEGREES` classes, the last for all from there on."""
    return np.eye(DEGREES, dtype=np.float32)[np.minimum(graph.in_degree().numpy(), DEGREES - 1)]


class Network(nn.Module):
    """Layers that pass messages, and for graphs a readout: `[N, F]` to `[N or graphs, classes]`."""

    def __init__(
        self, kind: str, in_features: int, hidden: int, classes: int, layers: int, dropout: float,
        of_graphs: bool, generator: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if kind not in CONVS:
            raise OptionError(f"conv is one of {', '.join(CONVS)}, not {kind!r}")
        self.of_graphs = of_graphs
        last = hidden if of_graphs else classes
        widths = [in_features, *[hidden] * (layers - 1), last]
        self.convs = [_conv(kind, a, b, generator) for a, b in pairwise(widths)]
        self.dropout = nn.Dropout(dropout, generator=generator)
        self.head = nn.Linear(2 * hidden, classes, generator=generator) if of_graphs else None

    def embed(self, x: Any, graph: Graph) -> Any:
        """What the last layer is given."""
        for k, conv in enumerate(self.convs):
            x = conv(x, graph, graph.edge_weight)
            if k < len(self.convs) - 1:
                x = self.dropout(rg.relu(x))
        return x

    def forward(self, x: Any, graph: Graph) -> Any:
        h = self.embed(x, graph)
        if self.head is None:
            return h
        pooled = [gnn.readout(rg.relu(h), graph, how) for how in ("sum", "max")]
        return self.head(rg.concat(pooled, axis=1))


def _conv(kind: str, a: int, b: int, generator: Any) -> Any:
    if kind == "gcn":
        return gnn.GCNConv(a, b, generator=generator)
    if kind == "sage":
        return gnn.SAGEConv(a, b, generator=generator)
    if kind == "gat":
        return gnn.GATConv(a, b, generator=generator)
    inner = nn.Sequential(
        nn.Linear(a, b, generator=generator), nn.ReLU(), nn.Linear(b, b, generator=generator)
    )
    return gnn.GINConv(inner)
