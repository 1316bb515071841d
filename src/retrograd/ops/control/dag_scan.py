"""`dag_scan`: states of the nodes of a directed acyclic graph, each from those of its predecessors.

    a_v = sum over edges e = (u, v) of message(h_u, inputs of e)
    h_v = cell(a_v, inputs of v)

Rows of the result are h_v and behind it a_v. In reverse, with g the cotangent of the result,

    l_u = g_u + sum over edges e = (u, v) of (d message_e / d h)^T m_v
    m_u = (d cell_u / d a)^T l_u

which is a `dag_scan` against the edges: its states are m, its sums l - g. With m and l known, the
gradients of all other inputs are those of one call of the cell on all nodes, and of one call of the
message on all edges. The tangents are a scan along the edges. So derivatives of any order are made
of this op and of those that cell and message consist of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff.batching import batched as on_stacks
from retrograd.autodiff.forward import pushforward
from retrograd.autodiff.reverse import pullback
from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Graph, Node, Op, TensorType, Trait, declare, evaluate, full, int64
from retrograd.ops.control.body import need_counts, run
from retrograd.ops.control.row_functions import (
    ROWS,
    Enclosed,
    apply,
    bound,
    enclose,
    enclose_late,
    rows_of,
)
from retrograd.ops.identity import Alias
from retrograd.ops.index import Gather
from retrograd.ops.leaf import Iota, SizeOf, input_node
from retrograd.ops.numerics.compensated_sum import scattered
from retrograd.ops.numerics.half import is_half
from retrograd.ops.shape import Concat, expand, fail, permute, reshape, slice_axis, stack_front
from retrograd.ops.toposort import DagOrder, check_edges, order_size, parts


class Inputs(NamedTuple):
    """The inputs by what they belong to, or their types."""

    edges: Any
    order: Any
    edge: Sequence[Any]  # one row for each edge
    message: Sequence[Any]  # parameters
    node: Sequence[Any]  # one row for each node
    cell: Sequence[Any]  # parameters


@declare
class DagScan(Op):
    """States in topological order, `h_v = cell(sum of message(h_u) over edges from u to v)`.

    Inputs are the edges `[2, E]`, what `dag_order` makes of them, then `edge_inputs` arrays
    `[E, ...]`, `message_inputs` parameters of the message, `node_inputs` arrays `[nodes, ...]`, and
    the parameters of the cell. `message` takes `h [rows, S]`, rows of edge inputs and its
    parameters, and gives `[rows, M]`; `cell` takes `a [rows, M]`, rows of node inputs and its
    parameters, and gives `[rows, S]`. The result is `[nodes, S + M]`.

    With `reverse` everything goes against the edges. Messages to a node are added in the order of
    the edges, in blocks like the updates of a scatter.
    """

    name = "dag_scan"
    traits = frozenset({Trait.READS_MANY, Trait.CONTROL})
    nodes: int | Dim
    message: Graph
    cell: Graph
    edge_inputs: int
    message_inputs: int
    node_inputs: int
    reverse: bool = False

    def __str__(self) -> str:
        against = ", reverse=True" if self.reverse else ""
        return f"dag_scan(nodes={self.nodes}{against})"

    # -- inference -----------------------------------------------------------------------------
    @property
    def dim_names(self) -> frozenset[str]:
        return super().dim_names - ROWS.names

    def bind(self, sizes: Any) -> Op:
        nodes = evaluate(self.nodes, sizes)
        message, cell = bound(self.message, sizes), bound(self.cell, sizes)
        return DagScan(nodes, message, cell, *self._counts)

    def repeated(self, *types: TensorType) -> list[tuple[Graph, int | Dim]]:
        return [
            (bound(self.message, {"_rows": self.split(types).edges.shape[1]}), 1),
            (bound(self.cell, {"_rows": self.nodes}), 1),
        ]

    @property
    def _counts(self) -> tuple[int, int, int, bool]:
        return self.edge_inputs, self.message_inputs, self.node_inputs, self.reverse

    def split(self, given: Sequence[Any]) -> Inputs:
        """Inputs, or their types, by what they belong to."""
        ends = [2, *np.cumsum(self._counts[:3]) + 2]
        groups = [given[a:b] for a, b in zip(ends, [*ends[1:], len(given)], strict=True)]
        return Inputs(given[0], given[1], *groups)

    def one_by_one(self) -> tuple[Graph, Graph]:
        """Message and cell for one row each. The message adds what it sends to its first input."""
        message, cell = (bound(body, {"_rows": 1}) for body in (self.message, self.cell))
        total = input_node(message.outputs[0].type)
        return Graph([total, *message.inputs], [total + message.outputs[0]]), cell

    @property
    def widths(self) -> tuple[Any, Any]:
        """The sizes of a state and of a sum, S and M."""
        return self.message.inputs[0].shape[1], self.cell.inputs[0].shape[1]

    def infer(self, *types: TensorType) -> TensorType:
        inner = {"edge_inputs": self.edge_inputs, "message_inputs": self.message_inputs}
        need_counts(self, len(types) - 2, **inner, node_inputs=self.node_inputs)
        given = self.split(types)
        check_edges(self, given.edges)
        if given.edges.rank != 2:
            raise ShapeError(f"dag_scan goes through one graph, not {given.edges}")
        count = given.edges.shape[1]
        if given.order != TensorType(int64, (order_size(self.nodes, count),)):
            raise ShapeError(f"dag_scan over {self.nodes} nodes: {given.order} is no order of them")
        message, cell = self.message, self.cell
        state, total = message.inputs[0].type, cell.inputs[0].type
        if message.outputs[0].type != total or cell.outputs[0].type != state or state.rank != 2:
            raise ShapeError(
                f"{self} of {[*types]}: states {state} and sums {total} do not fit together"
            )
        if not state.dtype.is_float or total.dtype is not state.dtype:
            raise DTypeError(f"dag_scan computes real states, not {state}")
        for body, rows, shared, size in (
            (message, given.edge, given.message, count),
            (cell, given.node, given.cell, self.nodes),
        ):
            expected = [*[rows_of(t) for t in rows], *shared]
            if [x.type for x in body.inputs[1:]] != expected:
                wanted = [x.type for x in body.inputs[1:]]
                raise ShapeError(f"{self}: a body takes {wanted}, and is given {expected}")
            for t in rows:
                if t.shape[0] != size:
                    raise fail(self, t, f"it must have {size} rows")
        return state.with_shape((self.nodes, state.shape[1] + total.shape[1]))

    # -- meaning -------------------------------------------------------------------------------
    def reference(self, *arrays: Any) -> Any:
        given, (s, m), (message, cell) = self.split(arrays), self.widths, (self.message, self.cell)
        n = int(self.nodes)
        order = parts(given.order, n, given.edges.shape[1])
        near = given.edges[int(self.reverse)]
        starts, listed = (
            (order.out_start, order.out_edge) if self.reverse else (order.in_start, order.in_edge)
        )
        y = np.zeros((n, s + m), message.inputs[0].dtype.dtype)
        levels = range(order.levels)
        for k in reversed(levels) if self.reverse else levels:
            rows = order.order[order.level[k] : order.level[k + 1]]
            own = [listed[starts[v] : starts[v + 1]] for v in rows]
            e = np.concatenate(own) if own else np.zeros(0, np.int64)
            into = np.repeat(np.arange(len(rows)), [len(x) for x in own])
            rows_in = [y[near[e], :s], *[x[e] for x in given.edge], *given.message]
            (sent,) = run(bound(message, {"_rows": len(e)}), rows_in)
            total = np.zeros((len(rows), m), np.float32 if is_half(y) else y.dtype)
            scattered(total, into, sent.astype(total.dtype), False)
            total = total.astype(y.dtype)
            node = [x[rows] for x in given.node]
            rows_in = [total, *node, *given.cell]
            (y[rows, :s],) = run(bound(cell, {"_rows": len(rows)}), rows_in)
            y[rows, s:] = total
        return y

    # -- rules ---------------------------------------------------------------------------------
    def _near(self, given: Inputs, y: Node) -> Node:
        """The states that the messages of all edges are made of."""
        return Gather(0)(slice_axis(y, 1, 0, self.widths[0]), self._end(given, self.reverse))

    @staticmethod
    def _end(given: Inputs, target: bool) -> Node:
        """The sources or the targets of all edges."""
        row = slice_axis(given.edges, 0, int(target), int(target) + 1)
        return reshape(row, row.shape[1:])

    def _scan(self, given: Inputs, message: Enclosed, cell: Enclosed, reverse: bool) -> Node:
        """The scan of other bodies over the same graph."""
        counts = len(message.rows), len(message.shared), len(cell.rows)
        op = DagScan(self.nodes, message.body, cell.body, *counts, reverse)
        return op(given.edges, given.order, *chain(*message[1:], *cell[1:]))

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        given, (s, m), (message, cell) = self.split(inputs), self.widths, (self.message, self.cell)
        state, total = message.inputs[0].type, cell.inputs[0].type
        near = self._near(given, y)

        def back_message(m_far: Node, h: Node, *rest: Node) -> Node | None:
            return pullback([apply(message, [h, *rest])], [m_far], [h])[0]

        def back_cell(after: Node, g_row: Node, y_row: Node, *rest: Node) -> Node | None:
            a = slice_axis(y_row, 1, s, s + m)
            own = slice_axis(g_row, 1, 0, s) + after
            found = pullback([apply(cell, [a, *rest])], [own], [a])[0]
            above = slice_axis(g_row, 1, s, s + m)
            return above if found is None else found + above

        e = given.edges.shape[1]
        sent = enclose_late(total, [near, *given.edge], given.message, back_message, state, e)
        own_rows = [g, y, *given.node]
        made = enclose_late(state, own_rows, given.cell, back_cell, total, self.nodes)
        z = self._scan(given, sent, made, not self.reverse)
        own = slice_axis(z, 1, m, m + s) + slice_axis(g, 1, 0, s)
        arriving = Gather(0)(slice_axis(z, 1, 0, m), self._end(given, not self.reverse))
        by_edge = self._at_once(message, near, (*given.edge, *given.message), arriving)
        a = slice_axis(y, 1, s, s + m)
        return [None, None, *by_edge, *self._at_once(cell, a, (*given.node, *given.cell), own)]

    @staticmethod
    def _at_once(body: Graph, first: Node, rest: Sequence[Node], g: Node) -> list[Node | None]:
        """Cotangents of a body's inputs but the first, of all rows together."""
        # Aliases, because one node may be given in several places.
        wrt = [Alias()(x) for x in rest]
        y = apply(body, [first, *wrt], first.shape[0])
        wanted = [x for x in wrt if x.dtype.is_inexact]
        found = dict(zip(wanted, pullback([y], [g], wanted), strict=True))
        return [found.get(x) for x in wrt]

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        if all(t is None for t in tangents):
            return None
        given, moving, (s, m) = self.split(inputs), self.split(tangents), self.widths
        message, cell = self.message, self.cell
        state, total = message.inputs[0].type, cell.inputs[0].type
        near = self._near(given, y)
        sums = slice_axis(y, 1, s, s + m)
        bodies = []
        for body, first, rows, shared, t_rows, t_shared in (
            (message, near, given.edge, given.message, moving.edge, moving.message),
            (cell, sums, given.node, given.cell, moving.node, moving.cell),
        ):
            own = [first, *rows, *[t for t in t_rows if t is not None]]
            common = [*shared, *[t for t in t_shared if t is not None]]
            start, end = (state, total) if body is message else (total, state)
            push = _Push(body, len(rows), len(shared), [t is not None for t in t_rows],
                         [t is not None for t in t_shared])  # fmt: skip
            bodies.append(enclose_late(start, own, common, push, end, first.shape[0]))
        return self._scan(given, bodies[0], bodies[1], self.reverse)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        if batched[0] or batched[1]:
            return self._union(size, batched, inputs)
        given, flags, (s, m) = self.split(inputs), self.split(batched), self.widths
        message, cell = self.message, self.cell
        bodies = []
        for body, rows, shared, f_rows, f_shared in (
            (message, given.edge, given.message, flags.edge, flags.message),
            (cell, given.node, given.cell, flags.node, flags.cell),
        ):
            own = [_swapped(x) if f else x for x, f in zip(rows, f_rows, strict=True)]
            start, end = body.inputs[0].type, body.outputs[0].type
            wide = start.with_shape((ROWS, size * start.shape[1]))
            result = end.with_shape((ROWS, size * end.shape[1]))
            stack = _Stack(body, size, [*f_rows], [*f_shared])
            bodies.append(enclose(wide, own, shared, stack, result))
        y = self._scan(given, bodies[0], bodies[1], self.reverse)
        states = reshape(slice_axis(y, 1, 0, size * s), (self.nodes, size, s))
        sums = reshape(slice_axis(y, 1, size * s, size * (s + m)), (self.nodes, size, m))
        return _swapped(Concat(2)(states, sums))

    def _union(self, size: int | Dim, batched: Sequence[bool], inputs: Sequence[Node]) -> Node:
        """Samples of different structure: one graph of all of them. Parameters that differ between
        samples become inputs of every node or edge."""
        given, flags, n = self.split(inputs), self.split(batched), self.nodes
        count = given.edges.shape[-1]
        edges, *_ = stack_front(size, [flags.edges], [given.edges])
        shape = (size, 2, count)
        # What depends on the order has samples where it has some, if only in name.
        at = int(flags.order)
        first = slice_axis(given.order, at, 0, 1)
        first = expand(reshape(first, shape[:at]), shape, tuple(range(at, 3)))
        edges = edges + first * full(0, edges.type)
        edges = permute(edges + Iota(shape, 0, int64)() * _number(n, shape), (1, 0, 2))
        edges = reshape(edges, (2, size * count))
        bodies = []
        for body, rows, shared, f_rows, f_shared, k in (
            (self.message, given.edge, given.message, flags.edge, flags.message, count),
            (self.cell, given.node, given.cell, flags.node, flags.cell, n),
        ):
            own = [_joined(x) for x in stack_front(size, f_rows, rows)]
            for x, f in zip(shared, f_shared, strict=True):
                if f:
                    wide = expand(x, (size, k, *x.shape[1:]), (1,))
                    own.append(reshape(wide, (size * k, *x.shape[1:])))
            common = [x for x, f in zip(shared, f_shared, strict=True) if not f]
            apart = _Apart(body, len(rows), [*f_shared])
            start, end = body.inputs[0].type, body.outputs[0].type
            bodies.append(enclose(start, own, common, apart, end))
        order = DagOrder(size * n)(edges)
        wide_op = dataclasses.replace(self, nodes=size * n)
        y = wide_op._scan(Inputs(edges, order, (), (), (), ()), bodies[0], bodies[1], self.reverse)
        return reshape(y, (size, n, y.shape[1]))


