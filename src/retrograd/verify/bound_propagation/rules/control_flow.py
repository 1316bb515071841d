"""Loops, branches and what else holds graphs: the walk through the graph inside.

A branch that is not known gives what one of both gives. A loop runs step by step for as long as its
condition may hold, and what it may end with is put together; after `PATIENCE` steps in which it may
end, ends of intervals that still move are taken for infinite, so that it comes to rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Graph, Node, TensorType, TupleType, apply
from retrograd.ops.control.cond import Cond
from retrograd.ops.control.custom import Custom
from retrograd.ops.control.dag_scan import DagScan
from retrograd.ops.control.draw import Draw
from retrograd.ops.control.dynamic_size import Sized
from retrograd.ops.control.pure_callback import PureCallback
from retrograd.ops.control.row_functions import bound
from retrograd.ops.control.scan import Scan
from retrograd.ops.control.while_loop import WhileLoop
from retrograd.ops.leaf import input_node
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.toposort import DagOrder, parts
from retrograd.verify.bound_propagation.interval import (
    Interval,
    Rectangle,
    anything,
    either,
    ends_of,
    hull,
    known,
    point,
    where_nan,
)
from retrograd.verify.bound_propagation.propagation import Value, outputs_of, rule
from retrograd.verify.bound_propagation.rules.contraction import summed
from retrograd.verify.bound_propagation.rules.movement import moved

PATIENCE = 200  # steps of a loop that may have ended, until its state is widened
LONG = 100_000  # steps of one that cannot have ended
SIZES = 256  # sizes that a size may have, all of which are tried


def joined(a: Value, b: Value) -> Value:
    """What is one of two."""
    if isinstance(a, Rectangle):
        return Rectangle(*[hull(x, y) for x, y in zip(a, b, strict=True)])
    return hull(a, b)


def exact(node: Node, given: Sequence[Value]) -> list[Any] | None:
    """The inputs as arrays, where they are known."""
    arrays = []
    for x, value in zip(node.inputs, given, strict=True):
        if not value.is_point or not _held(value):
            return None
        arrays.append(array_of(value, x.type))
    return arrays


def _held(value: Value) -> bool:
    parts_of = value if isinstance(value, Rectangle) else (value,)
    return all(bool((p.size < 2.0**63).all()) or np.isinf(p.size).any() for p in parts_of)


def array_of(value: Value, type: TensorType) -> Any:
    if isinstance(value, Rectangle):
        z = np.empty(value.shape, type.dtype.dtype)
        z.real, z.imag = value.real.lower, value.imag.lower
        return z
    return value.lower.astype(type.dtype.dtype)


@rule(Cond)
def cond(node: Node, condition: Interval, *operands: Value) -> list[Value]:
    prim: Any = node.prim
    if condition.lower > 0:
        return outputs_of(prim.then, operands)
    if condition.upper < 1:
        return outputs_of(prim.other, operands)
    both = [outputs_of(graph, operands) for graph in (prim.then, prim.other)]
    return [joined(a, b) for a, b in zip(*both, strict=True)]


def at_step(value: Value, t: int) -> Value:
    return moved(lambda v: v[t], value)


def stacked(values: Sequence[Value], type: TensorType) -> Value:
    """A stack of values along a new first axis."""
    if values:
        return moved(lambda *arrays: np.stack(arrays), *values)
    empty = np.zeros(tuple(map(int, type.shape)))
    return Rectangle(point(empty), point(empty)) if type.dtype.is_complex else point(empty)


@rule(Scan)
def scan(node: Node, *given: Value) -> list[Value]:
    prim: Any = node.prim
    constants, carry, xs = prim.parts(given)
    length = int(prim.length)
    steps: list[list[Value]] = [[] for _ in prim.body.outputs[prim.carries :]]
    for t in range(length)[:: -1 if prim.reverse else 1]:
        results = outputs_of(prim.body, [*constants, *carry, *[at_step(x, t) for x in xs]])
        carry = results[: prim.carries]
        for found, value in zip(steps, results[prim.carries :], strict=True):
            found.append(value)
    turned = [found[::-1] if prim.reverse else found for found in steps]
    assert isinstance(node.type, TupleType)
    types = node.type.items[prim.carries :]
    return [*carry, *[stacked(v, t) for v, t in zip(turned, types, strict=True)]]


@rule(WhileLoop)
def while_loop(node: Node, *given: Value) -> list[Value]:
    prim: Any = node.prim
    constants, carry = list(given[: prim.constants]), list(given[prim.constants :])
    types = [x.type for x in prim.body.outputs]
    ended: list[Value] | None = None
    steps = doubtful = first = 0
    while True:
        (going,) = outputs_of(prim.test, [*constants, *carry])
        if going.lower < 1:
            if ended is None:
                ended, first = carry, steps
            else:
                ended = [joined(a, b) for a, b in zip(ended, carry, strict=True)]
            doubtful += 1
        if going.upper < 1 or steps == prim.most:
            break
        after = outputs_of(prim.body, [*constants, *carry])
        steps += 1
        if doubtful > PATIENCE or steps > LONG:
            wider = [_widened(a, b, t) for a, b, t in zip(carry, after, types, strict=True)]
            if all(_within(b, a) for a, b in zip(carry, wider, strict=True)):
                ended = carry if ended is None else [
                    joined(a, b) for a, b in zip(ended, carry, strict=True)
                ]  # fmt: skip
                steps = 2**63 - 1 if prim.most is None else prim.most
                break
            after = wider
        carry = after
    if ended is None:  # which the program refuses after so many steps
        ended = carry
    return [*ended, Interval(np.asarray(float(first)), np.asarray(float(steps)))]


def _widened(before: Value, after: Value, type: TensorType) -> Value:
    if isinstance(before, Rectangle):
        pairs = zip(before, after, strict=True)
        return Rectangle(*[_widened(a, b, type.with_dtype(type.dtype.real)) for a, b in pairs])
    least, most = ends_of(type.dtype)
    return Interval(
        np.where(after.lower < before.lower, least, before.lower),
        np.where(after.upper > before.upper, most, before.upper),
        either(before.nan, after.nan),
    )


def _within(a: Value, b: Value) -> bool:
    if isinstance(a, Rectangle):
        return all(_within(x, y) for x, y in zip(a, b, strict=True))
    more_nan = np.any(np.asarray(a.nan) & ~np.asarray(b.nan))
    return bool((a.lower >= b.lower).all() and (a.upper <= b.upper).all() and not more_nan)


@rule(Sized)
def sized(node: Node, size: Interval, *operands: Value) -> list[Value]:
    prim: Any = node.prim
    low, high = max(int(size.lower), 0), int(np.minimum(size.upper, 2.0**40))
    if high - low >= SIZES:
        if not prim.enough or high > LONG:
            assert isinstance(node.type, TupleType)
            return [anything(t) for t in node.type.items]
        low = high
    found: list[Value] | None = None
    for n in range(low, high + 1):
        here = outputs_of(prim.body.bind({prim.dim: n}), operands)
        found = here if found is None else [joined(a, b) for a, b in zip(found, here, strict=True)]
    assert found is not None
    return found


@rule(Custom)
def custom(node: Node, *given: Value) -> list[Value]:
    return list(given[node.prim.count :])  # type: ignore[attr-defined]


@rule(PureCallback)
def pure_callback(node: Node, *given: Value) -> Value:
    """Of known arguments the function is called; of others nothing is known."""
    arrays = exact(node, given)
    return anything(node.type) if arrays is None else known(apply(node, arrays))


@rule(RandomBits)
def random_bits(node: Node, key: Interval) -> Value:
    arrays = exact(node, [key])
    return anything(node.type) if arrays is None else known(apply(node, arrays))


@rule(DagOrder)
def dag_order(node: Node, edges: Interval) -> Value:
    arrays = exact(node, [edges])
    if arrays is not None:
        return known(apply(node, arrays))
    shape, most = tuple(map(int, node.shape)), 1.0 + max(int(node.prim.nodes), edges.shape[-1])  # type: ignore[attr-defined]
    return Interval(np.zeros(shape), np.full(shape, most))


@rule(Draw)
def draw(node: Node, *given: Value) -> Value:
    """A function of the key and the parameters, to the bit; of others by the formula."""
    arrays = exact(node, given)
    if arrays is not None:
        return known(apply(node, arrays))
    prim: Any = node.prim
    own = [input_node(x.type) for x in node.inputs]
    (found,) = outputs_of(Graph(own, [prim.written(*own)]), given)
    return found


@rule(DagScan)
def dag_scan(node: Node, *given: Value) -> Value:
    """Level by level, as the op means it; of edges that are not known nothing is known."""
    prim: Any = node.prim
    if not (given[0].is_point and given[1].is_point):
        return anything(node.type)
    values = prim.split(given)
    edges, listed = (v.lower.astype(np.int64) for v in (values.edges, values.order))
    (s, m), n = prim.widths, int(prim.nodes)
    order = parts(listed, n, edges.shape[1])
    near = edges[int(prim.reverse)]
    starts, own_edges = (
        (order.out_start, order.out_edge) if prim.reverse else (order.in_start, order.in_edge)
    )
    low, high, nan = np.zeros((n, s + m)), np.zeros((n, s + m)), np.zeros((n, s + m), bool)
    levels = range(order.levels)
    for k in reversed(levels) if prim.reverse else levels:
        rows = order.order[order.level[k] : order.level[k + 1]]
        own = [own_edges[starts[v] : starts[v + 1]] for v in rows]
        e = np.concatenate(own) if own else np.zeros(0, np.int64)
        into = np.repeat(np.arange(len(rows)), [len(x) for x in own])
        state = Interval(low[near[e], :s], high[near[e], :s], where_nan(nan[near[e], :s]))
        (sent,) = outputs_of(
            bound(prim.message, {"_rows": len(e)}),
            [state, *[moved(lambda v, e=e: v[e], x) for x in values.edge], *values.message],
        )
        total = _added(sent, into, len(rows), m, node)
        (y,) = outputs_of(
            bound(prim.cell, {"_rows": len(rows)}),
            [total, *[moved(lambda v, r=rows: v[r], x) for x in values.node], *values.cell],
        )
        for at, part in ((slice(0, s), y), (slice(s, None), total)):
            low[rows, at], high[rows, at] = part.lower, part.upper
            nan[rows, at] = part.nan
    return Interval(low, high, where_nan(nan))


def _added(sent: Interval, into: Any, rows: int, width: int, node: Node) -> Interval:
    def total(x: Any) -> Any:
        y = np.zeros((rows, width))
        np.add.at(y, into, x)
        return y

    with np.errstate(all="ignore"):
        low, high, size = (total(x) for x in (sent.lower, sent.upper, sent.size))
    terms = int(np.bincount(into, minlength=1).max(initial=0)) + 1
    nan = where_nan(total(np.broadcast_to(sent.nan, sent.shape) * 1.0) > 0)
    return summed(low, high, size, terms, node.dtype, nan)
