"""A run of a graph as a graph without loops: each operation once for each time it was computed.

Steps of loops follow each other, of branches the one that was taken stands there, sizes are
numbers. Operations that steer differentiation alone (`stop_gradient`, what `custom_vjp` leaves) are
left out: an error goes through them as the value does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import Graph, Node, Trait, evaluate
from retrograd.ops.control import Cond, Custom, DagScan, PureCallback, Scan, Sized, WhileLoop
from retrograd.ops.identity import Item
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.ops.toposort import parts
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executors.reference import value_of


class StraightLine(NamedTuple):
    """The graph of a run, its values, and for each of its nodes the node that it was computed
    for."""

    graph: Graph
    values: dict[Node, Any]
    home: dict[Node, Node]


def straight_line(graph: Graph, arrays: Sequence[Array]) -> StraightLine:
    """The run of a graph on these inputs, by the meaning of its operations.

    Raises what the run raises, and `BackendError` where an operation of the graph is a function of
    Python's, of which nothing is known.
    """
    sizes = bind(graph.inputs, arrays)
    bound = graph.bind(sizes) if graph.dim_names else graph
    walk = _GraphRun(_homes(graph, bound))
    inputs = [input_node(x.type, x.name) for x in bound.inputs]
    for new, old, array in zip(inputs, bound.inputs, arrays, strict=True):
        walk.values[new] = np.asarray(array)
        walk.home[new] = walk.at(old)
    with np.errstate(all="ignore"):
        outputs = walk.run(bound, inputs)
    # An output may be an input, or stand for several: nodes of their own keep the graph simple.
    return StraightLine(Graph(inputs, outputs, graph.name), walk.values, walk.home)


def _homes(graph: Graph, bound: Graph) -> dict[Node, Node]:
    """The nodes of a graph by those of the same graph with its sizes put in, bodies included."""
    found: dict[Node, Node] = {}
    todo = [(graph, bound)] if bound is not graph else []
    while todo:
        old, new = todo.pop()
        for a, b in zip(old.nodes, new.nodes, strict=True):
            found[b] = a
        for a, b in zip(old.body, new.body, strict=True):
            mine = [v for v in a.attrs.values() if isinstance(v, Graph)]
            todo += zip(mine, [v for v in b.attrs.values() if isinstance(v, Graph)], strict=True)
    return found


class _GraphRun:
    """Runs graphs, and writes down what was computed."""

    def __init__(self, homes: dict[Node, Node]) -> None:
        self.homes = homes
        self.values: dict[Node, Any] = {}
        self.home: dict[Node, Node] = {}

    def at(self, node: Node) -> Node:
        return self.homes.get(node, node)

    def run(self, graph: Graph, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a graph, as nodes of the run; of a node of several results a list."""
        env: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.body:
            env[node] = self.node(node, [env[x] for x in node.inputs])
        return [env[y] for y in graph.outputs]

    def node(self, node: Node, given: list[Any]) -> Any:
        prim = node.prim
        if isinstance(prim, Item) and isinstance(given[0], list):
            return given[0][prim.index]
        if isinstance(prim, Custom):
            return given[prim.count :]
        if Trait.IDENTITY in prim.traits:
            return given[0]
        loop = LOOPS.get(type(prim))
        if loop is not None:
            return loop(self, node, given)
        if isinstance(prim, PureCallback):
            raise BackendError(
                f"rounding errors cannot be followed through a function of Python's: "
                f"{node.describe()}; write it in operations, or leave it out of the graph"
            )
        return self.add(node.with_inputs(given), node)

    def add(self, new: Node, of: Node) -> Node:
        """A node of the run, computed."""
        value = value_of(new, [self.values[x] for x in new.inputs], {})
        self.values[new] = value
        self.home[new] = self.at(of)
        return new

    def _cut(self, x: Node, t: int, of: Node) -> Node:
        """Row t of an array."""
        row = self.add(slice_axis(x, 0, t, t + 1), of)
        return self.add(reshape(row, x.shape[1:]), of)

    def _stack(self, rows: Sequence[Node], of: Node, like: Any) -> Node:
        """Rows as an array."""
        if not rows:
            return self.add(constant(np.zeros((0, *like.shape), like.dtype.dtype)), of)
        wide = [self.add(reshape(x, (1, *x.shape)), of) for x in rows]
        return wide[0] if len(wide) == 1 else self.add(Concat(0)(*wide), of)

    # -- what holds graphs ----------------------------------------------------------------------
    def scan(self, node: Node, given: list[Any]) -> list[Any]:
        prim: Any = node.prim
        constants, carry, xs = prim.parts(given)
        length = evaluate(prim.length, {})
        outs = prim.body.outputs[prim.carries :]
        rows: list[list[Node]] = [[] for _ in outs]
        for t in range(length)[:: -1 if prim.reverse else 1]:
            step = [self._cut(x, t, node) for x in xs]
            results = self.run(prim.body, [*constants, *carry, *step])
            carry = results[: prim.carries]
            for row, y in zip(rows, results[prim.carries :], strict=True):
                row.append(y)
        order = -1 if prim.reverse else 1
        return [
            *carry,
            *[self._stack(r[::order], node, y) for r, y in zip(rows, outs, strict=True)],
        ]

    def while_loop(self, node: Node, given: list[Any]) -> list[Any]:
        prim: Any = node.prim
        constants, carry, steps = given[: prim.constants], given[prim.constants :], 0
        while self.values[self.run(prim.test, [*constants, *carry])[0]]:
            if steps == prim.most:
                raise prim.refusal(0, (), 1)
            carry = self.run(prim.body, [*constants, *carry])
            steps += 1
        return [*carry, self.add(constant(np.int64(steps)), node)]

    def cond(self, node: Node, given: list[Any]) -> list[Any]:
        prim: Any = node.prim
        condition, *operands = given
        return self.run(prim.then if self.values[condition] else prim.other, operands)

    def sized(self, node: Node, given: list[Any]) -> list[Any]:
        prim: Any = node.prim
        size, *operands = given
        body = prim.body.bind({prim.dim: int(self.values[size])})
        self.homes.update({b: self.at(a) for b, a in _homes(prim.body, body).items()})
        return self.run(body, operands)

    def dag_scan(self, node: Node, given: list[Any]) -> Node:
        """Node by node in topological order, messages in the order of the edges."""
        prim: Any = node.prim
        own, (message, cell) = prim.split(given), prim.one_by_one()
        n, edges = int(prim.nodes), self.values[own.edges]
        order = parts(self.values[own.order], n, edges.shape[1])
        near = edges[int(prim.reverse)]
        starts, listed = (
            (order.out_start, order.out_edge) if prim.reverse else (order.in_start, order.in_edge)
        )
        states: dict[int, Node] = {}
        sums: dict[int, Node] = {}
        for v in order.order[::-1] if prim.reverse else order.order:
            total = self.add(constant(np.zeros(*_like(cell.inputs[0]))), node)
            for e in listed[starts[v] : starts[v + 1]]:
                rows = [self.add(slice_axis(x, 0, e, e + 1), node) for x in own.edge]
                (total,) = self.run(message, [total, states[near[e]], *rows, *own.message])
            rows = [self.add(slice_axis(x, 0, v, v + 1), node) for x in own.node]
            (states[v],) = self.run(cell, [total, *rows, *own.cell])
            sums[v] = total
        if not states:
            return self.add(constant(np.zeros(*_like(node))), node)
        both = [self.add(Concat(1)(states[v], sums[v]), node) for v in range(n)]
        return both[0] if n == 1 else self.add(Concat(0)(*both), node)


def _like(node: Node) -> tuple[Any, Any]:
    return node.shape, node.dtype.dtype


LOOPS: dict[type, Any] = {
    Scan: _GraphRun.scan,
    WhileLoop: _GraphRun.while_loop,
    Cond: _GraphRun.cond,
    Sized: _GraphRun.sized,
    DagScan: _GraphRun.dag_scan,
}
