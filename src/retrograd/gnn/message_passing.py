"""Messages along edges, and what a node makes of those that reach it.

Everything is gathers and segment reductions, which combine the messages to a node in the order of
the edges: results, and gradients, do not depend on the number of threads, nor on which other graphs
are in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import OptionError, ShapeError
from retrograd.functions import creation, manipulation
from retrograd.functions import elementwise as el
from retrograd.functions.segment_ops import (
    segment_max,
    segment_mean,
    segment_min,
    segment_softmax,
    segment_sum,
)
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph, as_tensor

AGGREGATES = ("sum", "mean", "max", "min", "softmax", "attention")


def message_pass(
    x: Any,
    graph: Graph,
    edge_weight: Any = None,
    aggregate: str = "sum",
    *,
    message: Callable[[Any, Any], Any] | None = None,
    edge_features: Any = None,
    score: Any = None,
) -> Tensor:
    """`y_v = aggregate over edges e = (u, v) of w_e message(x_u, features of e)`, `[N, ...]`.

    x is `[N, ...]`, `edge_weight` `[E]` or `[E, ...]` (None: 1). `message`, if given, is called
    once, with rows `x_u` for all edges and `edge_features`, and returns `[E, ...]`; without it the
    message is `x_u`, plus the edge features if there are any. `aggregate` is one of

    | | |
    |---|---|
    | sum, mean | 0 for a node that no edge leads to |
    | max, min | of each feature; 0 for such a node; equal ones share the gradient |
    | softmax | the sum weighted by the softmax of each feature over the node's edges |
    | attention | the sum weighted by the softmax of `score`, `[E]`, or `[E, heads]` for messages
    `[E, heads, ...]` |

    All of it is differentiable in x, weights, features and scores. `ShapeError` where lengths do
    not fit, `OptionError` for another aggregate.

    >>> from retrograd import gnn
    >>> g = gnn.Graph(3, [[0, 1], [2, 2]])
    >>> gnn.message_pass([[1.0], [2.0], [4.0]], g, edge_weight=[1.0, 0.5]).tolist()
    [[0.0], [0.0], [2.0]]
    """
    x = as_tensor(x)
    if x.ndim == 0 or x.shape[0] != graph.num_nodes:
        raise ShapeError(f"message_pass: x is {x.shape}, but there are {graph.num_nodes} nodes")
    sent = x[graph.source]
    if message is not None:
        sent = message(sent, edge_features)
    elif edge_features is not None:
        sent = sent + edge_features
    if sent.ndim == 0 or sent.shape[0] != graph.num_edges:
        raise ShapeError(f"message_pass: messages are {sent.shape}, for {graph.num_edges} edges")
    if edge_weight is not None:
        sent = sent * spread(edge_weight, sent, graph.num_edges, "edge_weight")
    return combine(sent, graph.target, graph.num_nodes, aggregate, score)


def spread(weight: Any, rows: Any, edges: Any, what: str) -> Any:
    """Values of edges as factors of rows of any rank."""
    weight = as_tensor(weight)
    if weight.ndim == 0 or weight.shape[0] != edges or weight.ndim > rows.ndim:
        raise ShapeError(f"message_pass: {what} is {weight.shape}, the messages {rows.shape}")
    more = rows.ndim - weight.ndim
    return manipulation.reshape(weight, (*weight.shape, *(1,) * more)) if more else weight


def combine(rows: Any, ids: Any, size: Any, aggregate: str, score: Any = None) -> Any:
    """Rows of the same id combined: `[size, ...]`."""
    if (score is not None) != (aggregate == "attention"):
        raise OptionError('aggregate="attention" comes with score=, and no other does')
    if aggregate == "sum":
        return segment_sum(rows, ids, size)
    if aggregate == "mean":
        return segment_mean(rows, ids, size)
    if aggregate in ("max", "min"):
        found = (segment_max if aggregate == "max" else segment_min)(rows, ids, size)
        present = segment_sum(_ones(rows), ids, size) > 0
        return el.where(present, found, 0.0)
    if aggregate == "softmax":
        return segment_sum(segment_softmax(rows, ids, size) * rows, ids, size)
    if aggregate == "attention":
        share = segment_softmax(as_tensor(score), ids, size)
        return segment_sum(rows * spread(share, rows, rows.shape[0], "score"), ids, size)
    raise OptionError(f"aggregate is one of {', '.join(AGGREGATES)}, not {aggregate!r}")


def _ones(rows: Any) -> Any:
    """One for each row, along axes of length 1."""
    return creation.ones((rows.shape[0], *(1,) * (rows.ndim - 1)), dtype="int64")
