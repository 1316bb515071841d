"""Graphs of other kinds as `Graph`, and back: lists of edges, PyTorch Geometric's arrays, tables of
pandas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.errors import DTypeError, FormatError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph
from retrograd.gnn.names import Info, Names


def from_edge_list(
    pairs: Iterable[Sequence[Any]], num_nodes: int | None = None, **fields: Any
) -> Graph:
    """A graph of pairs `(source, target)` of node numbers, or triples with a weight. Without
    `num_nodes` there are as many nodes as the greatest number asks for. `fields` are those of
    `Graph`.

    `ShapeError` for what are no pairs or triples, `DTypeError` for nodes that are no numbers,
    `IndexRangeError` for a node that is not there.

    >>> from retrograd import gnn
    >>> gnn.from_edge_list([(0, 1), (1, 2)]).edges.tolist()
    [[0, 1], [1, 2]]
    """
    rows = [tuple(p) for p in pairs]
    lengths = {len(r) for r in rows}
    if not lengths <= {2} and not lengths <= {3}:
        e = next((i for i, r in enumerate(rows) if len(r) not in (2, 3)), 0)
        raise ShapeError(f"edges are pairs, or triples with a weight, but edge {e} is {rows[e]}")
    for e, row in enumerate(rows):
        if not all(hasattr(end, "__index__") for end in row[:2]):
            raise DTypeError(
                f"edge {e} is {row}, but nodes are numbers here; graphs whose nodes have names are "
                "made by gnn.from_table or gnn.from_networkx"
            )
    ends = np.array([r[:2] for r in rows], np.int64).reshape(-1, 2).T
    if lengths == {3}:
        fields.setdefault("edge_weight", np.array([r[2] for r in rows], np.float32))
    if num_nodes is None:
        num_nodes = int(ends.max()) + 1 if ends.size else 0
    return Graph(num_nodes, ends, **fields)


def from_edge_index(
    edge_index: Any, *, num_nodes: int | None = None, x: Any = None, edge_attr: Any = None,
    edge_weight: Any = None, edge_type: Any = None, y: Any = None, batch: Any = None,
) -> Graph:  # fmt: skip
    """A graph of the arrays that PyTorch Geometric's `Data` holds, under their names: `edge_index`
    `[2, E]`, `batch` `[N]` sorted. x becomes `node_features`, `edge_attr` `edge_features`, and y
    `graph_features`, or, if it has a row for each node and there are not as many graphs,
    `{"x": x, "y": y}`.

    `ShapeError` where lengths do not fit, `FormatError` for an edge between two graphs of a batch.

    >>> from retrograd import gnn
    >>> gnn.from_edge_index([[0, 2], [1, 3]], x=[[1.0]] * 4, batch=[0, 0, 1, 1])
    Graph(2 graphs, 4 nodes, 2 edges, node_features)
    """
    x, edge_attr, edge_weight, edge_type, y, edge_index = (
        None if a is None else _array(a)
        for a in (x, edge_attr, edge_weight, edge_type, y, edge_index)
    )
    ids = None if batch is None else _array(batch)
    if num_nodes is None:
        counts = [len(a) for a in (x, ids) if a is not None]
        num_nodes = counts[0] if counts else int(edge_index.max(initial=-1)) + 1
    graphs = 1 if ids is None else int(ids.max(initial=-1)) + 1
    nodes: Any = x
    if y is not None and len(y) == num_nodes != graphs:
        nodes, y = {"x": x, "y": y}, None
    found = Graph(num_nodes, edge_index, nodes, edge_attr, edge_weight, edge_type=edge_type)
    if ids is not None:
        if ids.shape != (num_nodes,) or (np.diff(ids) < 0).any() or ids.min(initial=0) < 0:
            raise ShapeError(
                f"batch has the number of a graph for each of {num_nodes} nodes, sorted"
            )
        across = np.flatnonzero(ids[edge_index[0]] != ids[edge_index[1]])
        if across.size:
            u, v = (int(end[across[0]]) for end in edge_index)
            raise FormatError(
                f"edge {across[0]} leads from node {u} of graph {ids[u]} to node {v} of graph "
                f"{ids[v]}, but graphs of a batch are disjoint"
            )
        start = np.searchsorted(ids, np.arange(graphs))
        found = found.replace(
            node_graph=Tensor.of(ids.astype(np.int64)),
            graph_start=Tensor.of(start.astype(np.int64)),
        )
    return found if y is None else found.replace(graph_features=y)


def to_edge_index(graph: Graph) -> dict[str, Any]:
    """The arrays of a graph under PyTorch Geometric's names, as NumPy arrays.

    `TraceError` for a graph that is being traced.

    `edge_index` is `[2, E]`, `batch` `[N]`.

    >>> from retrograd import gnn
    >>> sorted(gnn.to_edge_index(gnn.Graph(2, [[0], [1]])))
    ['batch', 'edge_index', 'num_nodes']
    """
    found: dict[str, Any] = {
        "edge_index": graph.edges.numpy(),
        "batch": graph.node_graph.numpy(),
        "num_nodes": graph.num_nodes,
    }
    named = {"x": "node_features", "edge_attr": "edge_features", "edge_weight": "edge_weight",
             "edge_type": "edge_type", "y": "graph_features"}  # fmt: skip
    for name, field in named.items():
        held = getattr(graph, field)
        if held is not None:
            found[name] = pytree.map(lambda t: t.numpy(), held)
    return found


def _array(x: Any) -> Any:
    """Arrays of any library as NumPy's."""
    return as_array(x.detach().cpu().numpy() if hasattr(x, "cpu") and hasattr(x, "detach") else x)


