"""Records of the ops that go through graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Graph, TensorType, float32, int32
from retrograd.ops.control import DagScan
from retrograd.ops.toposort import DagOrder
from retrograd.verify.records.common import SIZES, M, N, f64, i64
from retrograd.verify.records.record import Array, Failure, Record, Sample, Symbolic, rng_for

DAGS: tuple[tuple[int, list[list[int]]], ...] = (
    (6, [[0, 0, 1, 2, 2, 3, 0], [2, 3, 3, 4, 4, 5, 2]]),  # parallel edges, two levels apart
    (4, [[3, 2, 1], [2, 1, 0]]),  # a chain against the numbers
    (5, [[0, 0, 0, 0], [1, 2, 3, 4]]),  # a star
    (3, [[], []]),
    (1, [[], []]),
    (0, [[], []]),
)

# The message w h, the cell tanh(a W + x), of states of 2 numbers.
SENT = """graph {
  %0: f64[_rows, 2] = input
  %1: f64[_rows] = input
  %2: f64[_rows, 2] = expand(%1) axes=(1,)
  %3: f64[_rows, 2] = mul(%0, %2)
  return %3
}
"""
MADE = """graph {
  %0: f64[_rows, 2] = input
  %1: f64[_rows, 2] = input
  %2: f64[2, 2] = input
  %3: f64[_rows, 2] = dot_general(%0, %2) a_contract=(1,) b_contract=(0,)
  %4: f64[_rows, 2] = add(%3, %1)
  %5: f64[_rows, 2] = tanh(%4)
  return %5
}
"""
# Three sums of a state's 2 numbers, scaled by a parameter; the cell takes two of them.
SUMS = """graph {
  %0: f64[_rows, 2] = input
  %1: f64[] = input
  %2: f64[_rows, 2] = expand(%1) axes=(0, 1)
  %3: f64[_rows, 2] = mul(%0, %2)
  %4: f64[_rows, 1] = slice(%0) starts=(0, 1) stops=(_rows, 2) steps=(1, 1)
  %5: f64[_rows, 3] = concat(%3, %4) axis=1
  return %5
}
"""
TAKES = """graph {
  %0: f64[_rows, 3] = input
  %1: f64[_rows, 2] = input
  %2: f64[_rows, 2] = slice(%0) starts=(0, 1) stops=(_rows, 3) steps=(1, 1)
  %3: f64[_rows, 2] = mul(%2, %2)
  %4: f64[_rows, 2] = add(%3, %1)
  return %4
}
"""


def edges_of(pairs: Any) -> Array:
    return np.array(pairs, np.int64).reshape(2, -1)


def depth(edges: Array, n: int) -> list[int]:
    """The length of the longest path to each node, by relaxation."""
    found = [0] * n
    for _ in range(n):
        for u, v in edges.T:
            found[v] = max(found[v], found[u] + 1)
    return found


def ordered(op: Any, edges: Array) -> Array:
    """By levels; inside of a level as they get ready when edges are gone through from the first
    node of the level before to the last, each node's edges in order."""
    n = op.nodes
    levels = depth(edges, n)
    order = [v for v in range(n) if levels[v] == 0]
    starts = [0]
    waiting = [int((edges[1] == v).sum()) for v in range(n)]
    for u in order:  # the list grows
        for a, v in edges.T:
            if a == u:
                waiting[v] -= 1
                if waiting[v] == 0:
                    order.append(int(v))
    starts += [i for i in range(1, n) if levels[order[i]] != levels[order[i - 1]]]
    count = len(starts) if n else 0
    level = [*starts[:count], *[n] * (n + 1 - count)]
    by = [[e for v in range(n) for e in np.flatnonzero(end == v)] for end in edges[::-1]]
    starts_of = [[int((end < v).sum()) for v in range(n + 1)] for end in edges[::-1]]
    return np.array([count, *order, *level, *starts_of[0], *starts_of[1], *by[0], *by[1]], np.int64)


def orders() -> Iterator[Sample]:
    for n, pairs in DAGS:
        yield Sample(DagOrder(n), (edges_of(pairs),))


def chain_of(type: TensorType) -> Array:
    """Edges 0 -> 1 -> 2 ..., or the order of such a graph of as many nodes as edges and one."""
    shape = tuple(int(d) for d in type.shape)
    if len(shape) == 2:
        return np.stack([np.arange(shape[1]), np.arange(shape[1]) + 1])
    e = (shape[0] - 8) // 6
    return np.asarray(DagOrder(e + 1).reference(chain_of(i64(2, e))))


