"""Graphs inside of ops that are functions of rows.

A body is a graph of one output that works on any number of rows at a time: the first axis of its
first inputs and of its output has the size `ROWS`, which nobody outside knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.ir import Dim, Graph, Node, Op, TensorType, Trait, full, provenance, reachable
from retrograd.ir.dim import Quotient
from retrograd.ops.leaf import Constant, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import permute

ROWS = Dim("_rows")
Size = int | Dim


def rows_of(type: TensorType) -> TensorType:
    """The type of some rows of an array."""
    return type.with_shape((ROWS, *type.shape[1:]))


class Enclosed(NamedTuple):
    """A body, and what it is to be given rows of and parameters."""

    body: Graph
    rows: list[Node]
    shared: list[Node]


def enclose(
    first: TensorType, rows: Sequence[Node], shared: Sequence[Node],
    f: Callable[..., Node | None], result: TensorType,
) -> Enclosed:  # fmt: skip
    """The body that `f` makes of rows of the type `first`, of these arrays' rows and of parameters,
    of which only those that are used are kept. None means zeros of the type `result`."""
    start = input_node(first)
    given = [input_node(rows_of(x.type)) for x in rows]
    common = [input_node(x.type) for x in shared]
    y = f(start, *given, *common)
    y = full(0, result) if y is None else y
    used = set(reachable([y]))
    kept = [[i for i, x in enumerate(group) if x in used] for group in (given, common)]
    inputs = [start, *[given[i] for i in kept[0]], *[common[i] for i in kept[1]]]
    return Enclosed(Graph(inputs, [y]), [rows[i] for i in kept[0]], [shared[i] for i in kept[1]])


def enclose_late(
    first: TensorType, rows: Sequence[Node], shared: Sequence[Node],
    f: Callable[..., Node | None], result: TensorType, count: Size,
) -> Enclosed:  # fmt: skip
    """The body that `f` makes of rows of the type `first`, of these arrays' rows, of which there
    are `count`, and of parameters. None means zeros of the type `result`.

    Only what depends on the first rows is part of the body. Anything else is known before, and is
    computed for all rows at once.
    """
    start = input_node(first)
    given = {input_node(rows_of(x.type)): x for x in rows}
    common = {input_node(x.type): x for x in shared}
    y = f(start, *given, *common)
    y = full(0, result) if y is None else y
    late: set[Node] = set()
    for node in reachable([y]):
        if node is start or not late.isdisjoint(node.inputs):
            late.add(node)
    inside, edge = _boundary(y, start, late)
    early = _Early({**given, **common}, count)
    own_rows: list[Node] = []
    own_shared: list[Node] = []
    for x in edge:
        if x.type.rank and x.shape[0] == ROWS:
            own_rows.append(x)
        else:
            own_shared.append(x)
    new: dict[Node, Node] = {x: input_node(x.type) for x in (start, *own_rows, *own_shared)}
    shared_values = [early(x) for x in own_shared]
    turned: dict[Node, Node] = {}
    for node in inside:
        if node in new:
            continue
        if _by_columns(node) and node.inputs[1] in own_shared:
            # Rows times a matrix are faster where the matrix is read along its rows.
            w = node.inputs[1]
            if w not in turned:
                turned[w] = input_node(w.type.with_shape(w.shape[::-1]))
                own_shared.append(turned[w])
                new[turned[w]] = turned[w]
                shared_values.append(permute(shared_values[own_shared.index(w)], (1, 0)))
            new[node] = DotGeneral((1,), (0,))(new[node.inputs[0]], turned[w])
            continue
        new[node] = node.with_inputs([new[x] for x in node.inputs])
    used = set(reachable([new[y]]))
    keep = [k for k, x in enumerate(own_shared) if new[x] in used]
    inputs = [new[x] for x in (start, *own_rows, *[own_shared[k] for k in keep])]
    return Enclosed(
        Graph(inputs, [new[y]]), [early(x) for x in own_rows], [shared_values[k] for k in keep]
    )


def _by_columns(node: Node) -> bool:
    """Whether a node is rows times the transpose of a matrix."""
    return isinstance(node.prim, DotGeneral) and node.prim == DotGeneral((1,), (1,))


def _is_free(prim: Op) -> bool:
    """Whether an op costs nothing where it is read, so that nothing is gained by having its result
    in memory. (Flip, expand, ... are views of one array; a constant array is in memory.)"""
    if isinstance(prim, Constant):
        return not prim.value.ndim
    return Trait.LEAF in prim.traits or (prim.arity == 1 and Trait.VIEW in prim.traits)


def _boundary(y: Node, start: Node, late: set[Node]) -> tuple[list[Node], list[Node]]:
    """What is part of a body, inputs first, and what it reads beside its first rows."""
    inside: dict[Node, None] = {y: None}
    edge: dict[Node, None] = {}
    todo = [y]
    while todo:
        for x in todo.pop().inputs:
            if x in inside or x in edge or x is start:
                continue
            elsewhere = "_rows" in x.type.dim_names and x.shape[0] != ROWS
            if x in late or _is_free(x.prim) or (elsewhere and Trait.INPUT not in x.prim.traits):
                inside[x] = None
                todo.append(x)
            else:
                edge[x] = None
    return sorted(inside, key=lambda n: n.id), sorted(edge, key=lambda n: n.id)


class _Early:
    """Computes nodes of a body for all rows at once."""

    def __init__(self, known: Mapping[Node, Node], count: Size) -> None:
        self.new, self.sizes = dict(known), {"_rows": count}

    def __call__(self, y: Node) -> Node:
        for node in reachable([y], self.new.keys()):
            if node not in self.new:
                given = [self.new[x] for x in node.inputs]
                self.new[node] = _rebound(node, self.sizes)(*given)
        return self.new[y]


def apply(body: Graph, inputs: Sequence[Node], rows: Size = ROWS) -> Node:
    """The output of a body for these inputs, which have so many rows."""
    new = dict(zip(body.inputs, inputs, strict=True))
    sizes = {"_rows": rows}
    for node in body.body:
        given = [new[x] for x in node.inputs]
        new[node] = _rebound(node, sizes)(*given)
    return new[body.outputs[0]]


def bound(body: Graph, sizes: Mapping[str, Size]) -> Graph:
    """A body, or a graph in one, with values in place of the names of sizes; others stay."""
    if not set(body.dim_names) & sizes.keys():
        return body
    inputs = [
        input_node(x.type.with_shape(tuple(substituted(d, sizes) for d in x.shape)))
        for x in body.inputs
    ]
    new = dict(zip(body.inputs, inputs, strict=True))
    for node in body.body:
        new[node] = _rebound(node, sizes)(*[new[x] for x in node.inputs])
    return Graph(inputs, [new[y] for y in body.outputs], body.name)


def _rebound(node: Node, sizes: Mapping[str, Size]) -> Callable[..., Node]:
    """What makes the node again where sizes have other values."""
    prim: Any = node.prim
    changed: dict[str, Any] = {}
    for key, value in prim.attrs.items():
        if isinstance(value, Dim):
            changed[key] = substituted(value, sizes)
        elif isinstance(value, tuple) and any(isinstance(d, Dim) for d in value):
            changed[key] = tuple(substituted(d, sizes) for d in value)
        elif isinstance(value, Graph):
            changed[key] = bound(value, sizes)
    made = dataclasses.replace(prim, **changed) if changed else prim

    def make(*inputs: Node) -> Node:
        here = provenance()
        type = made.infer(*[x.type for x in inputs])
        source, origin = here.source or node.source, here.origin
        return Node(made, inputs, type, node.scope or here.scope, source, origin)

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
    size: Size = substituted(atom.numerator, sizes) // substituted(atom.denominator, sizes)
    return size
