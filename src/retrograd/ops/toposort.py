"""The order in which the nodes of a directed acyclic graph are computed.

What follows from the list of edges alone is one array of int64, made in linear time, so that other
ops need not find it again. For N nodes and E edges it holds, one after the other:

- the number of levels;
- N nodes in order, level after level, those of a level by their number;
- N + 1 places in these, where each level starts; N from the last level on;
- N + 1 places where in the next but one the edges into each node start;
- N + 1 places where in the last the edges out of each node start;
- E edges, by the node they lead to;
- E edges, by the node they come from.

A node's level is the length of the longest path to it. Edges of one node keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import CycleError, DTypeError, IndexRangeError, ShapeError
from retrograd.ir import Dim, Node, Op, TensorType, Trait, declare, int64

Array = np.ndarray[Any, Any]


class TopologicalOrder(NamedTuple):
    """The parts of the array, by name."""

    order: Any
    level: Any
    in_start: Any
    out_start: Any
    in_edge: Any
    out_edge: Any
    levels: int


def order_size(nodes: int | Dim, edges: int | Dim) -> int | Dim:
    """The length of the array."""
    return 4 * nodes + 2 * edges + 4


def parts(array: Array, nodes: int, edges: int) -> TopologicalOrder:
    """The parts of an array."""
    lengths = (nodes, nodes + 1, nodes + 1, nodes + 1, edges, edges)
    ends = np.cumsum([1, *lengths])
    found = [array[a:b] for a, b in pairwise(ends)]
    order, level, in_start, out_start, in_edge, out_edge = found
    return TopologicalOrder(order, level, in_start, out_start, in_edge, out_edge, int(array[0]))


@declare
class DagOrder(Op):
    """`edges` int64 `[..., 2, E]`, sources and targets, as the array that this module describes,
    `[..., 4 nodes + 2 E + 4]`.

    An edge to a node that does not exist is an `IndexRangeError`, a cycle a `CycleError`; both name
    what is wrong.
    """

    name = "dag_order"
    traits = frozenset({Trait.DETERMINED})
    arity = 1
    nodes: int | Dim

    def infer(self, *types: TensorType) -> TensorType:
        (edges,) = types
        check_edges(self, edges)
        *stack, _, count = edges.shape
        return TensorType(int64, (*stack, order_size(self.nodes, count)))

    def reference(self, *arrays: Any) -> Any:
        (edges,), n = arrays, int(self.nodes)
        *stack, _, count = edges.shape
        found = [_ordered(edges[i], n) for i in np.ndindex(*stack)]
        return np.array(found, np.int64).reshape(*stack, order_size(n, count))

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


def _ordered(edges: Array, n: int) -> Array:
    """The array of one graph."""
    source, target = edges
    check_ends(edges, n)
    in_edge, out_edge = (np.argsort(end, kind="stable") for end in (target, source))
    in_start, out_start = (_starts(end, n) for end in (target, source))
    waiting = np.diff(in_start)  # edges from nodes that are not placed yet
    order: list[int] = []
    level = [0]
    ready = np.flatnonzero(waiting == 0).tolist()
    while ready:
        order += ready
        level.append(len(order))
        following = []
        for v in ready:
            for e in out_edge[out_start[v] : out_start[v + 1]]:
                waiting[target[e]] -= 1
                if waiting[target[e]] == 0:
                    following.append(int(target[e]))
        ready = sorted(following)
    if len(order) < n:
        raise cycle_error(edges, waiting > 0)
    levels = np.full(n + 1, n)
    levels[: len(level)] = level
    found = [[len(level) - 1], order, levels, in_start, out_start, in_edge, out_edge]
    return np.concatenate([np.asarray(x, np.int64) for x in found])


def check_edges(op: Op, edges: TensorType) -> None:
    """Edges are int64 `[..., 2, E]`."""
    if edges.dtype is not int64:
        raise DTypeError(f"{op.name} takes edges as int64, not {edges}")
    if edges.rank < 2 or edges.shape[-2] != 2:
        raise ShapeError(f"{op.name} takes edges as [2, E], sources and targets, not {edges}")


def check_ends(edges: Array, nodes: int) -> None:
    """`IndexRangeError` for the first edge to or from a node that does not exist."""
    outside = (edges < 0) | (edges >= nodes)
    if outside.any():
        e = int(np.flatnonzero(outside.any(axis=0))[0])
        u, v = (int(x) for x in edges[:, e])
        wrong = v if 0 <= u < nodes else u
        raise IndexRangeError(
            f"edge {e} leads from node {u} to node {v}, but there is no node {wrong} among "
            f"{nodes} nodes"
        )


def _starts(end: Array, nodes: int) -> Array:
    """Where the edges of each node start, if they are sorted by the node."""
    return np.concatenate([[0], np.cumsum(np.bincount(end, minlength=nodes))])


def cycle_error(edges: Array, left: Array) -> CycleError:
    """The error for a cycle, whose nodes it names; `left` marks nodes that have to wait for
    others of them."""
    before: dict[int, int] = {}
    for u, v in edges.T.tolist():
        if left[u] and left[v]:
            before.setdefault(v, u)
    v = int(np.flatnonzero(left)[0])
    seen: dict[int, None] = {}
    while v not in seen:  # back along edges among these nodes, which there always are
        seen[v] = None
        v = before[v]
    walk = list(seen)
    cycle = [*reversed(walk[walk.index(v) :])]
    start = cycle.index(min(cycle))
    cycle = cycle[start:] + cycle[:start]
    shown = [*cycle, cycle[0]]
    text = " -> ".join(map(str, shown if len(shown) < 20 else [*shown[:10], "...", *shown[-5:]]))
    return CycleError(f"the graph has a cycle of {len(cycle)} nodes: {text}")
