"""Graphs in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrograd.ir import Graph
from retrograd.viz.graph_document import Document, Record, document, place_of
from retrograd.viz.roles import ROLES

_ROLES = {role.name: role for role in ROLES}


def to_dot(
    graph: Graph, *, forward: Graph | None = None, outputs: Sequence[str] | None = None
) -> str:
    """The graph as Graphviz text: a cluster for each scope, an edge for each use, labelled with the
    shape. Gradient nodes differ in colour, forward nodes that the graph need not compute are
    dashed. `forward` and `outputs` as in `document`."""
    doc = document(graph, forward, outputs)
    lines = [
        "digraph {",
        f"  label={_quoted(doc['name'] or 'graph')}; labelloc=t; fontname=Helvetica;",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica, fontsize=11];',
        "  edge [color=gray45, fontname=Helvetica, fontsize=9, fontcolor=gray45, arrowsize=0.7];",
    ]
    lines += _clustered(doc)
    for edge in doc["edges"]:
        shape = f" [label={_quoted(edge['shape'])}]" if edge["shape"] else ""
        lines.append(f"  n{edge['from']} -> n{edge['to']}{shape};")
    return "\n".join([*lines, "}"]) + "\n"


def _clustered(doc: Document) -> Iterator[str]:
    """The statements of the nodes, inside those of their scopes. Iterative: scopes nest deeply."""
    records, tree = doc["nodes"], doc["scopes"]
    children: dict[int | None, list[int]] = {}
    for i, scope in enumerate(tree):
        children.setdefault(scope["parent"], []).append(i)
    for r in records:
        if not r["scope"]:
            yield "  " + _node(r, doc)
    todo = [(i, False) for i in reversed(children.get(None, []))]
    depth = 1
    while todo:
        i, done = todo.pop()
        if done:
            depth -= 1
            yield "  " * depth + "}"
            continue
        indent = "  " * (depth + 1)
        yield f"{'  ' * depth}subgraph cluster_{i} {{"
        yield f"{indent}label={_quoted(tree[i]['name'])}; style=rounded; color=gray70;"
        for n in tree[i]["nodes"]:
            yield indent + _node(records[n], doc)
        depth += 1
        todo.append((i, True))
        todo += [(child, False) for child in reversed(children.get(i, []))]


def _node(r: Record, doc: Document) -> str:
    _, fill, line = _ROLES[r["role"]]
    title = f"{r['name']} = {r['op']}" if r["name"] and r["op"] != "input" else r["name"] or r["op"]
    results = ", ".join(doc["output_names"][k] for k in r["outputs"] if doc["output_names"][k])
    label = "\n".join(filter(None, [title, r["attrs"], r["type"], results]))
    style = "" if r["computed"] else ', style="rounded,dashed"'
    wide = ", penwidth=2" if r["outputs"] else ""
    place = place_of(r, doc) or {"file": "", "line": 0, "text": ""}
    tip = f"{place['file']}:{place['line']} {place['text']}" if place["line"] else r["op"]
    return (
        f"n{r['id']} [label={_quoted(label)}, fillcolor={_quoted(fill)}, color={_quoted(line)}"
        f"{style}{wide}, tooltip={_quoted(tip)}];"
    )


def _quoted(text: str) -> str:
    """A string of the DOT language. Graphviz reads backslashes in labels once more than in names,
    and entities such as `&lt;` always."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return '"' + "".join(c if c.isprintable() else _ESCAPES.get(c, "�") for c in text) + '"'


_ESCAPES = {"\n": "\\n", "\t": " "}
