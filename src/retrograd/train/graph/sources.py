"""Where the recipe's graphs come from: files, and data that comes with NetworkX."""

from __future__ import annotations

import io
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.errors import FormatError, OptionError
from retrograd.files import read_bytes
from retrograd.gnn import Graph, from_networkx
from retrograd.gnn.convert.networkx import networkx_module
from retrograd.train.graph.gml import check_gml
from retrograd.train.graph.graphml import check_graphml
from retrograd.train.graph.tables import cell, edges_of, nodes_of, rows_of
from retrograd.train.graph.weights import LARGEST

Array = np.ndarray[Any, Any]
EDGE_LISTS = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
NETWORKX = {".graphml": "read_graphml", ".gml": "read_gml"}


@dataclass
class Task:
    """What is to be learned: labels of the nodes of one graph, or of several graphs."""

    name: str
    graphs: list[Graph]
    labels: Array  # the number of a class for each node or graph, -1 where it is not known
    classes: list[str]
    nodes: list[str] = field(default_factory=list)  # names, where nodes are classified

    @property
    def of_graphs(self) -> bool:
        return not self.nodes


# -- data that comes with NetworkX ---------------------------------------------------------------
def karate() -> Task:
    """Zachary's karate club: 34 members and how often they met, who split into two clubs."""
    graph = networkx_module().karate_club_graph()
    return task_of("karate", graph, "club")


def davis() -> Task:
    """Davis' Southern women: 18 women and 14 events that they went to. Which is which?"""
    graph = networkx_module().davis_southern_women_graph()
    for _, data in graph.nodes(data=True):
        data["kind"] = "event" if data.pop("bipartite") else "woman"
    return task_of("davis", graph, "kind", weighted=False)


def miserables() -> Task:
    """The 77 characters of Les Miserables and how often two of them appear together. The labels are
    communities, found by greedy maximization of modularity: is a character's known from a few?"""
    networkx = networkx_module()
    graph = networkx.les_miserables_graph()
    found = networkx.community.greedy_modularity_communities(graph, weight="weight")
    for group in found:  # by the name of the one that appears most often
        name = max(sorted(group), key=lambda v: graph.degree(v, weight="weight"))
        for v in group:
            graph.nodes[v]["community"] = name
    return task_of("miserables", graph, "community")


