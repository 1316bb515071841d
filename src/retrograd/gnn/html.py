"""A graph as the output of a notebook's cell: what it carries, and where its edges are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd import notebook, pytree

CELLS = 128  # rows of the picture of a graph's edges
COUNTED = 1 << 22  # edges of a graph that has a picture


def graph_html(kind: str, sizes: dict[str, Any], fields: dict[str, Any], edges: Any) -> str:
    """The output that shows a graph; `sizes` are numbers of what it consists of, `edges` is an
    array, or None where they are traced."""
    facts = [f"{notebook.text(n)} {what}" for what, n in sizes.items()]
    rows = [row for name, held in fields.items() for row in _rows(name, held)]
    table = notebook.table(("", "type"), rows) if rows else ""
    return notebook.output(notebook.headline(kind, *facts), table, _picture(sizes["nodes"], edges))


def _rows(name: str, held: Any) -> Iterator[tuple[str, str]]:
    for path, x in zip(pytree.paths(held), pytree.flatten(held)[0], strict=True):
        yield notebook.text(name + path), notebook.described(x.shape, x.dtype)


def _picture(nodes: Any, edges: Any) -> str:
    """How many edges lead from each node to each; of many nodes, from so many to so many."""
    if edges is None or not 0 < edges.shape[1] <= COUNTED or nodes < 2:
        return ""
    n = min(int(nodes), CELLS)
    source, target = edges.astype(np.int64) * n // int(nodes)
    counts = np.bincount(source * n + target, minlength=n * n).reshape(n, n)
    found = notebook.picture(counts)
    size = "" if n == nodes else f", {CELLS} rows and columns for all nodes"
    note = f'<div class="soft">edges from (rows) and to (columns) each node{size}</div>'
    return "" if found is None else found.img() + note
