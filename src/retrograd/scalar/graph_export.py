"""The operations that a Value was computed by: as a `Graph`, as Graphviz text, as SVG, and in a
notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd import notebook, viz
from retrograd.eager.lazy_tensor import leaf
from retrograd.errors import TraceError
from retrograd.graph.graph import Graph
from retrograd.ir import Node, TensorType, float64, full
from retrograd.scalar.machine import CONSTANT, CUSTOM, FOREIGN, LEAF, OPCODES

_BY_CODE = {o.code: o for o in OPCODES}
LARGEST = 2000  # values of a picture
DRAWN = 60  # values of a picture that a notebook shows by itself
Place = tuple[Any, int]


def ancestors(tape: Any, row: int) -> list[Place]:
    """The rows a row was computed from, and itself, operands first."""
    found = {(tape, row)}
    todo = [(tape, row)]
    while todo:
        for place in operands(*todo.pop()):
            if place not in found:
                found.add(place)
                todo.append(place)
    return sorted(found, key=lambda place: (place[0].stamp, place[1]))


def operands(tape: Any, row: int) -> Iterator[Place]:
    """The rows of the operands, where they were computed."""
    code, a, b = tape.row(row)
    rows: tuple[int, ...] = ()
    if code == CUSTOM:
        rows = tape.customs[row].rows
    elif code in _BY_CODE:
        rows = (a, b)[: _BY_CODE[code].prim.arity]
    for r in rows:
        yield tape.foreign[r] if tape.row(r)[0] == FOREIGN else (tape, r)


def to_graph(tape: Any, row: int) -> Graph:
    """The ancestors as a graph of scalars, whose inputs are the leaves with the numbers they had.
    Nodes are named by labels."""
    return _graph_of(tape, row)[0]


def _graph_of(tape: Any, row: int) -> tuple[Graph, dict[Place, Node]]:
    """The graph, and which node each row is."""
    nodes: dict[Place, Node] = {}
    inputs: dict[tuple[int, float], Node] = {}
    for place in ancestors(tape, row):
        p, r = place
        code = p.row(r)[0]
        name = _label(p, r)
        if code == LEAF:
            key = id(p.leaf(r)), p.value(r)
            if key not in inputs:
                inputs[key] = leaf(np.asarray(p.value(r)), name)
            nodes[place] = inputs[key]
        elif code == CONSTANT:
            continue  # made for what uses it first: which row it has depends on what was freed
        elif code == CUSTOM:
            raise TraceError(
                f"{p.customs[r].op or 'an operation of your own'} is computed by Python, so its "
                "values have no graph; to_dot() draws them"
            )
        else:
            for x in operands(p, r):
                if x not in nodes:
                    nodes[x] = full(x[0].value(x[1]), TensorType(float64, ()))
            node = _BY_CODE[code].prim(*[nodes[x] for x in operands(p, r)])
            nodes[place] = node.renamed(name) if name else node
    return Graph(list(inputs.values()), [nodes[tape, row]]), nodes


def _label(tape: Any, row: int) -> str:
    if tape.row(row)[0] == LEAF:
        return str(tape.leaf(row).label)
    return str(tape.labels.get(row, ""))


def _described(tape: Any, row: int) -> str:
    grad = tape.leaf(row).grad if tape.row(row)[0] == LEAF else tape.grad(row)
    return f"data {tape.value(row):.4g} grad {grad:.4g}"


def to_dot(tape: Any, row: int) -> str:
    """Graphviz text: a box for each value with label, number and gradient, an ellipse for each
    operation, an arrow for each operand."""
    places = ancestors(tape, row)
    if len(places) > LARGEST:
        raise TraceError(f"a picture of {len(places)} values shows nothing; draw a part of it")
    number = {place: i for i, place in enumerate(places)}
    lines = ["digraph value {", "  rankdir=LR;", '  node [fontname="Helvetica"];']
    for place, i in number.items():
        p, r = place
        code = p.row(r)[0]
        grad = p.leaf(r).grad if code == LEAF else p.grad(r)
        label = _escaped(_label(p, r))
        text = f"{{ {label + ' | ' if label else ''}data {p.value(r):.4f} | grad {grad:.4f} }}"
        lines.append(f'  v{i} [shape=record, label="{text}"];')
        if code in (LEAF, CONSTANT):
            continue
        symbol = p.customs[r].op if code == CUSTOM else _BY_CODE[code].symbol
        lines.append(f'  o{i} [label="{_escaped(symbol)}"];')
        lines.append(f"  o{i} -> v{i};")
        lines += [f"  v{number[x]} -> o{i};" for x in operands(p, r)]
    return "\n".join([*lines, "}", ""])


def _escaped(text: str) -> str:
    for c in '\\"{}|<>':
        text = text.replace(c, "\\" + c)
    return text.replace("\n", " ")


def to_svg(tape: Any, row: int) -> str:
    """A standalone picture, with number and gradient in each box."""
    graph, nodes = _graph_of(tape, row)
    told = {node: _described(*place) for place, node in nodes.items()}
    doc = viz.document(graph)
    for node, record in zip(graph.nodes, doc["nodes"], strict=True):
        record["type"] = told.get(node, record["type"])
    return viz.render(doc, LARGEST, closed=False, words=False)


# -- in a notebook -------------------------------------------------------------------------------
def value_html(value: Any) -> str:
    """The number, its gradient, and what it was computed from."""
    kind = type(value).__name__
    if is_traced(value):
        return notebook.output(notebook.headline(kind, "traced by jit", notebook.text(value.label)))
    head = ("label", "data", "grad", "operation", "operands")
    prev = value._prev[:8]
    given = ", ".join(notebook.text(x.label or f"{x.data:.4g}", 20) for x in prev)
    row = [value.label, f"{value.data:.6g}", f"{value.grad:.6g}", value._op or "leaf"]
    picture, note = _picture(value)
    return notebook.output(
        notebook.headline(kind, note),
        notebook.table(
            head, [[*[notebook.text(x) for x in row], given + (", …" if len(prev) == 8 else "")]]
        ),
        picture,
    )


def value_svg(value: Any) -> str | None:
    """The history with numbers and gradients; None of one that is long, or made by Python."""
    return None if is_traced(value) else _picture(value)[0] or None


def is_traced(value: Any) -> bool:
    """Whether there is no number yet."""
    return not value._is_leaf and value._tape.trace is not None


def _picture(value: Any) -> tuple[str, str]:
    """The drawing, or nothing and a note that says why."""
    if value._is_leaf:
        return "", ""
    place = value._position()
    if _is_long(*place):
        return "", f"computed from more than {DRAWN} values, which are not drawn"
    try:
        return to_svg(*place), ""
    except TraceError as error:
        return "", notebook.text(error, 200)


def _is_long(tape: Any, row: int) -> bool:
    """Whether a value has more ancestors than are drawn, without a look at all of them."""
    found = {(tape, row)}
    todo = [(tape, row)]
    while todo and len(found) <= DRAWN:
        new = [place for place in operands(*todo.pop()) if place not in found]
        found.update(new)
        todo += new
    return len(found) > DRAWN


__all__ = ["to_dot", "to_graph", "to_svg", "value_html", "value_svg"]
