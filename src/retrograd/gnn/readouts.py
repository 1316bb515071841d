"""Graphs as rows: what all nodes of a graph hold together."""

from __future__ import annotations

from typing import Any

from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph, as_tensor
from retrograd.gnn.message_passing import combine
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module


def readout(x: Any, graph: Graph, aggregate: str = "sum", *, score: Any = None) -> Tensor:
    """The nodes of each graph combined, `[num_graphs, ...]`, as `message_pass` combines messages:
    sum, mean, max, min, softmax, or attention with a `score` `[N]`. 0 for a graph without nodes.

    `ShapeError` for another number of rows than nodes, `OptionError` for an unknown aggregate.

    >>> from retrograd import gnn
    >>> g = gnn.batch([gnn.Graph(2, []), gnn.Graph(1, [])])
    >>> gnn.readout([[1.0], [2.0], [4.0]], g, "mean").tolist()
    [[1.5], [4.0]]
    """
    x = as_tensor(x)
    if x.ndim == 0 or x.shape[0] != graph.num_nodes:
        raise ShapeError(f"readout: x is {x.shape}, but there are {graph.num_nodes} nodes")
    return combine(x, graph.node_graph, graph.num_graphs, aggregate, score)


class AttentionReadout(Module):
    """`sum_v softmax(s(x_v)) f(x_v)` over the nodes of each graph, with linear maps s and f:
    `[N, in_features]` to `[num_graphs, out_features]`. Y. Li et al., Gated graph sequence neural
    networks (2016).

    `ShapeError` for other features or another number of nodes.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.AttentionReadout(3, 2)(rg.ones((4, 3)), gnn.Graph(4, [])).shape
    (1, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, *, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.score = Linear(in_features, 1, generator=generator)
        self.value = Linear(in_features, out_features, generator=generator)

    def forward(self, x: Any, graph: Graph) -> Tensor:
        score = self.score(x).reshape((graph.num_nodes,))
        return readout(self.value(x), graph, "attention", score=score)