class _Apart:
    """A body some of whose parameters differ from row to row: they come behind its rows."""

    def __init__(self, body: Graph, rows: int, flags: list[bool]) -> None:
        self.body, self.rows, self.flags = body, rows, flags

    def __call__(self, first: Node, *rest: Node) -> Node:
        at = iter(rest)
        rows = [first, *[next(at) for _ in range(self.rows)]]
        own = [next(at) if f else None for f in self.flags]
        shared = [next(at) if x is None else x for x in own]
        if not any(self.flags):
            return apply(self.body, [*rows, *shared])
        # Each row by itself is a sample of one row.
        inputs, samples = [], {}
        for x in rows:
            inputs.append(Alias()(full(0, x.type.with_shape((1, *x.shape[1:])))))
            samples[inputs[-1]] = reshape(x, (ROWS, 1, *x.shape[1:]))
        for x, f in zip(shared, self.flags, strict=True):
            inputs.append(Alias()(full(0, x.type.with_shape(x.shape[1:]))) if f else x)
            if f:
                samples[inputs[-1]] = x
        one = apply(self.body, inputs, 1)
        ((y, stacked),) = on_stacks([one], samples, ROWS)
        if not stacked:
            y = expand(y, (ROWS, *y.shape), (0,))
        return reshape(y, (ROWS, y.shape[2]))


