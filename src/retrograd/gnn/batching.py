"""Several graphs as one: disjoint, one behind the other, without padding."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import ShapeError
from retrograd.functions import manipulation
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph

TREES = ("node_features", "edge_features", "graph_features", "edge_weight", "edge_type")


def batch(graphs: Sequence[Graph]) -> Graph:
    """One graph of all nodes and edges, graph after graph. `node_graph` says which graph a node
    belongs to; `unbatch` takes it apart again.

    Whatever is computed for the nodes of a graph has the same bits in every batch. `ShapeError`
    where graphs carry different things, naming the graph.

    Features `[N_i, ...]` become `[N, ...]`, N the sum of the `N_i`. `TypeError` for what is no
    graph.

    >>> from retrograd import gnn
    >>> g = gnn.batch([gnn.Graph(2, [[0], [1]]), gnn.Graph(3, [[0, 1], [2, 2]])])
    >>> g, g.edges.tolist(), g.node_graph.tolist()
    (Graph(2 graphs, 5 nodes, 3 edges), [[0, 2, 3], [1, 4, 4]], [0, 0, 1, 1, 1])
    """
    graphs = list(graphs)
    for k, g in enumerate(graphs):
        if not isinstance(g, Graph):
            raise TypeError(f"batch: number {k} is no gnn.Graph but {type(g).__name__}")
    if not graphs:
        raise ShapeError("batch: there are no graphs, so what they carry is not known")
    nodes = [g.num_nodes for g in graphs]
    counts = [g.num_graphs for g in graphs]
    at = np.concatenate([[0], np.cumsum(nodes)])
    number = np.concatenate([[0], np.cumsum(counts)])
    fields: dict[str, Any] = {}
    edges = [g.edges.value() + a for g, a in zip(graphs, at, strict=False)]
    fields["edges"] = np.concatenate(edges, axis=1)
    ids = [g.node_graph.value() + k for g, k in zip(graphs, number, strict=False)]
    fields["node_graph"] = Tensor.of(np.concatenate(ids))
    starts = [g.graph_start.value() + a for g, a in zip(graphs, at, strict=False)]
    fields["graph_start"] = Tensor.of(np.concatenate(starts))
    for name in TREES:
        fields[name] = _together(name, [getattr(g, name) for g in graphs])
    return graphs[0].replace(**fields)


def content_key(graph: Graph) -> bytes:
    """A key to sort graphs by that depends on all they are and carry, and on nothing else.

    What is computed for a graph does not depend on its place in a batch; what is added up over a
    batch, such as a loss and the gradients of parameters, is added in the order of the batch, which
    shows in the last bits. `batch(sorted(graphs, key=content_key))` is the same for any order in
    which the graphs come. What belongs to a graph, such as its label, has to be carried by it.

    `TraceError` for a graph that is being traced, whose arrays have a shape but no values.

    >>> from retrograd import gnn
    >>> a, b = gnn.Graph(2, [[0], [1]]), gnn.Graph(3, [])
    >>> [sorted(x, key=gnn.content_key)[0].num_nodes for x in ([a, b], [b, a])] in ([2, 2], [3, 3])
    True
    """
    leaves, structure = pytree.flatten(graph)
    found = hashlib.sha256(repr(structure).encode())
    for leaf in leaves:
        array = leaf.value()
        found.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    return found.digest()


def _together(name: str, trees: Sequence[Any]) -> Any:
    first, structure = pytree.flatten(trees[0])
    columns: list[list[Any]] = [[x] for x in first]
    for k, t in enumerate(trees[1:], 1):
        leaves, other = pytree.flatten(t)
        if other != structure:
            raise ShapeError(
                f"batch: graph {k} has {name} of the structure {other}, graph 0 of {structure}"
            )
        for column, leaf in zip(columns, leaves, strict=True):
            if (leaf.shape[1:], leaf.dtype) != (column[0].shape[1:], column[0].dtype):
                raise ShapeError(
                    f"batch: {name} of graph {k} is {leaf.dtype} {leaf.shape}, of graph 0 "
                    f"{column[0].dtype} {column[0].shape}: rows differ"
                )
            column.append(leaf)
    return pytree.unflatten(structure, [manipulation.concat(c, axis=0) for c in columns])


def unbatch(graph: Graph) -> list[Graph]:
    """The graphs that a batch was made of.

    Features `[N, ...]` become `[N_i, ...]` again. `TraceError` for a batch that is being traced.

    >>> from retrograd import gnn
    >>> gnn.unbatch(gnn.batch([gnn.Graph(2, [[0], [1]]), gnn.Graph(3, [])]))
    [Graph(2 nodes, 1 edges), Graph(3 nodes, 0 edges)]
    """
    ends = graph.edges.value()
    owner = graph.node_graph.value()[ends[0]]
    starts = [*graph.graph_start.value().tolist(), graph.num_nodes]
    found = []
    for k in range(graph.num_graphs):
        nodes, edges = slice(starts[k], starts[k + 1]), np.flatnonzero(owner == k)
        rows: dict[str, Any] = {"node_features": nodes, "graph_features": slice(k, k + 1)}
        fields = {name: _taken(getattr(graph, name), rows.get(name, edges)) for name in TREES}
        found.append(Graph(starts[k + 1] - starts[k], ends[:, edges] - starts[k], **fields))
    return found


def _taken(held: Any, rows: Any) -> Any:
    return pytree.map(lambda x: x[rows], held)


def rows_of(graph: Graph, x: Any) -> list[Any]:
    """An array with one row for each node, as one array for each graph of a batch.

    `[N, ...]` to `[N_i, ...]` for each graph. `ShapeError` for another number of rows, `TraceError`
    for a batch that is being traced.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> g = gnn.batch([gnn.Graph(1, []), gnn.Graph(2, [])])
    >>> [x.tolist() for x in gnn.rows_of(g, rg.tensor([1.0, 2.0, 3.0]))]
    [[1.0], [2.0, 3.0]]
    """
    if x.shape[:1] != (graph.num_nodes,):
        raise ShapeError(
            f"rows_of: {graph.num_nodes} nodes have one row each, but the array has the shape "
            f"{x.shape}"
        )
    starts = [*graph.graph_start.value().tolist(), graph.num_nodes]
    return [x[a:b] for a, b in pairwise(starts)]
