"""W6: a graph convolutional network of two layers on a graph as large as Cora, Adam.

2,708 nodes, 10,556 edges, 1,433 features of which 1.3 % are not zero, 16 hidden, 7 classes; the
edge weights are parameters too. W6-dense multiplies the features as a dense matrix; in W6-sparse a
peer may use that most of them are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.workload import Session, Target, Workload, loop
from benchmarks.workloads.adam import eager, jax_adam, jax_state, retrograd_adam

NODES, EDGES, FEATURES, HIDDEN, CLASSES = 2708, 10556, 1433, 16, 7
LR = 1e-2
Propagate = Callable[[Any, Any], Any]


class Data(NamedTuple):
    """Features, labels, and the two ends of every edge, ordered by the end it leads to."""

    x: Any
    y: Any
    source: Any
    target: Any


def data() -> Data:
    rng = np.random.default_rng(0)
    source = rng.integers(0, NODES, EDGES)
    target = np.sort(rng.integers(0, NODES, EDGES))
    x = (rng.random((NODES, FEATURES)) < 0.0127).astype(np.float32)
    x /= np.maximum(x.sum(1, keepdims=True), 1)
    return Data(x, rng.integers(0, CLASSES, NODES), source, target)


def entries(x: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and values of what is not zero."""
    row, column = np.nonzero(x)
    return row, column, x[row, column]


def weights() -> list[Any]:
    rng = np.random.default_rng(1)
    arrays = (
        rng.normal(0, 0.05, (FEATURES, HIDDEN)),
        np.zeros(HIDDEN),
        rng.normal(0, 0.3, (HIDDEN, CLASSES)),
        np.zeros(CLASSES),
        rng.uniform(0.1, 0.5, EDGES),
    )
    return [a.astype(np.float32) for a in arrays]


def logits(p: Any, project: Callable[[Any], Any], propagate: Propagate, relu: Any) -> Any:
    """`project` multiplies the features, `propagate(h, w)` adds up w times h along edges."""
    h = relu(propagate(project(p[0]), p[4]) + p[1])
    return propagate(h @ p[2], p[4]) + p[3]


# -- retrograd -----------------------------------------------------------------------------------
def retrograd_loss(sparse: bool) -> Callable[..., Any]:
    import retrograd as rg
    from retrograd import gnn

    d = data()
    graph = gnn.Graph(NODES, np.stack([d.source, d.target]))
    x: Any = gnn.CSR.from_dense(d.x) if sparse else rg.tensor(d.x)
    y = rg.tensor(d.y)

    def propagate(h: Any, w: Any) -> Any:
        return gnn.message_pass(h, graph, w)

    def loss(p: Any) -> Any:
        scores = logits(p, lambda w: x @ w, propagate, rg.relu)
        return rg.nn.functional.cross_entropy(scores, y)

    return loss


def with_retrograd(sparse: bool = False) -> Session:
    import retrograd as rg

    optimizer = rg.optim.Adam(lr=LR)
    step = rg.jit(retrograd_adam(retrograd_loss(sparse), optimizer), donate=("state",))
    p = [rg.tensor(w) for w in weights()]
    return loop(step, (p, optimizer.init(p)), [()], lambda v: v.item())


def with_retrograd_eager(sparse: bool = False) -> Session:
    import retrograd as rg

    p = [rg.tensor(w, requires_grad=True) for w in weights()]
    step = eager(retrograd_loss(sparse), p, rg.optim.Adam(p, lr=LR))
    return loop(step, None, [()], lambda v: v.item())