class _Push:
    """The tangent of a body as a body: of the tangent of its first input, all its inputs, and the
    tangents of those that have one."""

    def __init__(
        self, body: Graph, rows: int, shared: int, t_rows: list[bool], t_shared: list[bool]
    ) -> None:
        self.body, self.rows, self.shared = body, rows, shared
        self.t_rows, self.t_shared = t_rows, t_shared

    def __call__(self, t: Node, first: Node, *rest: Node) -> Node | None:
        at = iter(rest)
        rows = [next(at) for _ in range(self.rows)]
        t_rows = [next(at) if given else None for given in self.t_rows]
        shared = [next(at) for _ in range(self.shared)]
        t_shared = [next(at) if given else None for given in self.t_shared]
        y = apply(self.body, [first, *rows, *shared])
        pairs = [(first, t), *zip(rows, t_rows, strict=True), *zip(shared, t_shared, strict=True)]
        known = [(x, d) for x, d in pairs if d is not None]
        return pushforward([y], [x for x, _ in known], [d for _, d in known])[0]


class _Stack:
    """A body on a stack of samples, as a body whose rows are those of all samples side by side."""

    def __init__(self, body: Graph, size: int | Dim, rows: list[bool], shared: list[bool]) -> None:
        self.body, self.size = body, size
        self.rows, self.shared = rows, shared

    def __call__(self, first: Node, *rest: Node) -> Node:
        inputs, samples = [], {}
        apart = reshape(first, (ROWS, self.size, self.body.inputs[0].shape[1]))
        stacks = [_swapped(apart)]
        stacks += [
            _swapped(x) if f and k < len(self.rows) else x
            for k, (x, f) in enumerate(zip(rest, [*self.rows, *self.shared], strict=True))
        ]
        flags = [True, *self.rows, *self.shared]
        for x, stack, f in zip(self.body.inputs, stacks, flags, strict=True):
            inputs.append(Alias()(full(0, x.type)) if f else stack)
            if f:
                samples[inputs[-1]] = stack
        ((y, stacked),) = on_stacks([apply(self.body, inputs)], samples, self.size)
        if not stacked:  # it depends on no sample
            y = expand(y, (self.size, *y.shape), (0,))
        side = _swapped(y)
        return reshape(side, (ROWS, self.size * side.shape[2]))


def _joined(x: Node) -> Node:
    """The first two axes as one."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _number(n: int | Dim, shape: tuple[int | Dim, ...]) -> Node:
    """A size as a number, repeated."""
    return expand(SizeOf(n, int64)(), shape, tuple(range(len(shape))))


def _swapped(x: Node) -> Node:
    """The first two axes exchanged."""
    return permute(x, (1, 0, *range(2, x.type.rank)))
