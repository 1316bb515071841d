"""Patterns through control flow: of operations that hold graphs, by walks over these, and of rules
for derivatives, by walks over what they make.

A short scan is gone through step by step. Of a long one, and of a loop that ends nobody knows when,
the pattern of what is carried is the least that a step does not add to: a step of a loop that works
on its elements one by one adds nothing after the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.errors import GradientError
from retrograd.ir import Graph, Node, reachable
from retrograd.ops.control import Cond, Custom, Scan, Sized, WhileLoop
from retrograd.ops.control.per_sample import row_by_row
from retrograd.ops.identity import items
from retrograd.ops.index import Gather, Scatter
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg.lu import Inv, Solve
from retrograd.ops.linalg.triangular import TriangularSolve
from retrograd.runtime.backend import Array
from retrograd.transforms.sparse.indexing import gather, scatter
from retrograd.transforms.sparse.known_values import KnownValues, size_of
from retrograd.transforms.sparse.linear_systems import inverted, system
from retrograd.transforms.sparse.pattern import RULES, Pattern, everything, walked

STEPS = 4000  # nodes, of all steps together, that are gone through one by one
ROUNDS = 64  # of additions to what is carried; each adds to some element

Found = Sequence[Pattern | None]


def patterns(outputs: Sequence[Node], inputs: Sequence[Node], values: KnownValues) -> list[Pattern]:
    """A pattern for each output; columns are the elements of the inputs, one after the other."""
    from scipy import sparse

    columns = sum([size_of(x) for x in inputs])
    found: dict[Node, Pattern | None] = {}
    start = 0
    for x in inputs:
        found[x] = sparse.eye_array(size_of(x), columns, k=start, dtype=bool, format="csr")
        start += size_of(x)
    ends = walked(outputs, found, values)
    empty = [sparse.csr_array((size_of(y), columns), dtype=bool) for y in outputs]
    return [e if p is None else p for e, p in zip(empty, ends, strict=True)]


def through(graph: Graph, operands: Found, values: Sequence[Array | None]) -> list[Pattern | None]:
    """The patterns of the outputs of a graph, for those of its inputs, and the values of those of
    its inputs that are known."""
    given = dict(zip(graph.inputs, operands, strict=True))
    pairs = zip(graph.inputs, values, strict=True)
    known = KnownValues({x: v for x, v in pairs if v is not None})
    return walked(graph.outputs, given, known)


def custom(node: Node, operands: Found, values: KnownValues) -> Any:
    """By the derivative that was given: the pattern of tangents of the results, which are linear in
    those of the operands. If it is that of what is computed, the pattern of the latter."""
    op = node.prim
    assert isinstance(op, Custom)
    if op.rule is None:
        return everything(node, operands, values)
    if op.rule.exact:
        return list(operands[op.count :])
    xs = node.inputs[: op.count]
    present = [p is not None and x.dtype.is_inexact for x, p in zip(xs, operands, strict=False)]
    tangents = [input_node(x.type) if here else None for x, here in zip(xs, present, strict=True)]
    found: dict[Node, Any] = {
        t: p for t, p in zip(tangents, operands, strict=False) if t is not None
    }
    around = reachable([node])
    found |= dict.fromkeys(around)  # the point at which it is taken does not move
    try:
        parts = op.rule.jvp(tangents, items(node), xs) if any(present) else []
    except GradientError:  # there is no forward mode
        return everything(node, operands, values)
    ends = iter(walked([t for t in parts if t is not None], found, values))
    moved = [None if t is None else next(ends) for t in parts]
    return moved or [None] * len(items(node))


def scan(node: Node, operands: Found, values: KnownValues) -> Any:
    op = node.prim
    assert isinstance(op, Scan)
    if not isinstance(op.length, int):
        return everything(node, operands, values)
    numbers = [values(x) if p is None else None for x, p in zip(node.inputs, operands, strict=True)]
    if op.length * len(op.body) > STEPS:
        return _long(node, op, operands, numbers)
    constants, carry, xs = op.parts(operands)
    fixed, start, rows = op.parts(numbers)
    ys: list[list[Pattern | None]] = [[None] * op.length for _ in op.body.outputs[op.carries :]]
    for t in range(op.length)[:: -1 if op.reverse else 1]:
        slices = [_row(p, t, op.length) for p in xs]
        now = [None if v is None else v[t] for v in rows]
        known = [*fixed, *start, *now]
        found = through(op.body, [*constants, *carry, *slices], known)
        carry, start = found[: op.carries], [None] * op.carries
        for y, p in zip(ys, found[op.carries :], strict=True):
            y[t] = p
    return [
        *carry,
        *map(_stacked, ys, op.body.outputs[op.carries :], [_columns(operands)] * len(ys)),
    ]


def _long(node: Node, op: Scan, operands: Found, numbers: Sequence[Array | None]) -> Any:
    """A scan all of whose steps have the patterns of all of them together."""
    assert isinstance(op.length, int)
    constants, carry, xs = op.parts(operands)
    slices = []
    for p in xs:
        rows = [_row(p, t, op.length) for t in range(op.length)]
        slices.append(_joined(rows))
    fixed = op.parts(numbers)[0]
    known = [*fixed, *[None] * (op.carries + op.scanned)]
    found = _settled(op.body, constants, carry, slices, known, op.carries)
    if found is None:
        return everything(node, operands, KnownValues({}))
    carry, outs = found
    width = _columns(operands)
    ys = [
        _stacked([p] * op.length, y, width)
        for p, y in zip(outs, op.body.outputs[op.carries :], strict=True)
    ]
    return [*carry, *ys]


def while_loop(node: Node, operands: Found, values: KnownValues) -> Any:
    op = node.prim
    assert isinstance(op, WhileLoop)
    count = op.constants
    numbers = [values(x) if p is None else None for x, p in zip(node.inputs, operands, strict=True)]
    known = [*numbers[:count], *[None] * op.carries]
    found = _settled(op.body, operands[:count], operands[count:], [], known, op.carries)
    return everything(node, operands, values) if found is None else [*found[0], None]


def _settled(
    body: Graph, constants: Found, carry: Found, slices: Found, known: Sequence[Any], carries: int
) -> tuple[list[Pattern | None], list[Pattern | None]] | None:
    """What is carried after any number of steps, and what a step gives beside; None where that has
    not settled after many rounds."""
    now = list(carry)
    for _ in range(ROUNDS):
        found = through(body, [*constants, *now, *slices], known)
        after = [_joined([a, b]) for a, b in zip(now, found[:carries], strict=True)]
        if [_count(p) for p in after] == [_count(p) for p in now]:
            return now, found[carries:]
        now = after
    return None


def sized(node: Node, operands: Found, values: KnownValues) -> Any:
    """An array with a row for each of nobody knows how many steps is looked at as one row, which
    stands for all of them; so loops over these settle, and what is done row by row is done once."""
    op = node.prim
    assert isinstance(op, Sized)
    if not row_by_row(op.body, op.dim):
        return everything(node, operands, values)
    numbers = [values(x) if p is None else None for x, p in zip(node.inputs, operands, strict=True)]
    new = [input_node(x.type) for x in op.body.inputs]
    found: dict[Node, Any] = dict(zip(new, operands[1:], strict=True))
    pairs = zip(new, numbers[1:], strict=True)
    known: dict[Node, Array | None] = {x: v for x, v in pairs if v is not None}
    one: dict[Node, Node] = dict(zip(op.body.inputs, new, strict=True))
    for x in op.body.body:
        several = op.dim in x.type.dim_names or op.dim in x.prim.dim_names
        here = x.prim.bind({op.dim: 1})(*[one[i] for i in x.inputs])
        one[x] = here
        if several:
            known[here] = None  # of one step; there are others
        if several and isinstance(here.prim, Scan):
            given = [found[i] for i in here.inputs]
            numbers = [KnownValues(known)(i) for i in here.inputs]
            moving = any(p is not None for p in given)
            found[here] = _long(here, here.prim, given, numbers) if moving else None
        walked([here], found, KnownValues(known))
    return [found[one[y]] for y in op.body.outputs]


def cond(node: Node, operands: Found, values: KnownValues) -> Any:
    """That of the branch that is chosen, if that is known, otherwise of both."""
    op = node.prim
    assert isinstance(op, Cond)
    chosen = values(node.inputs[0])
    graphs = [op.then, op.other] if chosen is None else [op.then if chosen else op.other]
    given = list(zip(node.inputs, operands, strict=True))[1:]
    numbers = [values(x) if p is None else None for x, p in given]
    found = [through(graph, operands[1:], numbers) for graph in graphs]
    return [_joined(parts) for parts in zip(*found, strict=True)]


def _joined(parts: Sequence[Pattern | None]) -> Pattern | None:
    total = None
    for p in parts:
        total = p if total is None else total if p is None else total + p
    return total


def _row(p: Pattern | None, t: int, length: int) -> Pattern | None:
    """The rows of an array's slice along its first axis."""
    if p is None:
        return None
    each = p.shape[0] // length
    return p[t * each : (t + 1) * each]


def _stacked(parts: Sequence[Pattern | None], like: Node, columns: int) -> Pattern | None:
    from scipy import sparse

    if all(p is None for p in parts):
        return None
    none = sparse.csr_array((size_of(like), columns), dtype=bool)
    return sparse.csr_array(sparse.vstack([none if p is None else p for p in parts], format="csr"))


def _columns(operands: Found) -> int:
    return int(next(p.shape[1] for p in operands if p is not None))


def _count(p: Pattern | None) -> int:
    return -1 if p is None else int(p.nnz)


RULES.update(
    {
        Scan: scan, WhileLoop: while_loop, Cond: cond, Sized: sized, Custom: custom,
        Gather: gather, Scatter: scatter, Solve: system, TriangularSolve: system, Inv: inverted,
    }
)  # fmt: skip
