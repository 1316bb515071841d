"""Edits of a graph's structure that gradients go through.

An edit gives a new graph and a `Routing`: how features of the new graph are made of those of the
old one. They are made in this way, so gradients of anything computed from the new graph reach the
old nodes and edges, none is lost; `Routing.back` does the same with arrays that are gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import IndexRangeError, OptionError, ShapeError
from retrograd.functions import creation, manipulation
from retrograd.functions.activations import softmax
from retrograd.functions.segment_ops import segment_sum
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph, as_rows, as_tensor
from retrograd.gnn.message_passing import spread

ROUTES = ("sum", "mean", "attention")


@dataclass(frozen=True, eq=False)
class Route:
    """Rows of the new as sums of rows of the old: `new[to[k]] += share[k] old[of[k]]`.

    `[old, ...]` to `[new, ...]`, and `back` the other way.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> _, routing = gnn.remove_node(gnn.Graph(3, [[0, 1], [1, 2]]), 1)
    >>> routing.nodes.forward([[1.0], [2.0], [4.0]]).tolist()
    [[1.0], [4.0]]
    """

    of: Any
    to: Any
    share: Tensor
    old: int
    new: int

    def forward(self, x: Any) -> Any:
        """Features of the new, of those of the old. Differentiable, also in the shares."""

        def moved(t: Any) -> Any:
            t = as_tensor(t)
            if not t.dtype.is_float:  # numbers that name something are taken over, not added
                first = np.full(self.new, -1)
                first[self.to[::-1]] = self.of[::-1]
                return t[first]
            rows = t[self.of]
            share = spread(self.share.astype(t.dtype), rows, len(self.of), "share")
            return segment_sum(rows * share, self.to, self.new)

        return pytree.map(moved, as_rows(x))

    def back(self, g: Any) -> Any:
        """Gradients of the old, of those of the new: the transpose of `forward`."""

        def moved(t: Any) -> Any:
            rows = as_tensor(t)[self.to]
            share = spread(self.share.astype(rows.dtype), rows, len(self.of), "share")
            return segment_sum(rows * share, self.of, self.old)

        return pytree.map(moved, as_rows(g))

    def number(self, old: int) -> int:
        """The number, in the new, of the first place where something old went; -1 for none."""
        places = np.flatnonzero(self.of == old)
        return int(self.to[places[0]]) if places.size else -1


@dataclass(frozen=True, eq=False)
class Routing:
    """What became of nodes and edges.

    The `nodes` and the `edges`, each a `Route` `[old, ...]` to `[new, ...]`.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> _, routing = gnn.remove_node(gnn.Graph(3, [[0, 1], [1, 2]]), 0)
    >>> routing.edges.old, routing.edges.new
    (2, 1)
    """

    nodes: Route
    edges: Route


def merge_nodes(
    graph: Graph, nodes: Sequence[int], route: str = "sum", *, scores: Any = None,
    self_loops: bool = False,
) -> tuple[Graph, Routing]:  # fmt: skip
    """The graph in which some nodes are one, in the place of the first of them; the others behind
    it move up. Its features are the sum or the mean of theirs, or with "attention" the mean
    weighted by the softmax of `scores`, one for each node.

    Edges from and to them stay, as edges from and to the new node; those between them are left out
    unless `self_loops`.

    `OptionError` for nodes that are not at least two different ones, `IndexRangeError` for a node
    that is not there.

    Features `[N, ...]` become `[N - k + 1, ...]` for k nodes.

    >>> from retrograd import gnn
    >>> g = gnn.Graph(3, [[0, 1], [1, 2]], node_features=[[1.0], [2.0], [4.0]])
    >>> new, routing = gnn.merge_nodes(g, [1, 2])
    >>> new.edges.tolist(), new.node_features.tolist()
    ([[0], [1]], [[1.0], [6.0]])
    >>> routing.nodes.back([[10.0], [20.0]]).tolist()
    [[10.0], [20.0], [20.0]]
    """
    chosen = [_node(graph, v, "merge_nodes") for v in nodes]
    for i, v in enumerate(chosen):
        if v in chosen[:i]:
            raise OptionError(f"merge_nodes: node {v} cannot be merged with itself")
    if len(chosen) < 2:
        raise OptionError(f"merge_nodes takes at least two nodes, not {chosen}")
    own = graph.node_graph.value()[chosen]
    if (own != own[0]).any():
        raise OptionError(f"merge_nodes: nodes {chosen} belong to different graphs of a batch")
    n = graph.num_nodes
    stays = np.ones(n, bool)
    stays[chosen[1:]] = False
    number = np.cumsum(stays) - 1
    number[chosen[1:]] = number[chosen[0]]
    share = _shares(n, np.asarray(chosen), route, scores, "merge_nodes")
    moved = Route(np.arange(n), number, share, n, n - len(chosen) + 1)
    ends = number[graph.edges.value()]
    among = np.isin(graph.edges.value(), chosen).all(axis=0)
    return _edited(graph, moved, ends, np.flatnonzero(~among | self_loops))


def contract_edge(
    graph: Graph, edge: int, route: str = "sum", *, scores: Any = None
) -> tuple[Graph, Routing]:
    """The graph in which the two ends of an edge are one node, the source: `merge_nodes`.

    `IndexRangeError` for an edge that is not there, `OptionError` for one from a node to itself or
    an unknown route.

    Features `[N, ...]` become `[N - 1, ...]`.

    >>> from retrograd import gnn
    >>> new, _ = gnn.contract_edge(gnn.Graph(3, [[0, 1], [1, 2]]), 0)
    >>> new.edges.tolist()
    [[0], [1]]
    """
    if not -graph.num_edges <= edge < graph.num_edges:
        raise IndexRangeError(f"contract_edge: there is no edge {edge} among {graph.num_edges}")
    u, v = graph.edges.value()[:, edge].tolist()
    if u == v:
        raise OptionError(f"contract_edge: edge {edge} leads from node {u} to itself")
    return merge_nodes(graph, [u, v], route, scores=scores)


def remove_node(
    graph: Graph, node: int, route: str | None = None, *, scores: Any = None
) -> tuple[Graph, Routing]:
    """The graph without a node and its edges; nodes behind it move up.

    With a `route`, its features are not lost: each of its neighbours, along edges in either
    direction, gets them ("sum"), or they are divided among those evenly ("mean") or by the softmax
    of `scores`, one for each neighbour in ascending order ("attention"). So it gets the gradients
    that its neighbours have, in the same shares.

    `IndexRangeError` for a node that is not there, `OptionError` for an unknown route.

    Features `[N, ...]` become `[N - 1, ...]`.

    >>> from retrograd import gnn
    >>> g = gnn.Graph(3, [[0, 1], [1, 2]], node_features=[[1.0], [2.0], [4.0]])
    >>> new, routing = gnn.remove_node(g, 1, "mean")
    >>> new, new.node_features.tolist()
    (Graph(2 nodes, 0 edges, node_features), [[2.0], [5.0]])
    >>> routing.nodes.back([[10.0], [20.0]]).tolist()
    [[10.0], [15.0], [20.0]]
    """
    v, n = _node(graph, node, "remove_node"), graph.num_nodes
    ends = graph.edges.value()
    stays = np.arange(n) != v
    number = np.cumsum(stays) - 1
    of, to = np.flatnonzero(stays), number[stays]
    share: Any = creation.ones((n - 1,), dtype="float64")
    touching = (ends == v).any(axis=0)
    near = np.setdiff1d(ends[:, touching], [v])
    if route is not None and near.size:
        own = _part(len(near), route, scores, "remove_node")
        of, to = np.append(of, np.full(len(near), v)), np.append(to, number[near])
        share = manipulation.concat([share, own], axis=0)
    elif route is not None and route not in ROUTES:
        raise OptionError(f"remove_node: route is one of {', '.join(ROUTES)}, not {route!r}")
    moved = Route(of, to, share, n, n - 1)
    return _edited(graph, moved, number[ends], np.flatnonzero(~touching))


def _node(graph: Graph, v: Any, what: str) -> int:
    if not hasattr(v, "__index__") or not 0 <= int(v) < graph.num_nodes:
        raise IndexRangeError(f"{what}: there is no node {v} among {graph.num_nodes}")
    return int(v)


def _part(count: int, route: str, scores: Any, what: str) -> Any:
    """The share of each of some nodes."""
    if route not in ROUTES:
        raise OptionError(f"{what}: route is one of {', '.join(ROUTES)}, not {route!r}")
    if (scores is not None) != (route == "attention"):
        raise OptionError(f'{what}: route "attention" comes with scores, and no other does')
    if route != "attention":
        return creation.full((count,), 1.0 if route == "sum" else 1.0 / count, dtype="float64")
    scores = as_tensor(scores)
    if scores.shape != (count,):
        raise ShapeError(f"{what}: scores are {scores.shape}, for {count} nodes")
    return softmax(scores.astype("float64"), axis=0)


def _shares(n: int, chosen: Any, route: str, scores: Any, what: str) -> Any:
    own = _part(len(chosen), route, scores, what)
    ones: Any = creation.ones((n,), dtype=own.dtype)
    return ones.at[chosen].set(own)


def _edited(graph: Graph, nodes: Route, ends: Any, stays: Any) -> tuple[Graph, Routing]:
    """The graph with nodes routed, and of the edges those that stay."""
    kept = len(stays)
    edges = Route(stays, np.arange(kept), creation.ones((kept,)), graph.num_edges, kept)
    carried = {
        name: pytree.map(lambda t: t[stays], getattr(graph, name))
        for name in ("edge_features", "edge_weight", "edge_type")
    }
    owner = np.zeros(nodes.new, np.int64)
    owner[nodes.to[::-1]] = graph.node_graph.value()[nodes.of[::-1]]
    start = np.searchsorted(owner, np.arange(graph.num_graphs)).astype(np.int64)
    new = graph.replace(
        edges=ends[:, stays],
        node_features=nodes.forward(graph.node_features),
        node_graph=Tensor.of(owner),
        graph_start=Tensor.of(start),
        **carried,
    )
    return new, Routing(nodes, edges)
