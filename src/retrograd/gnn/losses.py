"""Losses of nodes, edges and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import OptionError, ShapeError
from retrograd.functions import creation, manipulation
from retrograd.functions import elementwise as el
from retrograd.functions.activations import log_sigmoid
from retrograd.functions.reductions import logsumexp
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph, as_tensor
from retrograd.nn import functional


def classification_loss(logits: Any, labels: Any, mask: Any = None) -> Tensor:
    """Cross-entropy of rows, which are nodes, edges or graphs: `[n, classes]` and labels `[n]`;
    the mean over the rows where `mask` holds, over all without it. 0 if it holds nowhere.

    `ShapeError` where logits, labels and mask do not fit.

    >>> from retrograd import gnn
    >>> gnn.classification_loss([[0.0, 0.0], [9.0, 0.0]], [0, 1], mask=[True, False]).item()
    0.6931471824645996
    """
    logits, labels = as_tensor(logits), as_tensor(labels)
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        raise ShapeError(f"classification_loss: logits {logits.shape}, labels {labels.shape}")
    if mask is None:
        return functional.cross_entropy(logits, labels)
    chosen = _mask(mask, labels)
    each = functional.cross_entropy(logits, el.where(chosen, labels, 0), reduction="none")
    return _mean(each, chosen)


def regression_loss(prediction: Any, target: Any, mask: Any = None, kind: str = "mse") -> Tensor:
    """The mean of `(x - t)^2` ("mse"), `|x - t|` ("l1") or Huber's function of rows, over those
    where `mask` `[n]` holds.

    `OptionError` for another kind, `ShapeError` where prediction, target and mask do not fit.

    >>> from retrograd import gnn
    >>> gnn.regression_loss([1.0, 2.0], [0.0, 5.0], mask=[True, False]).item()
    1.0
    """
    losses: dict[str, Any] = {
        "mse": functional.mse_loss, "l1": functional.l1_loss, "huber": functional.huber_loss,
    }  # fmt: skip
    if kind not in losses:
        raise OptionError(f"kind is one of {', '.join(losses)}, not {kind!r}")
    x, t = as_tensor(prediction), as_tensor(target)
    if mask is None:
        return losses[kind](x, t)
    each = losses[kind](x, t, reduction="none")
    if each.ndim > 1:
        each = each.mean(axis=tuple(range(1, each.ndim)))
    return _mean(each, _mask(mask, each))


def _mask(mask: Any, rows: Any) -> Any:
    mask = as_tensor(mask)
    if mask.shape != rows.shape[:1] or mask.dtype.name != "bool":
        raise ShapeError(f"a mask has a bool for each of {rows.shape[0]} rows, not {mask.shape}")
    return mask


def _mean(each: Any, chosen: Any) -> Any:
    count = el.maximum(el.astype(chosen, each.dtype).sum(), 1.0)
    return el.where(chosen, each, 0.0).sum() / count


# -- links ---------------------------------------------------------------------------------------
def negative_edges(graph: Graph, count: int, seed: int) -> Tensor:
    """`[2, count]` pairs of different nodes between which there is no edge, drawn uniformly, with
    repetitions; of a batch, pairs within one graph. `OptionError` where there are none.

    >>> from retrograd import gnn
    >>> gnn.negative_edges(gnn.Graph(2, [[0], [1]]), 3, seed=0).tolist()
    [[1, 1, 1], [0, 0, 0]]
    """
    rng = np.random.default_rng(seed)
    n, ends = graph.num_nodes, graph.edges.value()
    starts = np.append(graph.graph_start.value(), n)
    sizes = np.diff(starts)
    taken = np.unique(np.append(ends[0] * n + ends[1], np.arange(n) * (n + 1)))
    pairs = sizes.astype(np.float64) ** 2
    free = int(pairs.sum()) - len(taken)
    if count and free <= 0:
        raise OptionError("negative_edges: an edge leads from every node to every other")
    if free < 0.1 * pairs.sum():  # drawing would mostly hit edges: list what is left
        own = [
            (a + np.arange(s))[:, None] * n + (a + np.arange(s))[None, :]
            for a, s in zip(starts[:-1], sizes, strict=True)
        ]
        left = np.setdiff1d(np.concatenate([x.ravel() for x in own]), taken)
        found = left[rng.integers(0, len(left), count)]
        return Tensor.of(np.stack([found // n, found % n]))
    drawn = np.zeros(0, np.int64)
    while len(drawn) < count:
        which = rng.choice(len(sizes), 2 * count + 8, p=pairs / pairs.sum())
        u, v = (
            starts[which] + (rng.random(len(which)) * sizes[which]).astype(np.int64) for _ in "uv"
        )
        key = u * n + v
        drawn = np.append(drawn, key[~np.isin(key, taken)])
    drawn = drawn[:count]
    return Tensor.of(np.stack([drawn // n, drawn % n]))


def link_scores(x: Any, pairs: Any) -> Tensor:
    """The inner product of the rows of x of each of the pairs `[2, P]`.

    x is `[N, F]`, the result `[P]`. `IndexRangeError` for a node that is not there.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.link_scores([[1.0, 2.0], [3.0, 4.0]], [[0], [1]]).tolist()
    [11.0]
    """
    x, pairs = as_tensor(x), as_tensor(pairs)
    return (x[pairs[0]] * x[pairs[1]]).sum(axis=-1)


def link_prediction_loss(x: Any, edges: Any, negatives: Any) -> Tensor:
    """`-mean(log sigmoid(x_u . x_v))` over edges, and of `-x_u . x_v` over pairs without one, see
    `negative_edges`.

    x is `[N, F]`, edges and pairs are `[2, E]` and `[2, P]`. `IndexRangeError` for a node that is
    not there.

    >>> from retrograd import gnn
    >>> gnn.link_prediction_loss([[0.0], [1.0]], [[0], [1]], [[1], [0]]).item()
    1.3862943649291992
    """
    there, not_there = (link_scores(x, pairs) for pairs in (edges, negatives))
    return -log_sigmoid(there).mean() - log_sigmoid(-not_there).mean()


# -- matching ------------------------------------------------------------------------------------
def sinkhorn(scores: Any, iterations: int = 20, temperature: float = 1.0) -> Tensor:
    """A matrix with rows, and nearly columns too, that sum to one: `exp(scores / temperature)` with
    columns and rows scaled in turn, in logarithms. Square matrices `[..., n, n]`. R. Sinkhorn
    (1964); as a layer, G. Mena et al. (2018). Differentiable in the scores.

    `ShapeError` for matrices that are not square, `OptionError` for less than one iteration or a
    temperature that is not positive.

    >>> from retrograd import gnn
    >>> gnn.sinkhorn([[9.0, 0.0], [0.0, 9.0]]).tolist()
    [[0.99987, 0.00012], [0.00012, 0.99987]]
    """
    x = as_tensor(scores)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"sinkhorn scales square matrices, not {x.shape}")
    if iterations < 1 or not temperature > 0:
        raise OptionError("sinkhorn takes at least one iteration, and a positive temperature")
    x = x / temperature
    for _ in range(iterations):
        x = x - logsumexp(x, axis=-2, keepdims=True)
        x = x - logsumexp(x, axis=-1, keepdims=True)
    return el.exp(x)


def matching_loss(
    x: Any, graph: Graph, y: Any, other: Graph, *, node_cost: float = 1.0, edge_cost: float = 1.0,
    iterations: int = 50, temperature: float = 0.05,
) -> tuple[Any, Any]:  # fmt: skip
    """`(cost, assignment)`: how much it takes, about, to make one graph of another.

    A surrogate of the edit distance that is differentiable in the features x `[N, F]` and
    y `[M, F]`. Nodes are assigned to nodes, or to nothing, by `sinkhorn` of the costs

        |x_i - y_j|^2 + edge_cost |d_i - d_j| / 2,     node_cost + edge_cost d_i / 2 for nothing

    with d the number of edges, in and out; the cost is that of the soft assignment
    `[N + M, M + N]`, whose last M rows and N columns stand for nothing. After K. Riesen and
    H. Bunke, Approximate graph edit distance computation by means of bipartite graph matching
    (2009).

    `ShapeError` where features and graphs do not fit.

    >>> from retrograd import gnn
    >>> g = gnn.Graph(2, [[0], [1]])
    >>> cost, _ = gnn.matching_loss([[0.0], [1.0]], g, [[1.0], [0.0]], g.reversed())
    >>> abs(cost.item()) < 1e-4
    True
    """
    x, y = as_tensor(x), as_tensor(y)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ShapeError(f"matching_loss: features {x.shape} and {y.shape}")
    n, m = x.shape[0], y.shape[0]
    degrees = [el.astype(g.in_degree() + g.out_degree(), x.dtype) for g in (graph, other)]
    d, e = (0.5 * edge_cost * k for k in degrees)
    between = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1) + el.abs(d[:, None] - e[None, :])
    lost = manipulation.broadcast_to((node_cost + d)[:, None], (n, n))
    made = manipulation.broadcast_to((node_cost + e)[None, :], (m, m))
    rows = [
        manipulation.concat([between, lost], axis=1),
        manipulation.concat([made, creation.zeros((m, n), dtype=x.dtype)], axis=1),
    ]
    cost = manipulation.concat(rows, axis=0)
    assignment = sinkhorn(-cost, iterations, temperature)
    return (assignment * cost).sum(), assignment