ORDER = Record(
    "dag_order",
    orders,
    ordered,
    failures=(
        Failure(DagOrder(3), (f64(2, 4),), DTypeError),
        Failure(DagOrder(3), (TensorType(int32, (2, 4)),), DTypeError),
        Failure(DagOrder(3), (i64(4),), ShapeError),
        Failure(DagOrder(3), (i64(4, 2),), ShapeError),
    ),
    symbolic=(Symbolic(DagOrder(M + 1), (i64(2, M),), SIZES, whole=chain_of),),
    vary=lambda x, k: x,
)


def of_texts(nodes: Any, message: str, cell: str, *counts: Any) -> DagScan:
    return DagScan(nodes, Graph.parse(message), Graph.parse(cell), *counts)


def recursive(op: Any, edges: Array, order: Array, *rest: Array) -> Array:
    """Each state by recursion, in Python."""
    full = "tanh" in str(op.cell)
    w, x, m = rest if full else (np.zeros(0), *rest[::-1])
    near, far = edges[::-1] if op.reverse else edges
    known: dict[int, tuple[Array, Array]] = {}

    def state(v: int) -> tuple[Array, Array]:
        if v not in known:
            into = np.flatnonzero(far == v)
            if full:
                total = np.sum([w[e] * state(int(near[e]))[0] for e in into], axis=0) + np.zeros(2)
                known[v] = np.tanh(total @ m + x[v]), total
            else:
                sent = [np.append(m * h, h[1]) for h in (state(int(near[e]))[0] for e in into)]
                total = np.sum(sent, axis=0) + np.zeros(3)
                known[v] = total[1:] ** 2 + x[v], total
        return known[v]

    rows = [np.concatenate(state(v)) for v in range(op.nodes)]
    width = 4 if full else 5
    return np.array(rows).reshape(-1, width).astype(x.dtype)


def scans() -> Iterator[Sample]:
    rng = rng_for("dag_scan")
    for k, (n, pairs) in enumerate(DAGS):
        edges = edges_of(pairs)
        order = DagOrder(n).reference(edges)
        for reverse in (False, True)[: 2 if k < 2 else 1]:
            x, w = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, edges.shape[1])
            inputs: tuple[Array, ...] = (edges, order, w, x, rng.uniform(-1, 1, (2, 2)))
            yield Sample(of_texts(n, SENT, MADE, 1, 0, 1, reverse), inputs, k < 3)
        inputs = (edges, order, np.array(0.7), x / 2)
        yield Sample(of_texts(n, SUMS, TAKES, 0, 1, 1), inputs, k < 2)
    small = tuple(a.astype(np.float32) for a in (w, x, rng.uniform(-1, 1, (2, 2))))
    sent, made = (t.replace("f64", "f32") for t in (SENT, MADE))
    yield Sample(of_texts(n, sent, made, 1, 0, 1), (edges, order, *small))


def varied(x: Array, k: int) -> Array:
    return x if x.dtype.kind == "i" else np.asarray(np.roll(x, k))


TYPES = (i64(2, 4), i64(20), f64(4), f64(2, 2), f64(2, 2))
PLAIN = of_texts(2, SENT, MADE, 1, 0, 1)
ANY_WIDTH = of_texts(
    M + 1, SENT.replace("2]", "N]"), MADE.replace("2]", "N]").replace("[2", "[N"), 1, 0, 1
)
SCAN = Record(
    "dag_scan",
    scans,
    recursive,
    (2, 3, 4),
    failures=(
        Failure(PLAIN, (f64(2, 4), *TYPES[1:]), DTypeError),
        Failure(PLAIN, (i64(3, 2, 4), *TYPES[1:]), ShapeError),
        Failure(of_texts(3, SENT, MADE, 1, 0, 1), TYPES, ShapeError),
        Failure(of_texts(2, SENT, MADE, 0, 1, 1), TYPES, ShapeError),
        Failure(of_texts(2, SENT, TAKES, 1, 0, 1), (*TYPES[:4],), ShapeError),
        Failure(PLAIN, (*TYPES[:2], f64(5), *TYPES[3:]), ShapeError),
        Failure(PLAIN, (*TYPES[:3], f64(3, 2), f64(2, 2)), ShapeError),
        Failure(PLAIN, (*TYPES[:4], TensorType(float32, (2, 2))), ShapeError),
    ),
    symbolic=(
        Symbolic(
            of_texts(M + 1, SENT, MADE, 1, 0, 1),
            (i64(2, M), i64(6 * M + 8), f64(M), f64(M + 1, 2), f64(2, 2)),
            SIZES,
            whole=chain_of,
        ),
        Symbolic(
            ANY_WIDTH,
            (i64(2, M), i64(6 * M + 8), f64(M), f64(M + 1, N), f64(N, N)),
            SIZES,
            whole=chain_of,
        ),
    ),
    vary=varied,
)


def records() -> list[Record]:
    return [ORDER, SCAN]
