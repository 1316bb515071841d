"""Graphs that operations hold, such as the body of a loop, as records below their owners.

An attribute that is a `Graph`, or a tuple of them, becomes a scope that a reader can open: the
nodes of the graph stand in the scope `SCOPE.op#ID`, or `SCOPE.op#ID.ATTRIBUTE` where there are
several, and refer to their owner as `body`. The owner itself moves into that scope, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograd.ir import Graph, Node
from retrograd.viz.missing import relatives

Record = dict[str, Any]
DEEPEST = 8  # bodies in bodies that are shown


def graphs_of(node: Node) -> list[tuple[str, Graph]]:
    """The graphs among the attributes of a node, with a name for each."""
    return list(_graphs(node))


def _graphs(node: Node) -> Iterator[tuple[str, Graph]]:
    for key, value in node.attrs.items():
        if isinstance(value, Graph):
            yield key, value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Graph):
                    yield f"{key}[{i}]", item


def body_numbers(nodes: Sequence[Node], records: Sequence[Record]) -> dict[Node, int]:
    """The ids of the nodes of bodies, of those whose owners are given with their records first."""
    inside: dict[int, list[int]] = {}
    for r in records:
        if r["body"] is not None:
            inside.setdefault(r["body"], []).append(r["id"])
    found: dict[Node, int] = {}
    todo = [(node, i) for i, node in enumerate(nodes)]
    for node, i in todo:  # which grows
        if i not in inside:
            continue
        graphs = [graph for _, graph in graphs_of(node)]
        members = [n for graph in graphs for n in (*graph.nodes, *relatives(graph).missing)]
        own = list(zip(members, inside[i], strict=True))
        found.update(own)
        todo += own
    return found


def with_bodies(
    nodes: Sequence[Node],
    records: list[Record],
    tables: Any,
    make: Callable[..., list[Record]],
) -> None:
    """Append the records of bodies, of bodies in them, and so on. `make` makes the records of a
    graph, numbered from 0."""
    todo = [(node, record, 0) for node, record in zip(nodes, records, strict=True)]
    for node, record, depth in todo:
        found = graphs_of(node) if record["op"] != "input" and depth < DEEPEST else []
        if not found:
            continue
        home = f"{record['scope']}.{record['op']}#{record['id']}".removeprefix(".")
        record["scope"] = home
        for name, graph in found:
            inside = home if len(found) == 1 else f"{home}.{name}"
            kin = relatives(graph)
            members = [*graph.nodes, *kin.missing]
            number = {n: i for i, n in enumerate(members)}
            made = make(graph, members, number, kin, tables)
            _place(made, len(records), inside, record)
            records += made
            todo += [(n, r, depth + 1) for n, r in zip(members, made, strict=True)]


def _place(made: Sequence[Record], start: int, inside: str, owner: Record) -> None:
    """Number records from `start`, and put them into a scope."""
    for r in made:
        r["id"] += start
        r["inputs"] = [x + start for x in r["inputs"]]
        r["origin"] = None if r["origin"] is None else r["origin"] + start
        r["scope"] = f"{inside}.{r['scope']}" if r["scope"] else inside
        r["body"] = owner["id"]
        r["outputs"] = []
