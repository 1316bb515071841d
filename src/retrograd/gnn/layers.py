"""Layers that pass messages along the edges of a graph: x `[N, in_features]` to `[N, out]`.

Each takes `(x, graph, edge_weight=None)`; gradients with respect to weights of edges, features of
edges and everything else are exact.
"""

from __future__ import annotations

from typing import Any

from retrograd.errors import OptionError
from retrograd.functions import creation, manipulation
from retrograd.functions import elementwise as el
from retrograd.functions.linalg.norms import vector_norm
from retrograd.functions.random.generator import Generator
from retrograd.functions.segment_ops import segment_sum
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.cells import GRU
from retrograd.gnn.checks import check_types, check_weights
from retrograd.gnn.graph import Graph, as_tensor
from retrograd.gnn.message_passing import message_pass
from retrograd.nn import init
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


class GraphConv(Module):
    """`y_v = x_v W_1 + aggregate(w_e x_u) W_2 + b`. C. Morris et al. (2019).

    `[N, in_features]` to `[N, out_features]`. `ShapeError` for other features or another number of
    nodes, `OptionError` for an unknown aggregate.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.GraphConv(3, 2)(rg.ones((4, 3)), gnn.Graph(4, [[0, 1], [1, 2]])).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, aggregate: str = "sum", bias: bool = True,
        *, generator: Generator | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: Any = {"generator": generator, "dtype": dtype}
        self.aggregate = aggregate
        self.root = Linear(in_features, out_features, bias, **options)
        self.neighbour = Linear(in_features, out_features, False, **options)

    def forward(self, x: Any, graph: Graph, edge_weight: Any = None) -> Tensor:
        return self.root(x) + self.neighbour(message_pass(x, graph, edge_weight, self.aggregate))


def gcn_norm(graph: Graph, edge_weight: Any = None, self_loops: bool = True) -> tuple[Any, Any]:
    """The weights `w_e / sqrt(d_u d_v)` of edges and `1 / d_v` of the loops that are added to every
    node, with `d_v` the sum of the weights of the edges into v, and 1 for the loop; 0 where it is
    0.

    Weights must not be negative or NaN: a `FormatError` names the edge, where they are at hand.

    `[E]` and `[N]`.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> edges, loops = gnn.gcn_norm(gnn.Graph(2, [[0], [1]]))
    >>> edges.tolist(), loops.tolist()
    ([0.7071], [1.0, 0.5])
    """
    if edge_weight is None:
        weight: Any = creation.ones((graph.num_edges,))
    else:
        weight = as_tensor(edge_weight)
        if weight.is_computed and graph.edges.is_computed:
            check_weights(weight.value(), graph.edges.value(), negative=False)
    degree = segment_sum(weight, graph.target, graph.num_nodes)
    if self_loops:
        degree = degree + 1.0
        root = el.rsqrt(degree)
    else:
        root = el.where(degree > 0, el.rsqrt(el.where(degree > 0, degree, 1.0)), 0.0)
    return root[graph.source] * weight * root[graph.target], root * root


class GCNConv(Module):
    """`y = D^-1/2 (A + I) D^-1/2 x W + b`, A the matrix of edge weights. T. Kipf and M. Welling,
    Semi-supervised classification with graph convolutional networks (2017).

    x may be a `gnn.CSR` matrix. With `normalize=False` weights are used as they are, without loops.
    Weights must not be negative: see `gcn_norm`.

    `[N, in_features]` to `[N, out_features]`. `ShapeError` for other features or another number of
    nodes, `FormatError` for a negative weight.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.GCNConv(3, 2)(rg.ones((4, 3)), gnn.Graph(4, [[0, 1], [1, 2]])).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, normalize: bool = True,
        self_loops: bool = True, generator: Generator | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalize, self.self_loops = normalize, self_loops
        shape = (in_features, out_features)
        self.weight = Parameter(init.xavier_uniform(shape, generator=generator, dtype=dtype))
        self.bias = Parameter(creation.zeros((out_features,), dtype=dtype)) if bias else None

    def forward(self, x: Any, graph: Graph, edge_weight: Any = None) -> Tensor:
        h = x @ self.weight
        if self.normalize:
            weight, own = gcn_norm(graph, edge_weight, self.self_loops)
            weight, own = (el.astype(w, h.dtype) for w in (weight, own))
            y = message_pass(h, graph, weight)
            if self.self_loops:
                y = y + h * own[:, None]
        else:
            y = message_pass(h, graph, edge_weight)
        return y if self.bias is None else y + self.bias