# -- peers ---------------------------------------------------------------------------------------
def with_jax(sparse: bool = False) -> Session:
    import jax
    import jax.numpy as jnp

    d = data()
    # Arrays are arguments: as constants of the program JAX would fold them, for a long time.
    arrays = tuple(map(jnp.asarray, (*d, *entries(d.x)) if sparse else d))

    def segment_sum(values: Any, at: Any) -> Any:
        return jax.ops.segment_sum(values, at, NODES, indices_are_sorted=True)

    def loss(p: Any, x: Any, y: Any, source: Any, target: Any, *features: Any) -> Any:
        def propagate(h: Any, w: Any) -> Any:
            return segment_sum(h[source] * w[:, None], target)

        def project(w: Any) -> Any:
            if not sparse:
                return x @ w
            row, column, value = features
            return segment_sum(w[column] * value[:, None], row)

        logp = jax.nn.log_softmax(logits(p, project, propagate, jax.nn.relu))
        return -jnp.take_along_axis(logp, y[:, None], 1).mean()

    step = jax.jit(jax_adam(loss, LR), donate_argnums=0)
    return loop(step, jax_state(weights()), [arrays], float)


def torch_loss(sparse: bool) -> Callable[..., Any]:
    import torch

    x, y, source, target = map(torch.tensor, data())
    matrix = x.to_sparse_csr() if sparse else x

    def propagate(h: Any, w: Any) -> Any:
        messages = h.index_select(0, source) * w[:, None]
        return torch.zeros(NODES, h.shape[1]).index_add(0, target, messages)

    def project(w: Any) -> Any:
        return torch.sparse.mm(matrix, w) if sparse else matrix @ w

    return lambda p: torch.nn.functional.cross_entropy(logits(p, project, propagate, torch.relu), y)


def with_torch(sparse: bool = False, compiled: bool = False) -> Session:
    import torch

    loss = torch_loss(sparse)
    p = [torch.tensor(w, requires_grad=True) for w in weights()]
    step = eager(
        torch.compile(loss, dynamic=False) if compiled else loss,
        p,
        torch.optim.Adam(p, lr=LR, fused=True),
    )
    return loop(step, None, [()], lambda v: v.item())


def with_geometric(sparse: bool = False) -> Session:
    """PyTorch Geometric's layers as they are, without their normalization, as weights are given."""
    import torch
    from torch_geometric.nn import GCNConv

    d, given = data(), [torch.tensor(w) for w in weights()]
    x, y = torch.tensor(d.x), torch.tensor(d.y)
    edges = torch.tensor(np.stack([d.source, d.target]))
    layers = [GCNConv(a.shape[0], a.shape[1], normalize=False) for a in (given[0], given[2])]
    with torch.no_grad():
        for layer, w, b in zip(layers, given[::2], given[1::2], strict=False):
            layer.lin.weight.copy_(w.T)
            layer.bias.copy_(b)
    edge_weight = given[4].requires_grad_()
    features = x.to_sparse_csr() if sparse else x

    def loss(_: Any) -> Any:
        h = torch.relu(layers[0](features, edges, edge_weight))
        return torch.nn.functional.cross_entropy(layers[1](h, edges, edge_weight), y)

    p = [*layers[0].parameters(), *layers[1].parameters(), edge_weight]
    step = eager(loss, p, torch.optim.Adam(p, lr=LR, fused=True))
    return loop(step, None, [()], lambda v: v.item())


WORKLOADS = (
    Workload(
        "W6-dense",
        "GCN on a graph as large as Cora, edge weights trained, dense features, Adam",
        {
            "retrograd": with_retrograd,
            "retrograd-eager": with_retrograd_eager,
            "jax": with_jax,
            "torch": with_torch,
            "torch-compile": lambda: with_torch(compiled=True),
            "torch_geometric": with_geometric,
        },
        targets=(Target("retrograd", 1.8e-3, "jax", 4.35e-3),),
        optional=frozenset({"torch-compile"}),
    ),
    Workload(
        "W6-sparse",
        "the same with sparse features",
        {
            "retrograd": lambda: with_retrograd(sparse=True),
            "retrograd-eager": lambda: with_retrograd_eager(sparse=True),
            "jax": lambda: with_jax(sparse=True),
            "torch": lambda: with_torch(sparse=True),
            "torch_geometric": lambda: with_geometric(sparse=True),
        },
        targets=(Target("retrograd", 0.5e-3, "torch", 3.0e-3),),
    ),
)
