"""Graphs inside of ops: functions of rows, kept as text among an op's attributes.

A body is a graph of one output that works on any number of rows at a time: the first axis of its
first inputs and of its output has the size `ROWS`. As text it is a plain value that can be
compared, printed and parsed; the graph of a text is remembered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from retrograd.ir import Dim, Graph, Node, TensorType, full, provenance, reachable
from retrograd.ir.dim import Quotient
from retrograd.ops.leaf import input_node

ROWS = Dim("_rows")
Size = int | Dim


@lru_cache(maxsize=1024)
def body_of(text: str) -> Graph:
    """The graph of a text."""
    return Graph.parse(text)


def rows_of(type: TensorType) -> TensorType:
    """The type of some rows of an array."""
    return type.with_shape((ROWS, *type.shape[1:]))


def enclose(
    first: Sequence[TensorType],
    groups: Sequence[Sequence[TensorType]],
    f: Callable[..., Node | None],
    result: TensorType,
) -> tuple[str, list[list[int]]]:
    """The text of the body that `f` makes of inputs of these types; None means zeros of the type
    `result`. Of the groups, only inputs that are used are kept: their positions are returned."""
    inputs = [input_node(t) for t in first]
    given = [[input_node(t) for t in group] for group in groups]
    y = f(*inputs, *[x for group in given for x in group])
    y = full(0, result) if y is None else y
    used = set(reachable([y]))
    kept = [[i for i, x in enumerate(group) if x in used] for group in given]
    chosen = [group[i] for group, own in zip(given, kept, strict=True) for i in own]
    return str(Graph([*inputs, *chosen], [y])), kept


def apply(body: Graph, inputs: Sequence[Node], rows: Size = ROWS) -> Node:
    """The output of a body for these inputs, which have so many rows."""
    new = dict(zip(body.inputs, inputs, strict=True))
    sizes = {"_rows": rows}
    for node in body.body:
        given = [new[x] for x in node.inputs]
        new[node] = _rebound(node, sizes)(*given)
    return new[body.outputs[0]]


def bound(text: str, sizes: Mapping[str, Size]) -> str:
    """The text of a body with values in place of the names of sizes."""
    body = body_of(text)
    if not set(body.dim_names) & sizes.keys():
        return text
    inputs = [
        input_node(x.type.with_shape(tuple(substituted(d, sizes) for d in x.shape)))
        for x in body.inputs
    ]
    new = dict(zip(body.inputs, inputs, strict=True))
    for node in body.body:
        new[node] = _rebound(node, sizes)(*[new[x] for x in node.inputs])
    return str(Graph(inputs, [new[body.outputs[0]]]))


def _rebound(node: Node, sizes: Mapping[str, Size]) -> Callable[..., Node]:
    """What makes the node again where sizes have other values."""
    prim: Any = node.prim
    changed: dict[str, Any] = {}
    for key, value in prim.attrs.items():
        if isinstance(value, Dim):
            changed[key] = substituted(value, sizes)
        elif isinstance(value, tuple) and any(isinstance(d, Dim) for d in value):
            changed[key] = tuple(substituted(d, sizes) for d in value)
    made = dataclasses.replace(prim, **changed) if changed else prim

    def make(*inputs: Node) -> Node:
        here = provenance()
        type = made.infer(*[x.type for x in inputs])
        return Node(made, inputs, type, node.scope or here.scope, here.source, here.origin)

    return make


def substituted(size: Any, sizes: Mapping[str, Size]) -> Any:
    """A size in which names have these values; others stay."""
    if not isinstance(size, Dim) or not size.names & sizes.keys():
        return size
    total: Size = 0
    for monomial, factor in size.terms:
        term: Size = factor
        for atom, power in monomial:
            for _ in range(power):
                term = term * _atom(atom, sizes)
        total = total + term
    return total


def _atom(atom: str | Quotient, sizes: Mapping[str, Size]) -> Size:
    if isinstance(atom, str):
        return sizes.get(atom, Dim(atom))
    return substituted(atom.numerator, sizes) // substituted(atom.denominator, sizes)  # type: ignore[no-any-return]


def run(body: Graph, arrays: Sequence[Any], rows: int) -> Any:
    """The meaning of a body, in NumPy."""
    values = dict(zip(body.inputs, arrays, strict=True))
    for node in body.body:
        given = [values[x] for x in node.inputs]
        values[node] = node.prim.bind({"_rows": rows}).reference(*given)
    return values[body.outputs[0]]
