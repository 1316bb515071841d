"""Attention along edges."""

from __future__ import annotations

from typing import Any

from retrograd.errors import OptionError, ShapeError
from retrograd.functions import creation, manipulation
from retrograd.functions.activations import leaky_relu
from retrograd.functions.random.generator import Generator
from retrograd.functions.segment_ops import segment_softmax, segment_sum
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph, as_tensor
from retrograd.nn import init
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


class GATConv(Module):
    """Attention over the edges into a node and a loop, in several heads:

        s_e = a . leaky_relu(x_u W_s + x_v W_t + f_e W_f)
        y_v = sum of softmax(s)_e w_e x_u W_s + b

    The second version, in which a node can prefer any other: S. Brody et al., How attentive are
    graph attention networks? (2022). Heads lie side by side (`[N, heads * out_features]`), or are
    averaged without `concat`. `edge_features` are the width of edge features, if there are any, of
    which loops have none.

    `OptionError` for less than one head, `ShapeError` for other features, and for edge features
    exactly if the layer was made without them.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> layer = gnn.GATConv(3, 2, heads=4)
    >>> layer(rg.ones((4, 3)), gnn.Graph(4, [[0, 1], [1, 2]])).shape
    (4, 8)
    """

    def __init__(
        self, in_features: int, out_features: int, heads: int = 1, *, concat: bool = True,
        slope: float = 0.2, self_loops: bool = True, edge_features: int = 0, bias: bool = True,
        generator: Generator | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if heads < 1:
            raise OptionError(f"GATConv has at least one head, not {heads}")
        options: Any = {"generator": generator, "dtype": dtype}
        self.heads, self.width, self.concat = heads, out_features, concat
        self.slope, self.self_loops = slope, self_loops
        self.from_source = Linear(in_features, heads * out_features, False, **options)
        self.from_target = Linear(in_features, heads * out_features, False, **options)
        self.from_edge = (
            Linear(edge_features, heads * out_features, False, **options) if edge_features else None
        )
        self.attention = Parameter(init.xavier_uniform((heads, out_features), **options))
        total = heads * out_features if concat else out_features
        self.bias = Parameter(creation.zeros((total,), dtype=dtype)) if bias else None

    def forward(
        self, x: Any, graph: Graph, edge_weight: Any = None, edge_features: Any = None
    ) -> Tensor:
        x, n = as_tensor(x), graph.num_nodes
        if (edge_features is None) != (self.from_edge is None):
            raise ShapeError("GATConv: give edge_features exactly if the layer was made for them")
        shape = (self.heads, self.width)
        a, b = (f(x).reshape((n, *shape)) for f in (self.from_source, self.from_target))
        sent = a[graph.source]
        seen = sent + b[graph.target]
        if self.from_edge is not None:
            seen = seen + self.from_edge(edge_features).reshape((graph.num_edges, *shape))
        score, ids = self._score(seen), graph.target
        if self.self_loops:
            score = manipulation.concat([score, self._score(a + b)], axis=0)
            ids = manipulation.concat([ids, graph.node_ids()], axis=0)
        share = segment_softmax(score, ids, n)
        own = share[: graph.num_edges]
        if edge_weight is not None:
            own = own * as_tensor(edge_weight)[:, None]
        y = segment_sum(sent * own[:, :, None], graph.target, n)
        if self.self_loops:
            y = y + a * share[graph.num_edges :][:, :, None]
        y = y.reshape((n, self.heads * self.width)) if self.concat else y.mean(axis=1)
        return y if self.bias is None else y + self.bias

    def _score(self, seen: Any) -> Any:
        return (leaky_relu(seen, self.slope) * self.attention).sum(axis=-1)