PROPERTIES: dict[str, Callable[[Any, Any], Any]] = {
    "connected": lambda nx, g: "yes" if nx.is_connected(g) else "no",
    "triangles": lambda nx, g: str(min(sum(nx.triangles(g).values()) // 3, 4)),
    "diameter": lambda nx, g: str(nx.diameter(g)) if nx.is_connected(g) else "infinite",
}


def atlas(label: str | None) -> Task:
    """All 1,252 graphs of one to seven nodes, and a property of each."""
    label = label or "triangles"
    if label not in PROPERTIES:
        raise OptionError(f"atlas has the labels {', '.join(PROPERTIES)}, not {label!r}")
    nx = networkx_module()
    graphs = [g for g in nx.graph_atlas_g() if len(g)]
    labels, classes = _numbered([PROPERTIES[label](nx, g) for g in graphs])
    return Task(f"atlas, {label}", [from_networkx(g) for g in graphs], labels, classes)


BUILT_IN: dict[str, Callable[[str | None], Task]] = {
    "karate": lambda _: karate(),
    "davis": lambda _: davis(),
    "miserables": lambda _: miserables(),
    "atlas": atlas,
}


def task_of(name: str, graph: Any, label: str, weighted: bool = True) -> Task:
    """The task of telling the attribute `label` of the nodes of a graph of NetworkX's; attributes
    that are numbers are features. Nodes without the attribute have no label.

    >>> import networkx
    >>> from retrograd.train.graph import task_of
    >>> task = task_of("club", networkx.karate_club_graph(), "club")
    >>> task.classes, len(task.labels)
    (['Mr. Hi', 'Officer'], 34)
    """
    given = [data.get(label) for _, data in graph.nodes(data=True)]
    if all(x is None for x in given):
        known = sorted({k for _, data in graph.nodes(data=True) for k in data})
        raise FormatError(
            f"{name}: no node has an attribute {label!r}; they have {', '.join(known) or 'none'}"
        )
    _check_features(name, graph, label)
    if weighted:
        _check_weights(name, graph)
    found = from_networkx(graph, "weight" if weighted else None)
    features = dict(found.node_features or {})
    features.pop(label, None)
    found = found.replace(node_features=features or None, edge_features=None)
    labels, classes = _numbered([None if x is None else str(x) for x in given])
    return Task(name, [found], labels, classes, [str(x) for x in graph.nodes])


def _numbered(given: Sequence[str | None]) -> tuple[Array, list[str]]:
    classes = sorted({x for x in given if x is not None})
    numbers: dict[str | None, int] = {x: k for k, x in enumerate(classes)}
    return np.array([numbers.get(x, -1) for x in given], np.int64), classes


def _check_features(name: str, graph: Any, label: str | None = None) -> None:
    """`FormatError` for an attribute that all nodes have with a number that is none, or is too
    large to compute with."""
    nodes = list(graph.nodes(data=True))
    common = set.intersection(*(set(data) for _, data in nodes)) if nodes else set()
    for node, data in nodes:
        for key in common - {label}:
            if _is_odd(data[key]):
                raise FormatError(
                    f"{name}: {key!r} of the node {node!r} is {reprlib.repr(data[key])}, which is "
                    f"no number up to {LARGEST:.4g}"
                )


def _check_weights(name: str, graph: Any) -> None:
    """`FormatError` for a weight that is no number, or is too large to compute with."""
    for u, v, weight in graph.edges(data="weight", default=1):
        if not isinstance(weight, Real) or isinstance(weight, bool) or _is_odd(weight):
            raise FormatError(
                f"{name}: the weight between {u!r} and {v!r} is {reprlib.repr(weight)}, not a "
                f"number up to {LARGEST:.4g}"
            )


def _is_odd(value: Any) -> bool:
    """Whether a number is not finite in float32, or an integer of more than 64 bits; of a list,
    whether one in it is."""
    if isinstance(value, list | tuple):
        return any(_is_odd(v) for v in value)
    if isinstance(value, Integral):
        return not -(2**63) <= int(value) < 2**63
    return isinstance(value, Real) and not abs(float(value)) <= LARGEST


# -- files ---------------------------------------------------------------------------------------
def read_task(data: str, label: str | None, nodes: Path | None) -> Task:
    """The task in a file, a directory of files, or under one of the names in `BUILT_IN`."""
    if data in BUILT_IN:
        return BUILT_IN[data](label)
    path = Path(data)
    if path.is_dir():
        return _directory(path, label)
    if path.suffix in NETWORKX:
        return task_of(path.name, _networkx_file(path), label or "label")
    if path.suffix not in EDGE_LISTS:
        known = ", ".join([*NETWORKX, *EDGE_LISTS])
        raise FormatError(f"{path}: a graph is a file ending in {known}, a directory, or one of "
                          f"{', '.join(BUILT_IN)}")  # fmt: skip
    if nodes is None:
        raise OptionError(f"{path} has edges only; give a table of nodes with labels by --nodes")
    return _tables(path, nodes, label or "label")


def _networkx_file(path: Path) -> Any:
    content = read_bytes(path, "graph")
    networkx, options = networkx_module(), {}
    if path.suffix == ".graphml":
        check_graphml(path, content)
    elif not check_gml(path, content):
        options["label"] = "id"  # nodes have no labels, which are their names otherwise
    try:
        return getattr(networkx, NETWORKX[path.suffix])(io.BytesIO(content), **options)
    except Exception as error:  # of whatever kind the parser raises
        raise FormatError(f"{path} is not a graph that NetworkX can read: {error}") from None


def _directory(path: Path, label: str | None) -> Task:
    """A file for each graph, and labels.csv, with the columns `file` and the label."""
    table = path / "labels.csv"
    graphs, labels = [], []
    seen: dict[str, int] = {}
    for line, row in rows_of(table):
        name = cell(row, "file", table)
        if name in seen:
            raise FormatError(f"{table}, line {line}: {name} was in line {seen[name]}")
        seen[name] = line
        labels.append(cell(row, label or "label", table))
        file = path / name
        if file.suffix in NETWORKX:
            graph = _networkx_file(file)
            _check_features(str(file), graph)
            _check_weights(str(file), graph)
            graphs.append(from_networkx(graph).replace(edge_features=None))
        else:
            names, ends, weights = edges_of(file)
            graphs.append(Graph(len(names), ends, edge_weight=weights))
    numbers, classes = _numbered(labels)
    return Task(path.name, graphs, numbers, classes)


def _tables(edges: Path, nodes: Path, label: str) -> Task:
    names, labels, features = nodes_of(nodes, label)
    _, ends, weights = edges_of(edges, names)
    numbers, classes = _numbered(labels)
    graph = Graph(len(names), ends, features or None, edge_weight=weights)
    return Task(edges.name, [graph], numbers, classes, [str(x) for x in names.labels])
