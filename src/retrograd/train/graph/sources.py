"""Where the recipe's graphs come from: files, and data that comes with NetworkX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.data import parse_documents
from retrograd.errors import FormatError, OptionError
from retrograd.files import read_bytes
from retrograd.gnn import Graph, Names, from_networkx
from retrograd.gnn.exchange import networkx_module
from retrograd.train.graph.graphml import check_graphml

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
    return _of_networkx("karate", graph, "club")


def davis() -> Task:
    """Davis' Southern women: 18 women and 14 events that they went to. Which is which?"""
    graph = networkx_module().davis_southern_women_graph()
    for _, data in graph.nodes(data=True):
        data["kind"] = "event" if data.pop("bipartite") else "woman"
    return _of_networkx("davis", graph, "kind", weighted=False)


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
    return _of_networkx("miserables", graph, "community")


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


def _of_networkx(name: str, graph: Any, label: str, weighted: bool = True) -> Task:
    given = [data.get(label) for _, data in graph.nodes(data=True)]
    if all(x is None for x in given):
        known = sorted({k for _, data in graph.nodes(data=True) for k in data})
        raise FormatError(
            f"{name}: no node has an attribute {label!r}; they have {', '.join(known) or 'none'}"
        )
    found = from_networkx(graph, "weight" if weighted else None)
    features = dict(found.node_features or {})
    features.pop(label, None)
    found = found.replace(node_features=features or None, edge_features=None)
    labels, classes = _numbered([None if x is None else str(x) for x in given])
    return Task(name, [found], labels, classes, [str(x) for x in graph.nodes])


def _numbered(given: Sequence[str | None]) -> tuple[Array, list[str]]:
    classes = sorted({x for x in given if x is not None})
    return np.array([-1 if x is None else classes.index(x) for x in given]), classes


# -- files ---------------------------------------------------------------------------------------
def read_task(data: str, label: str | None, nodes: Path | None) -> Task:
    """The task in a file, a directory of files, or under one of the names in `BUILT_IN`."""
    if data in BUILT_IN:
        return BUILT_IN[data](label)
    path = Path(data)
    if path.is_dir():
        return _directory(path, label)
    if path.suffix in NETWORKX:
        return _of_networkx(path.name, _networkx_file(path), label or "label")
    if path.suffix not in EDGE_LISTS:
        known = ", ".join([*NETWORKX, *EDGE_LISTS])
        raise FormatError(f"{path}: a graph is a file ending in {known}, a directory, or one of "
                          f"{', '.join(BUILT_IN)}")  # fmt: skip
    if nodes is None:
        raise OptionError(f"{path} has edges only; give a table of nodes with labels by --nodes")
    return _tables(path, nodes, label or "label")


def _networkx_file(path: Path) -> Any:
    content = read_bytes(path, "graph")
    if path.suffix == ".graphml":
        check_graphml(path, content)
    try:
        return getattr(networkx_module(), NETWORKX[path.suffix])(io.BytesIO(content))
    except Exception as error:  # of whatever kind the parser raises
        raise FormatError(f"{path} is not a graph that NetworkX can read: {error}") from None


def _directory(path: Path, label: str | None) -> Task:
    """A file for each graph, and labels.csv, with the columns `file` and the label."""
    rows = _rows(path / "labels.csv")
    column = label or "label"
    graphs, labels = [], []
    seen: dict[str, int] = {}
    for line, row in rows:
        name = _cell(row, "file", path / "labels.csv", line)
        if name in seen:
            raise FormatError(
                f"{path / 'labels.csv'}, line {line}: {name} was in line {seen[name]}"
            )
        seen[name] = line
        labels.append(_cell(row, column, path / "labels.csv", line))
        file = path / name
        if file.suffix in NETWORKX:
            graphs.append(from_networkx(_networkx_file(file)).replace(edge_features=None))
        else:
            names, ends, weights = _edges(file, None)
            graphs.append(Graph(len(names), ends, edge_weight=weights))
    numbers, classes = _numbered(labels)
    return Task(path.name, graphs, numbers, classes)


