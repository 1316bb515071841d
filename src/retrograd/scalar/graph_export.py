"""The operations that a Value was computed by: as a `Graph`, as Graphviz text, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd import viz
from retrograd.eager.lazy_tensor import leaf
from retrograd.errors import TraceError
from retrograd.graph.graph import Graph
from retrograd.ir import Node, TensorType, float64, full
from retrograd.scalar.machine import CONSTANT, CUSTOM, FOREIGN, LEAF, OPCODES

_BY_CODE = {o.code: o for o in OPCODES}
LARGEST = 2000  # values of a picture
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


def to_graph(tape: Any, row: int, described: bool = False) -> Graph:
    """The ancestors as a graph of scalars, whose inputs are the leaves with the numbers they had.
    Nodes are named by labels; `described`, also by number and gradient."""
    nodes: dict[Place, Node] = {}
    inputs: dict[tuple[int, float], Node] = {}
    for place in ancestors(tape, row):
        p, r = place
        code = p.row(r)[0]
        name = _described(p, r) if described else _label(p, r)
        if code == LEAF:
            key = id(p.leaf(r)), p.value(r)
            if key not in inputs:
                inputs[key] = leaf(np.asarray(p.value(r)), name)
            nodes[place] = inputs[key]
        elif code == CONSTANT:
            nodes[place] = full(p.value(r), TensorType(float64, ()))
        elif code == CUSTOM:
            raise TraceError(
                f"{p.customs[r].op or 'an operation of your own'} is computed by Python, so its "
                "values have no graph; to_dot() draws them"
            )
        else:
            node = _BY_CODE[code].prim(*[nodes[x] for x in operands(p, r)])
            nodes[place] = node.renamed(name) if name else node
    return Graph(list(inputs.values()), [nodes[tape, row]])


def _label(tape: Any, row: int) -> str:
    if tape.row(row)[0] == LEAF:
        return str(tape.leaf(row).label)
    return str(tape.labels.get(row, ""))


def _described(tape: Any, row: int) -> str:
    label = _label(tape, row)
    grad = tape.leaf(row).grad if tape.row(row)[0] == LEAF else tape.grad(row)
    return f"{label + ' ' if label else ''}data {tape.value(row):.4g} grad {grad:.4g}"


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
    """A standalone picture."""
    return viz.to_svg(to_graph(tape, row, described=True), LARGEST)


__all__ = ["to_dot", "to_graph", "to_svg"]