class SAGEConv(Module):
    """`y_v = x_v W_1 + mean(w_e x_u) W_2 + b`, or another aggregate; of length 1 with
    `normalize`. W. Hamilton et al., Inductive representation learning on large graphs (2017).

    `[N, in_features]` to `[N, out_features]`. `ShapeError` for other features or another number of
    nodes, `OptionError` for an unknown aggregate.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.SAGEConv(3, 2, "max")(rg.ones((4, 3)), gnn.Graph(4, [[0, 1], [1, 2]])).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, aggregate: str = "mean", bias: bool = True,
        *, normalize: bool = False, generator: Generator | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalize = normalize
        options: Any = {"generator": generator, "dtype": dtype}
        self.conv = GraphConv(in_features, out_features, aggregate, bias, **options)

    def forward(self, x: Any, graph: Graph, edge_weight: Any = None) -> Tensor:
        y = self.conv(x, graph, edge_weight)
        if not self.normalize:
            return y
        length = vector_norm(y, axis=-1, keepdims=True)
        return y / el.maximum(length, 1e-12)


class GINConv(Module):
    """`y_v = f((1 + eps) x_v + sum of w_e x_u)` with a network f, such as `nn.Sequential`; eps is
    learned with `train_eps`. K. Xu et al., How powerful are graph neural networks? (2019).

    `[N, ...]` to what f makes of its shape. `ShapeError` for another number of nodes.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> layer = gnn.GINConv(rg.nn.Linear(3, 2), train_eps=True)
    >>> layer(rg.ones((4, 3)), gnn.Graph(4, [[0, 1], [1, 2]])).shape
    (4, 2)
    """

    def __init__(self, network: Any, eps: float = 0.0, train_eps: bool = False) -> None:
        super().__init__()
        self.network = network
        self.eps: Any = Parameter(creation.full((), eps)) if train_eps else eps

    def forward(self, x: Any, graph: Graph, edge_weight: Any = None) -> Tensor:
        x = as_tensor(x)
        return self.network(x * (1.0 + self.eps) + message_pass(x, graph, edge_weight))


class GatedConv(Module):
    """`x_v <- GRU(sum of w_e x_u W, x_v)`, `steps` times, with features padded by zeros to `width`.
    Y. Li et al., Gated graph sequence neural networks (2016).

    `[N, F]` to `[N, width]`. `OptionError` for less than one step, or more features than `width`;
    `ShapeError` for another number of nodes.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.GatedConv(5, steps=2)(rg.ones((4, 3)), gnn.Graph(4, [[0, 1], [1, 2]])).shape
    (4, 5)
    """

    def __init__(
        self, width: int, steps: int = 1, *, generator: Generator | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if steps < 1:
            raise OptionError(f"GatedConv takes at least one step, not {steps}")
        self.width, self.steps = width, steps
        options: Any = {"generator": generator, "dtype": dtype}
        self.maps = [Linear(width, width, False, **options) for _ in range(steps)]
        self.cell = GRU(width, width, **options)

    def forward(self, x: Any, graph: Graph, edge_weight: Any = None) -> Tensor:
        x = as_tensor(x)
        if x.shape[1] > self.width:
            raise OptionError(f"GatedConv of width {self.width} got {x.shape[1]} features")
        if x.shape[1] < self.width:
            x = manipulation.pad(x, ((0, 0), (0, self.width - x.shape[1])))
        for change in self.maps:
            x = self.cell(x, message_pass(change(x), graph, edge_weight))
        return x


class RelationalConv(Module):
    """`y_v = x_v W + sum over edges e = (u, v) of w_e x_u W_type(e) / c + b`, for graphs with
    `edge_type`; c is the number of edges of that type into v. M. Schlichtkrull et al., Modeling
    relational data with graph convolutional networks (2018).

    An `IndexRangeError` names an edge whose type is none of 0 to `num_types - 1`.

    `[N, in_features]` to `[N, out_features]`. `OptionError` for a graph without `edge_type`.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> g = gnn.Graph(4, [[0, 1], [1, 2]], edge_type=[0, 1])
    >>> gnn.RelationalConv(3, 2, num_types=2)(rg.ones((4, 3)), g).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, num_types: int,
        *, generator: Generator | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: Any = {"generator": generator, "dtype": dtype}
        self.num_types = num_types
        self.root = Linear(in_features, out_features, **options)
        shape = (num_types, in_features, out_features)
        self.weight = Parameter(init.xavier_uniform(shape, **options))

    def forward(self, x: Any, graph: Graph, edge_weight: Any = None) -> Tensor:
        if graph.edge_type is None:
            raise OptionError("RelationalConv needs a graph with edge_type")
        x, n, k = as_tensor(x), graph.num_nodes, self.num_types
        kind = graph.edge_type
        if kind.is_computed and graph.edges.is_computed:
            check_types(kind.value(), graph.edges.value(), k)
        else:  # a wrong one is to be an index beyond all rows
            kind = el.where((kind >= 0) & (kind < k), kind, n * k)
        # One row for each node and type, so that an edge reads the row of its type.
        mapped = manipulation.permute_dims(x @ self.weight, (1, 0, 2))
        rows = mapped.reshape((n * k, mapped.shape[2]))[graph.source * k + kind]
        slot = graph.target * k + kind
        count = segment_sum(creation.ones((graph.num_edges,), dtype=x.dtype), slot, n * k)
        scale = 1.0 / count[slot]
        if edge_weight is not None:
            scale = scale * edge_weight
        return self.root(x) + segment_sum(rows * scale[:, None], graph.target, n)
