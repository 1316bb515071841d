"""Lists of edges and tables of nodes, as text: what they say, and in which lines they are wrong."""

from __future__ import annotations

import ast
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.data import parse_documents
from retrograd.errors import FormatError
from retrograd.files import read_bytes
from retrograd.gnn import Names
from retrograd.train.graph.weights import LARGEST, check_weight

Array = np.ndarray[Any, Any]
Row = tuple[int, dict[str, str]]  # the number of a line, and its cells by column
HEADERS = ("source", "from", "src", "node1")


# -- lists of edges ------------------------------------------------------------------------------
def edges_of(path: Path, names: Names | None = None) -> tuple[Names, Array, Array | None]:
    """Names of nodes, edges and weights; undirected: every edge and its way back.

    An edge may be listed in both directions with the same weight, which says the same twice.
    `FormatError`, with the line, for an edge that is listed twice otherwise, to a node that `names`
    do not have, or with a weight that is no number from 0 on.
    """
    known = names if names is not None else Names()
    listed: dict[tuple[int, int], tuple[int, float]] = {}  # the line of an edge, and its weight
    for line, cells in _cells(path):
        if len(cells) not in (2, 3):
            raise FormatError(f"{path}, line {line}: an edge is two nodes and perhaps a weight")
        for name in cells[:2]:
            if names is not None and name not in known:
                raise FormatError(f"{path}, line {line}: there is no node {name!r}")
        u, v = known.add(cells[0]), known.add(cells[1])
        weight = check_weight(cells[2], path, line) if len(cells) == 3 else 1.0
        for way in ((u, v), (v, u)):
            if way not in listed:
                continue
            before, other = listed[way]
            if way == (u, v) or other != weight:
                raise FormatError(
                    f"{path}, line {line}: the edge between {cells[0]!r} and {cells[1]!r} was in "
                    f"line {before}" + (f", with the weight {other}" if other != weight else "")
                )
        listed[u, v] = (line, weight)
    pairs: list[tuple[int, int]] = []
    weights: list[float] = []
    for (u, v), (line, weight) in listed.items():
        if (v, u) in listed and listed[v, u][0] < line:
            continue
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
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if path.suffix == ".csv":
            try:
                cells = [c.strip() for c in next(csv.reader([line]))]
            except csv.Error as error:
                raise FormatError(f"{path}, line {number}: {error}") from None
        else:
            cells = _words(line, path, number)
        if not found and cells and cells[0].lower() in HEADERS:
            continue
        found.append((number, cells))
    return found


def _words(line: str, path: Path, number: int) -> list[str]:
    """The cells of a line with blanks between them; NetworkX ends lines by a dict of attributes."""
    ends, brace, attributes = line.partition("{")
    cells = ends.split()
    if not brace:
        return cells
    try:
        said = ast.literal_eval(brace + attributes.strip())
        weight = [str(said["weight"])] if "weight" in said else []
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        said = None
    if not isinstance(said, dict):
        raise FormatError(f"{path}, line {number}: attributes are {brace + attributes!r:.80}")
    return [*cells, *weight]


# -- tables --------------------------------------------------------------------------------------
def rows_of(path: Path) -> list[Row]:
    """The rows of a CSV file with a header, with the numbers of their lines."""
    text = read_bytes(path, "table")
    parse_documents(text, str(path))
    reader = csv.DictReader(io.StringIO(text.decode("utf-8-sig")))
    try:
        columns = [c.strip() for c in reader.fieldnames or ()]
    except csv.Error as error:
        raise FormatError(f"{path}, line 1: {error}") from None
    for column, count in Counter(columns).items():
        if count > 1:
            raise FormatError(f"{path}, line 1: two columns {column!r}")
    found: list[Row] = []
    for row in _readable(reader, path):
        if None in row or None in row.values():
            raise FormatError(f"{path}, line {reader.line_num}: another number of cells than above")
        found.append((reader.line_num, {k.strip(): v.strip() for k, v in row.items()}))
    return found


def _readable(reader: Any, path: Path) -> Iterator[Any]:
    """The rows of a reader; what it refuses is an error with the line."""
    try:
        yield from reader
    except csv.Error as error:
        raise FormatError(f"{path}, line {reader.line_num}: {error}") from None


def cell(row: dict[str, str], column: str, path: Path) -> str:
    """What stands in a column."""
    if column not in row:
        raise FormatError(f"{path} has no column {column!r}; it has {', '.join(row)}")
    return row[column]


def nodes_of(path: Path, label: str) -> tuple[Names, list[str | None], dict[str, Array]]:
    """Names, labels and features of the nodes in a table; None for no label."""
    names, labels = Names(), []
    lines: dict[str, int] = {}
    rows = rows_of(path)
    for line, row in rows:
        name = cell(row, "node", path)
        if name in names:
            raise FormatError(
                f"{path}, line {line}: node {name!r} is listed twice, first in line {lines[name]}"
            )
        lines[name] = line
        names.add(name)
        labels.append(cell(row, label, path) or None)
    columns = [c for c in (rows[0][1] if rows else ()) if c not in ("node", label)]
    return names, labels, {c: _feature(rows, c, path) for c in columns}


def _feature(rows: Sequence[Row], column: str, path: Path) -> Array:
    found = np.zeros(len(rows), np.float32)
    for k, (line, row) in enumerate(rows):
        try:
            number = float(row[column])
        except ValueError:
            number = np.nan
        if not abs(number) <= LARGEST:
            raise FormatError(
                f"{path}, line {line}: {column!r} is {row[column]!r:.80}, which is no number up to "
                f"{LARGEST:.4g}"
            )
        found[k] = number
    return found