def _tables(edges: Path, nodes: Path, label: str) -> Task:
    names, labels = Names(), []
    rows = _rows(nodes)
    for line, row in rows:
        name = _cell(row, "node", nodes, line)
        if name in names:
            raise FormatError(f"{nodes}, line {line}: node {name!r} is listed twice")
        names.add(name)
        labels.append(_cell(row, label, nodes, line) or None)
    columns = [c for c in (rows[0][1] if rows else ()) if c not in ("node", label)]
    features = {c: _feature(rows, c, nodes) for c in columns}
    _, ends, weights = _edges(edges, names)
    numbers, classes = _numbered(labels)
    graph = Graph(len(names), ends, features or None, edge_weight=weights)
    return Task(edges.name, [graph], numbers, classes, [str(x) for x in names.labels])


def _feature(rows: Sequence[tuple[int, dict[str, str]]], column: str, path: Path) -> Array:
    found = np.zeros(len(rows), np.float32)
    for k, (line, row) in enumerate(rows):
        try:
            found[k] = float(row[column])
        except ValueError:
            raise FormatError(
                f"{path}, line {line}: {column!r} is {row[column]!r}, which is no number"
            ) from None
    return found


def _edges(path: Path, names: Names | None) -> tuple[Names, Array, Array | None]:
    """Names of nodes, edges and weights; undirected: every edge and its way back."""
    known = names if names is not None else Names()
    pairs: list[tuple[int, int]] = []
    weights: list[float] = []
    for line, cells in _cells(path):
        if len(cells) not in (2, 3):
            raise FormatError(f"{path}, line {line}: an edge is two nodes and perhaps a weight")
        for name in cells[:2]:
            if names is not None and name not in known:
                raise FormatError(f"{path}, line {line}: there is no node {name!r}")
        u, v = known.add(cells[0]), known.add(cells[1])
        try:
            weight = float(cells[2]) if len(cells) == 3 else 1.0
        except ValueError:
            raise FormatError(f"{path}, line {line}: the weight is {cells[2]!r}") from None
        if not (weight >= 0 and np.isfinite(weight)):
            raise FormatError(f"{path}, line {line}: the weight is {weight}, not from 0 on")
        pairs += [(u, v)] if u == v else [(u, v), (v, u)]
        weights += [weight] * (1 if u == v else 2)
    ends = np.array(pairs, np.int64).reshape(-1, 2).T
    plain = all(w == 1 for w in weights)
    return known, ends, None if plain else np.array(weights, np.float32)


def _cells(path: Path) -> list[tuple[int, list[str]]]:
    """The cells of the lines of an edge list, with their numbers; without comments and header."""
    text = read_bytes(path, "graph")
    parse_documents(text, str(path))  # says what is wrong with text that is none
    lines = text.decode("utf-8-sig").splitlines()
    comma = path.suffix == ".csv"
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [c.strip() for c in (next(csv.reader([line])) if comma else line.split())]
        if not found and cells[0].lower() in ("source", "from", "src", "node1"):
            continue
        found.append((number, cells))
    return found


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with a header, with the numbers of their lines."""
    text = read_bytes(path, "table")
    parse_documents(text, str(path))
    reader = csv.DictReader(io.StringIO(text.decode("utf-8-sig")))
    found: list[tuple[int, dict[str, str]]] = []
    for row in reader:
        if None in row or None in row.values():
            raise FormatError(f"{path}, line {reader.line_num}: another number of cells than above")
        found.append((reader.line_num, {k.strip(): v.strip() for k, v in row.items()}))
    return found


def _cell(row: dict[str, str], column: str, path: Path, line: int) -> str:
    if column not in row:
        raise FormatError(f"{path} has no column {column!r}; it has {', '.join(row)}")
    return row[column]
