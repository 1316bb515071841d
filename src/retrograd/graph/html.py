"""A graph as the output of a notebook's cell: a picture of a small one, tables of any other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from retrograd import ir, notebook, viz
from retrograd.graph.explorer import Backward
from retrograd.ir import Node
from retrograd.ir.calls import calls_of

DRAWN = 400  # nodes of a graph that is drawn, its gradient included: calls and layers are one box
LISTED = 120  # nodes of a table
SCOPES = 40  # tables
LONGEST = 60_000  # characters of a picture, of 90 boxes about


def graph_html(graph: ir.Graph, what: Backward) -> str:
    """The output that shows a graph; `what` is the graph with its gradient."""
    picture = graph_svg(what)
    facts = [
        f"{len(graph.nodes):,} nodes",
        f"{len(graph.inputs)} inputs",
        f"{len(graph.outputs)} outputs",
    ]
    return notebook.output(
        notebook.headline(f"Graph {graph.name}".rstrip(), *facts),
        f"<div>{notebook.text(what.note)}</div>" if what.note else "",
        "" if picture is None else notebook.details("picture", picture, is_open=True, top=True),
        notebook.details("inputs and outputs", _ends(graph), is_open=picture is None, top=True),
        notebook.details("nodes", _nodes(graph), top=True),
    )


def graph_svg(what: Backward) -> str | None:
    """The drawing of a small graph, its gradient beside it; None of a larger one."""
    if len(what.graph.nodes) > DRAWN:
        return None
    drawn = viz.to_svg(what.graph, forward=what.forward, outputs=what.outputs)
    return drawn if len(drawn) <= LONGEST else None


def _ends(graph: ir.Graph) -> str:
    number = {n: i for i, n in enumerate(graph.nodes)}
    inputs = [("input", x) for x in graph.inputs[:LISTED]]
    outputs = [("output", y) for y in graph.outputs[:LISTED]]
    rows = [
        (kind, notebook.text(x.name or f"%{number[x]}"), _type(x))
        for kind, x in (*inputs, *outputs)
    ]
    left = len(graph.inputs) + len(graph.outputs) - len(rows)
    return notebook.table(("", "name", "type"), rows) + _left(left, "inputs and outputs")


def _nodes(graph: ir.Graph) -> str:
    """The nodes by the outer level of their scopes, calls included, where they have any."""
    number = {n: i for i, n in enumerate(graph.nodes)}
    groups: dict[str, list[Node]] = {}
    called = calls_of(graph.nodes)
    for node in graph.nodes:
        scope = called[node].path if node in called else node.scope
        groups.setdefault(_outer(scope), []).append(node)
    if len(groups) == 1:
        return _listing(graph.nodes, number, LISTED)
    each = max(8, LISTED // len(groups))
    shown = list(groups.items())[:SCOPES]
    parts = [
        notebook.details(
            f"{notebook.text(scope or 'outside of scopes')} {_counts(nodes)}",
            _listing(nodes, number, each),
        )
        for scope, nodes in shown
    ]
    return "".join(parts) + _left(len(groups) - len(shown), "scopes")


def _outer(scope: str) -> str:
    """The first two levels of a scope: `GPT.blocks[0]`, `GPT.softmax()`."""
    return ".".join(re.split(r"\.(?![^(]*\))", scope)[:2])


def _counts(nodes: Sequence[Node]) -> str:
    ops = Counter(n.op for n in nodes).most_common(4)
    most = ", ".join(f"{k} {notebook.text(op)}" for op, k in ops)
    return f'<span class="soft">{len(nodes):,} nodes: {most}</span>'


def _listing(nodes: Sequence[Node], number: dict[Node, int], most: int) -> str:
    rows = _rows(nodes[:most], number)
    head = ("", "op", "operands", "type", "name", "source")
    return notebook.table(head, rows) + _left(len(nodes) - most, "nodes; print(graph) shows all")


def _rows(nodes: Sequence[Node], number: dict[Node, int]) -> Iterator[tuple[str, ...]]:
    for n in nodes:
        operands = ", ".join(f"%{number[x]}" for x in n.inputs[:6] if x in number)
        operands += ", …" if len(n.inputs) > 6 else ""
        code = notebook.text(n.source.text, 60) if n.source else ""
        name = notebook.text(n.name, 40)
        yield f"%{number[n]}", notebook.text(n.op), operands, _type(n), name, f"<code>{code}</code>"


def _type(node: Node) -> str:
    return f"<code>{notebook.text(node.type, 60)}</code>"


def _left(count: int, what: str) -> str:
    return f'<div class="soft">… and {count:,} more {what}</div>' if count > 0 else ""
