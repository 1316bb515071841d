"""Edges left out at random, as a regulariser."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.functions import creation
from retrograd.functions.random.generator import Generator
from retrograd.gnn.checks import edge_numbers
from retrograd.gnn.graph import Graph
from retrograd.nn import init
from retrograd.nn.functional import dropout
from retrograd.nn.functional.dropouts import check_probability
from retrograd.nn.module.module import Module


class EdgeDropout(Module):
    """Weights for the edges of a graph: while training, 0 with probability p, else the weight
    divided by `1 - p`; in evaluation the weight itself. Sizes stay the same, so nothing is compiled
    again. See `nn.Dropout` for the random numbers.

    Weights are `[E]`. `OptionError` for a p that is no probability.

    >>> from retrograd import gnn
    >>> drop = gnn.EdgeDropout(0.5).eval()
    >>> drop(gnn.Graph(3, [[0, 1], [1, 2]])).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.generator = (generator or init.default_generator()).split()

    def forward(self, graph: Graph, edge_weight: Any = None) -> Any:
        weight = graph.edge_weight if edge_weight is None else edge_weight
        if weight is None:
            weight = creation.ones((graph.num_edges,))
        return dropout(weight, self.p, self.training, generator=self.generator)


def drop_edges(graph: Graph, p: float, seed: int) -> Graph:
    """The graph without some edges: each is left out with probability p.

    Edges are `[2, E]` before and `[2, E']` after. `OptionError` for a p that is no probability.

    >>> from retrograd import gnn
    >>> gnn.drop_edges(gnn.Graph(3, [[0, 1], [1, 2]]), 1.0, seed=0)
    Graph(3 nodes, 0 edges)
    """
    check_probability(p)
    stays = np.flatnonzero(np.random.default_rng(seed).random(graph.num_edges) >= p)
    return keep_edges(graph, stays)


def keep_edges(graph: Graph, stays: Any) -> Graph:
    """The graph with these edges only, in this order.

    `stays` are numbers of edges, or booleans `[E]`. `IndexRangeError` for an edge that is not
    there, `IndexKindError` for what is neither, `ShapeError` for another number of axes or of
    booleans.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.keep_edges(gnn.Graph(3, [[0, 1], [1, 2]]), [1]).edges.tolist()
    [[1], [2]]
    """
    stays = edge_numbers(stays, graph.num_edges)
    carried = ("edge_features", "edge_weight", "edge_type")
    fields = {name: pytree.map(lambda x: x[stays], getattr(graph, name)) for name in carried}
    return graph.replace(edges=graph.edges.value()[:, stays], **fields)