# -- tables --------------------------------------------------------------------------------------
def from_table(
    edges: Any, source: str = "source", target: str = "target", *, weight: str | None = None,
    edge_features: Sequence[str] = (), nodes: Any = None, node: str = "node",
    node_features: Sequence[str] = (),
) -> Graph:  # fmt: skip
    """A graph of a table with a row for each edge: a `DataFrame` of pandas, or any mapping from
    column names to sequences. What stands in the columns `source` and `target` are names of nodes;
    `info.names` tells their numbers. A table `nodes`, with the names in its column `node`, gives
    their order and features.

    `FormatError` for a column that is not there, a node that is listed twice, or an edge to a node
    that is not listed, with the number of the row.

    >>> from retrograd import gnn
    >>> g = gnn.from_table({"source": ["a", "b"], "target": ["b", "c"], "w": [1, 2]}, weight="w")
    >>> g, g.info.names["c"]
    (Graph(3 nodes, 2 edges, edge_weight), 2)
    """
    ends = [_column(edges, source), _column(edges, target)]
    if len(ends[0]) != len(ends[1]):
        raise FormatError(
            f"the column {source!r} has {len(ends[0])} rows, the column {target!r} {len(ends[1])}"
        )
    if nodes is None:
        names = Names(x for pair in zip(*ends, strict=True) for x in pair)
    else:
        names = Names()
        for row, label in enumerate(_column(nodes, node)):
            if label in names:
                raise FormatError(f"row {row} of the nodes lists {label!r} again")
            names.add(label)
    numbers: list[list[int]] = [[], []]
    for row, pair in enumerate(zip(*ends, strict=True)):
        for column, label in zip(numbers, pair, strict=True):
            if label not in names:
                raise FormatError(
                    f"row {row} of the edges names the node {label!r}, which is not listed"
                )
            column.append(names[label])
    found = Graph(
        len(names),
        numbers,
        None if nodes is None else {c: _numbers(nodes, c) for c in node_features} or None,
        {c: _numbers(edges, c) for c in edge_features} or None,
        None if weight is None else _numbers(edges, weight).astype(np.float32),
    )
    found.info = Info(names)
    return found


def _column(table: Any, name: str) -> list[Hashable]:
    if name not in table:
        raise FormatError(f"the table has no column {name!r}; it has {', '.join(map(str, table))}")
    column = table[name]
    return list(column.tolist() if hasattr(column, "tolist") else column)


def _numbers(table: Any, name: str) -> Any:
    array = np.asarray(_column(table, name))
    if array.dtype.kind not in "biuf":
        raise FormatError(
            f"the column {name!r} holds {_column(table, name)[0]!r}, which is no number"
        )
    return array.astype(np.float32) if array.dtype.kind == "f" else array
