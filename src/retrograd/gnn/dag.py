"""Networks on directed acyclic graphs: a node's state follows from those of its predecessors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd import pytree
from retrograd.errors import ShapeError
from retrograd.gnn.graph import Graph, as_rows, as_tensor
from retrograd.ir import Dim, TensorType
from retrograd.transforms import dag_scan as dag
from retrograd.transforms.dag_scan import order_parts


class Edge(NamedTuple):
    """What a message knows of its edges: rows for all edges that are looked at together.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.Edge(None, None, None, None)._fields
    ('weight', 'features', 'source', 'target')
    """

    weight: Any  # `[rows]`, or None
    features: Any  # a tree of `[rows, ...]`, or None
    source: Any  # node inputs of the nodes that edges come from
    target: Any  # node inputs of the nodes that edges lead to


def dag_scan(
    cell: Callable[[Any, Any], Any],
    graph: Graph,
    x: Any,
    edge_weight: Any = None,
    *,
    edge_features: Any = None,
    message: Callable[[Any, Edge], Any] | None = None,
    state: Any = None,
) -> Any:
    """States of all nodes, in topological order:

        h_v = cell(sum over edges e = (u, v) of message(h_u, e), x_v),   message = w_e h_u

    `cell(a, x)` and `message(h, edge)` are written on rows: a, x and h are `[rows, ...]`, or trees
    of these, and `edge` an `Edge`. They are called once, with a number of rows that has no value,
    and may use any differentiable operation that keeps rows apart, and tensors from around them.
    Cells may bring their own `message` and `state`, as `gnn.TreeLSTM` does.

    `state` tells the shape of a state without rows: a size, a shape, or a tree of these; by default
    it is that of a row of x. A state may be a tree of arrays of one dtype. Returns states of all
    nodes, `[N, ...]`.

    Gradients of any order exist with respect to node inputs, weights, edge features and everything
    that cell and message use. Under `jit` with symbolic sizes one compilation serves all graphs.
    Results have the same bits for any number of threads, and for a graph alone or in a batch.

    `CycleError` names the nodes of a cycle; `ShapeError` tells where shapes do not fit.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> g = gnn.Graph(3, [[0, 1, 0], [1, 2, 2]])
    >>> gnn.dag_scan(lambda a, x: a + x, g, [[1.0], [0.0], [0.0]], [2.0, 3.0, 0.5]).tolist()
    [[1.0], [2.0], [6.5]]
    """
    x = as_rows(x)
    n, e = graph.num_nodes, graph.num_edges
    _check(x, n, "x", "nodes")
    weight = None if edge_weight is None else as_tensor(edge_weight)
    edge_features = as_rows(edge_features)
    _check(weight, e, "edge_weight", "edges")
    _check(edge_features, e, "edge_features", "edges")
    if message is None:
        message = getattr(cell, "message", None)
    ends: tuple[Any, Any] = (None, None)
    if message is None:
        message = _weighted
    else:
        ends = (_rows(x, graph.source), _rows(x, graph.target))
    if state is None:
        state = getattr(cell, "state", None)
    types = _row_types(x) if state is None else _state_types(state, x)
    edge = Edge(weight, edge_features, *ends)
    return dag.dag_scan(cell, message, graph.edges, graph.order, n, x, edge, types)


def _weighted(h: Any, edge: Edge) -> Any:
    w = edge.weight
    if w is None:
        return h

    def times(part: Any) -> Any:
        return part * w.reshape((*w.shape, *(1,) * (part.ndim - w.ndim)))

    return pytree.map(times, h)


def _rows(x: Any, at: Any) -> Any:
    return pytree.map(lambda t: t[at], x)


def _check(held: Any, size: Any, name: str, what: str) -> None:
    for path, leaf in zip(pytree.paths(held), pytree.flatten(held)[0], strict=True):
        if leaf.ndim == 0 or leaf.shape[0] != size:
            raise ShapeError(
                f"dag_scan: {name}{path} has the shape {leaf.shape}, but there are {size} {what}"
            )


def _row_types(x: Any) -> Any:
    return pytree.map(lambda t: TensorType(t.dtype, t.shape[1:]), x)


def _state_types(state: Any, x: Any) -> Any:
    """Types of rows of a state, from sizes and shapes; of the dtype of the first floating input."""
    kinds = [t.dtype for t in pytree.flatten(x)[0] if t.dtype.is_float]
    if isinstance(state, TensorType):
        return state
    if not kinds:
        raise ShapeError("dag_scan: x has no floating array, so the dtype of states is not known")

    def of(s: Any) -> Any:
        if isinstance(s, TensorType):
            return s
        if isinstance(s, dict):
            return {key: of(value) for key, value in s.items()}
        if isinstance(s, int | Dim):
            return TensorType(kinds[0], (s,))
        if isinstance(s, tuple) and all(isinstance(d, int | Dim) for d in s):
            return TensorType(kinds[0], s)
        if isinstance(s, tuple | list):
            return type(s)([of(value) for value in s])
        raise ShapeError(f"dag_scan: state is made of sizes and shapes, but holds {s!r}")

    return of(state)


def topological_order(graph: Graph) -> Any:
    """The nodes in an order in which edges lead forward, `[N]`: by level, the length of the longest
    path to a node, and then by number. `CycleError` names the nodes of a cycle.

    >>> from retrograd import gnn
    >>> gnn.topological_order(gnn.Graph(3, [[2, 1], [1, 0]])).tolist()
    [2, 1, 0]
    >>> gnn.topological_order(gnn.Graph(3, [[0, 1, 2], [1, 2, 1]]))
    Traceback (most recent call last):
    retrograd.errors.CycleError: the graph has a cycle of 2 nodes: 1 -> 2 -> 1...
    """
    order = graph.order[1 : 1 + graph.num_nodes]
    if not isinstance(graph.num_nodes, Dim):
        order.value()
    return order


def levels(graph: Graph) -> list[Any]:
    """The nodes of each level of an acyclic graph, as NumPy arrays.

    N nodes give vectors `[n_i]` whose sizes add up to N. `CycleError` names the nodes of a cycle.

    >>> from retrograd import gnn
    >>> [nodes.tolist() for nodes in gnn.levels(gnn.Graph(3, [[0, 1], [2, 2]]))]
    [[0, 1], [2]]
    """
    found = order_parts(graph.order.value(), graph.num_nodes, graph.num_edges)
    return [found.order[found.level[k] : found.level[k + 1]] for k in range(found.levels)]
