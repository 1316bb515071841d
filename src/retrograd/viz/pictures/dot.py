"""Graphs in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrograd.ir import Graph
from retrograd.viz.graph_document import Document, document
from retrograd.viz.pictures.box import DrawnBox
from retrograd.viz.pictures.closed import closed_boxes
from retrograd.viz.pictures.names import NodeNames
from retrograd.viz.pictures.node_box import node_box
from retrograd.viz.roles import ROLES
from retrograd.viz.scopes import scopes

_ROLES = {role.name: role for role in ROLES}


def to_dot(
    graph: Graph,
    *,
    closed: bool = True,
    words: bool = True,
    forward: Graph | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """The graph as Graphviz text: a cluster for each scope, an edge for each use, labelled with the
    shape. Gradient nodes differ in colour, forward nodes that the graph need not compute are
    dashed. `closed` and `words` as in `to_svg`: scopes that the page closes at first are a node
    each. `forward` and `outputs` as in `document`."""
    doc = document(graph, forward, outputs)
    boxes = closed_boxes(doc, words) if closed else _every_node(doc, words)
    lines = [
        "digraph {",
        f"  label={_quoted(doc['name'] or 'graph')}; labelloc=t; fontname=Helvetica;",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica, fontsize=11];',
        "  edge [color=gray45, fontname=Helvetica, fontsize=9, fontcolor=gray45, arrowsize=0.7];",
    ]
    lines += _clustered(boxes)
    for box in boxes:
        for x, text in box.inputs:
            shape = f" [label={_quoted(text)}]" if text else ""
            lines.append(f"  {boxes[x].key} -> {box.key}{shape};")
    return "\n".join([*lines, "}"]) + "\n"


def _every_node(doc: Document, words: bool) -> list[DrawnBox]:
    """A box for each node, constants too."""
    names = NodeNames(doc, words, frozenset())
    boxes = [node_box(r, doc, names) for r in doc["nodes"]]
    for edge in doc["edges"]:
        boxes[edge["to"]].inputs.append((edge["from"], edge["shape"]))
    return boxes


def _clustered(boxes: Sequence[DrawnBox]) -> Iterator[str]:
    """The statements of the nodes, inside those of their scopes. Iterative: scopes nest deeply."""
    tree = scopes([box.scope for box in boxes])
    children: dict[int | None, list[int]] = {}
    for i, scope in enumerate(tree):
        children.setdefault(scope["parent"], []).append(i)
    for box in boxes:
        if not box.scope:
            yield "  " + _node(box)
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
            yield indent + _node(boxes[n])
        depth += 1
        todo.append((i, True))
        todo += [(child, False) for child in reversed(children.get(i, []))]


def _node(box: DrawnBox) -> str:
    _, fill, line = _ROLES[box.role]
    label = "\n".join([box.title, *box.formula, *box.lines, *box.results])
    style = "" if box.computed else ', style="rounded,dashed"'
    wide = ", penwidth=2" if box.results else ""
    return (
        f"{box.key} [label={_quoted(label)}, fillcolor={_quoted(fill)}, color={_quoted(line)}"
        f"{style}{wide}, tooltip={_quoted(box.tooltip)}];"
    )


def _quoted(text: str) -> str:
    """A string of the DOT language. Graphviz reads backslashes in labels once more than in names,
    and entities such as `&lt;` always."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return '"' + "".join(c if c.isprintable() else _ESCAPES.get(c, "�") for c in text) + '"'


_ESCAPES = {"\n": "\\n", "\t": " "}
