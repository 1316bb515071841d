"""Graphs of NetworkX as `Graph`, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph
from retrograd.gnn.names import Info, Names

Attributes = Sequence[dict[str, Any]]


def networkx_module() -> Any:
    """NetworkX, or an error that says how to get it."""
    try:
        import networkx
    except ImportError:
        raise OptionError("this needs NetworkX: pip install 'retrograd[gnn]'") from None
    return networkx


def from_networkx(graph: Any, weight: str | None = "weight") -> Graph:
    """A graph of NetworkX's. An edge of an undirected graph becomes two, one behind the other, a
    loop one.

    Attributes that are numbers, or lists of as many numbers, become features: dicts of arrays by
    the attribute's name. The edge attribute `weight` becomes `edge_weight`. All attributes, and the
    names of nodes, are kept in `info` for `to_networkx`. Attributes that not all nodes or edges
    have are kept there only.

    `OptionError` where NetworkX is not installed.

    >>> import networkx
    >>> from retrograd import gnn
    >>> g = gnn.from_networkx(networkx.path_graph(["a", "b", "c"]))
    >>> g, g.info.names.labels
    (Graph(3 nodes, 4 edges), ['a', 'b', 'c'])
    """
    names = Names(graph.nodes)
    listed = list(
        graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    )
    source: list[int] = []
    target: list[int] = []
    carried: list[dict[str, Any]] = []
    forward: list[int] = []
    for edge in listed:
        u, v = names[edge[0]], names[edge[1]]
        forward.append(len(source))
        source.append(u)
        target.append(v)
        carried.append(edge[-1])
        if not graph.is_directed() and u != v:
            source.append(v)
            target.append(u)
            carried.append(edge[-1])
    own = [data for _, data in graph.nodes(data=True)]
    edge_features = _numeric(carried)
    weights = edge_features.pop(weight, None) if weight is not None else None
    info = Info(names, dict(graph.graph), own, [e[-1] for e in listed], graph.is_directed(),
                graph.is_multigraph(), [e[2] for e in listed] if graph.is_multigraph() else [],
                forward, weight or "weight")  # fmt: skip
    found = Graph(
        len(names), [source, target], _numeric(own) or None, edge_features or None, weights
    )
    found.info = info
    return found


def _numeric(rows: Attributes) -> dict[str, Any]:
    """Attributes that all have, and that are numbers, as arrays."""
    found = {}
    for key in rows[0] if rows else ():
        if not isinstance(key, str) or not all(key in r for r in rows):
            continue
        values = [r[key] for r in rows]
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            continue
        if array.dtype.kind in "biuf":
            found[key] = array.astype(np.float32) if array.dtype.kind == "f" else array
    return found


def to_networkx(graph: Graph, *, features: bool = True) -> Any:
    """A graph of NetworkX's. One that came from there has its names, kind and attributes again, as
    long as its edges are the same; any other becomes a `MultiDiGraph` with numbers as nodes.

    With `features`, rows of features that are dicts of arrays are attributes, as lists or numbers;
    other features have the names `node_features` and `edge_features`, weights `weight`. Features
    and weights that were changed since replace the attributes they came from. If the two ways of an
    undirected edge carry different things by now, the graph becomes a directed one with both.

    `OptionError` where NetworkX is not installed.

    >>> from retrograd import gnn
    >>> list(gnn.to_networkx(gnn.Graph(2, [[0], [1]], edge_weight=[0.5])).edges(data="weight"))
    [(0, 1, 0.5)]
    """
    networkx = networkx_module()
    ends = graph.edges.value().T.tolist()
    info = graph.info
    if info is None or not info.fits(graph.num_nodes, ends):
        names = Names(range(graph.num_nodes))
        info = Info(names, {}, [{}] * len(names), [{}] * len(ends), forward=range(len(ends)))
    nodes = _attributes(graph.node_features, "node_features") if features else {}
    edges = _attributes(graph.edge_features, "edge_features") if features else {}
    if features and graph.edge_weight is not None:
        edges[info.weight] = graph.edge_weight.value()
    owner = _owner(info, len(ends))
    per_edge = [info.edges[k] for k in owner]
    nodes, edges = _changed(nodes, info.nodes), _changed(edges, per_edge)
    directed, forward = info.directed, info.forward
    if not directed and _ways_differ(edges, forward, owner):
        directed, forward = True, range(len(ends))
    kinds = (networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph)
    new = kinds[2 * info.multi + directed](**info.graph)
    labels = info.names.labels
    for k, label in enumerate(labels):
        new.add_node(label, **info.nodes[k] | {n: a[k] for n, a in nodes.items()})
    for e in forward:
        u, v = (labels[end] for end in ends[e])
        key = [info.keys[owner[e]]] if info.keys else []
        new.add_edge(u, v, *key, **per_edge[e] | {n: a[e] for n, a in edges.items()})
    return new


def _owner(info: Info, count: int) -> list[int]:
    """Of each edge the number of the edge that it is, or is the way back of."""
    owner = np.zeros(count, np.int64)
    owner[np.asarray(info.forward, np.int64)[1:]] = 1
    return list(np.cumsum(owner).tolist())


def _attributes(held: Any, name: str) -> dict[str, Any]:
    """Features as arrays by the name of an attribute."""
    if held is None:
        return {}
    if isinstance(held, dict) and all(isinstance(t, Tensor) for t in held.values()):
        return {key: t.value() for key, t in held.items()}
    leaves = pytree.flatten(held)[0]
    paths = [name] if isinstance(held, Tensor) else [name + p for p in pytree.paths(held)]
    return {path: leaf.value() for path, leaf in zip(paths, leaves, strict=True)}


def _changed(features: dict[str, Any], kept: Attributes) -> dict[str, list[Any]]:
    """The features that are not what the attributes say already, which may say it in float64."""
    said = _numeric(kept)
    return {
        name: array.tolist()
        for name, array in features.items()
        if name not in said or not _same(array, said[name])
    }


def _same(a: Any, b: Any) -> bool:
    real = a.dtype.kind == "f" and b.dtype.kind == "f"
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=real)


def _ways_differ(edges: dict[str, list[Any]], forward: Sequence[int], owner: Sequence[int]) -> bool:
    first = [forward[k] for k in owner]
    return any(rows[e] != rows[f] for rows in edges.values() for e, f in enumerate(first) if e != f)
