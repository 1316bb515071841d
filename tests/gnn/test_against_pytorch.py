"""Every cell of `dag_scan`, every layer and every readout beside the same network written op by op
in PyTorch, on hundreds of random graphs and on all special kinds: values, and gradients with
respect to inputs, weights, parameters and states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from tests.gnn.graphs import any_dag, any_graph, shapes

F, S = 3, 4
CYCLIC = ("one loop", "loops", "disconnected")


def dags(count: int) -> Iterator[tuple[int, Any]]:
    rng = np.random.default_rng(0)
    yield from ((n, edges) for kind, n, edges in shapes(rng) if kind not in CYCLIC)
    yield 5, np.array([[0, 3], [1, 4]])  # disconnected
    yield from (any_dag(rng) for _ in range(count))


def parameters(module: Any) -> dict[str, Any]:
    """The parameters of a module by name, as leaves of PyTorch."""
    import torch

    named = module.named_parameters()
    return {k: torch.tensor(p.numpy().copy(), requires_grad=True) for k, p in named}


def close(mine: Any, theirs: Any, what: str) -> None:
    wanted = np.zeros(mine.shape) if theirs is None else theirs.numpy()
    np.testing.assert_allclose(mine.numpy(), wanted, rtol=1e-10, atol=1e-11, err_msg=what)


# -- cells: a state from the states of predecessors, their weights, and the node's own input -------
def affine(p: dict[str, Any], name: str, x: Any) -> Any:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def weighted(before: list[Any], w: list[Any], part: int = 0) -> Any:
    import torch

    zero = torch.zeros(S, dtype=torch.float64)
    return sum((k * h[part] for k, h in zip(w, before, strict=True)), zero)


def sum_cell(f: str) -> Callable[..., Any]:
    def cell(p: dict[str, Any], before: list[Any], w: list[Any], x: Any) -> Any:
        import torch

        z = affine(p, "from_sum", weighted(before, w)) + affine(p, "from_input", x)
        return (getattr(torch, f)(z),)

    return cell


def gru(p: dict[str, Any], before: list[Any], w: list[Any], x: Any) -> Any:
    import torch

    a = weighted(before, w)
    (ur, uz, un), (vr, vz, vn) = (
        affine(p, name, y).split(S) for name, y in (("from_input", x), ("from_state", a))
    )
    z = torch.sigmoid(uz + vz)
    return ((1 - z) * torch.tanh(un + torch.sigmoid(ur + vr) * vn) + z * a,)


def tree_lstm(p: dict[str, Any], before: list[Any], w: list[Any], x: Any) -> Any:
    import torch

    s = weighted(before, w)
    i, o, u = (affine(p, "from_input", x) + affine(p, "from_sum", s)).split(S)
    c = torch.sigmoid(i) * torch.tanh(u)
    for k, (h, memory) in zip(w, before, strict=True):
        forget = torch.sigmoid(affine(p, "forget_input", x) + affine(p, "forget_state", h))
        c = c + k * forget * memory
    return torch.sigmoid(o) * torch.tanh(c), c


class Own(rg.nn.Module):
    """A cell as a user writes one."""

    state = S

    def __init__(self) -> None:
        super().__init__()
        self.mix = rg.nn.Linear(S + F, S, dtype="float64")
        self.gate = rg.nn.Linear(F, S, dtype="float64")

    def forward(self, a: Any, x: Any) -> Any:
        return rg.sin(self.mix(rg.concat([a, x], axis=1))) * rg.sigmoid(self.gate(x)) + 0.5 * a


def own(p: dict[str, Any], before: list[Any], w: list[Any], x: Any) -> Any:
    import torch

    a = weighted(before, w)
    return (torch.sin(affine(p, "mix", torch.cat([a, x]))) * torch.sigmoid(affine(p, "gate", x))
            + 0.5 * a,)  # fmt: skip


CELLS: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
    "sum": (lambda: gnn.SumCell(F, S, dtype="float64"), sum_cell("tanh")),
    "relu": (lambda: gnn.SumCell(F, S, rg.relu, dtype="float64"), sum_cell("relu")),
    "gru": (lambda: gnn.GRU(F, S, dtype="float64"), gru),
    "tree": (lambda: gnn.TreeLSTM(F, S, dtype="float64"), tree_lstm),
    "own": (Own, own),
}


class Shifted:
    """A cell whose states have something added to: its gradient is that of the states."""

    def __init__(self, cell: Any) -> None:
        self.cell, self.state = cell, cell.state
        if hasattr(cell, "message"):
            self.message = lambda h, edge: cell.message(
                h, edge._replace(source=edge.source[0], target=edge.target[0])
            )

    def __call__(self, a: Any, x: Any) -> Any:
        return rg.tree.map(lambda h: h + x[1], self.cell(a, x[0]))


@pytest.mark.torch
@pytest.mark.parametrize("kind", list(CELLS))
def test_cells(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    make, theirs = CELLS[kind]
    cell = make()

    def weighed(cell: Any, x: Any, shift: Any, w: Any, e: Any, c: Any) -> Any:
        graph = gnn.Graph(x.shape[0], e)
        y = gnn.dag_scan(Shifted(cell), graph, (x, shift), w)
        return sum((part * c).sum() for part in (y.values() if isinstance(y, dict) else [y]))

    step = rg.jit(
        rg.value_and_grad(weighed, (0, 1, 2, 3)),
        shapes={"x": f"N {F}", "shift": f"N {S}", "w": "E", "e": "2 E", "c": f"N {S}"},
    )
    for k, (n, edges) in enumerate(dags(60)):
        rng = np.random.default_rng(k)
        sizes = ((n, F), (n, S), (edges.shape[1],), (n, S))
        x, shift, w, c = (rng.normal(size=size) for size in sizes)
        with rg.no_grad():  # otherwise the parameters would have the call recorded
            value, (dcell, *grads) = step(cell, x, 0 * shift, w, edges, c)
        p = parameters(cell)
        leaves = [torch.tensor(a, requires_grad=True) for a in (x, 0 * shift, w)]
        states: dict[int, Any] = {}
        order = gnn.topological_order(gnn.Graph(n, edges)).tolist()
        for v in order:
            into = np.flatnonzero(edges[1] == v).tolist()
            before = [states[int(edges[0, e])] for e in into]
            made = theirs(p, before, [leaves[2][e] for e in into], leaves[0][v])
            states[v] = tuple(part + leaves[1][v] for part in made)
        loss = sum(((h * torch.tensor(c[v])).sum() for v, s in states.items() for h in s),
                   torch.zeros((), dtype=torch.float64))  # fmt: skip
        if states:
            loss.backward()
        np.testing.assert_allclose(value.numpy(), loss.detach().numpy(), rtol=1e-12, atol=1e-12)
        for name, mine, x_ in zip(("x", "states", "w"), grads, leaves, strict=True):
            close(mine, x_.grad, f"{kind}, graph {k}: {name}")
        for name, mine in dcell.named_parameters():
            close(mine, p[name].grad, f"{kind}, graph {k}: {name}")
    assert step.cache_stats()["compilations"] == 1


# -- layers and readouts --------------------------------------------------------------------------
def combined(torch: Any, rows: Any, ids: Any, n: int, how: str) -> Any:
    """Rows of the same id, one id after the other."""
    found = [torch.zeros(rows.shape[1:], dtype=rows.dtype)] * n
    for v in range(n):
        chosen = rows[np.flatnonzero(ids == v)]
        if len(chosen):
            shared = {"max": "amax", "min": "amin"}.get(how, how)  # equal ones share the gradient
            found[v] = getattr(chosen, shared)(0)
    return torch.stack(found) if n else rows.new_zeros((0, *rows.shape[1:]))


def convolution(how: str) -> Callable[..., Any]:
    def layer(torch: Any, p: dict[str, Any], x: Any, w: Any, n: int, edges: Any) -> Any:
        prefix = "conv." if "conv.root.weight" in p else ""
        seen = combined(torch, x[edges[0]] * w[:, None], edges[1], n, how)
        return affine(p, f"{prefix}root", x) + affine(p, f"{prefix}neighbour", seen)

    return layer


def isomorphism(torch: Any, p: dict[str, Any], x: Any, w: Any, n: int, edges: Any) -> Any:
    seen = combined(torch, x[edges[0]] * w[:, None], edges[1], n, "sum")
    h = torch.relu(affine(p, "network.0", (1 + p["eps"]) * x + seen))
    return affine(p, "network.2", h)


def kipf(torch: Any, p: dict[str, Any], x: Any, w: Any, n: int, edges: Any) -> Any:
    """Without loops: a node that no edge leads to has no share in anything."""
    degree = combined(torch, w[:, None], edges[1], n, "sum")[:, 0]
    there = torch.tensor(np.isin(np.arange(n), edges[1]))
    root = torch.where(there, torch.where(there, degree, 1.0) ** -0.5, 0.0)
    weight = root[edges[0]] * w * root[edges[1]]
    return (
        combined(torch, (x @ p["weight"])[edges[0]] * weight[:, None], edges[1], n, "sum")
        + (p["bias"])
    )


def gated(torch: Any, p: dict[str, Any], x: Any, w: Any, n: int, edges: Any) -> Any:
    h = torch.nn.functional.pad(x, (0, S - F))
    for k in range(2):
        sent = affine(p, f"maps.{k}", h)[edges[0]] * w[:, None]
        a = combined(torch, sent, edges[1], n, "sum")
        u, v = affine(p, "cell.from_input", a), affine(p, "cell.from_state", h)
        r, z = (torch.sigmoid(u[:, i * S : i * S + S] + v[:, i * S : i * S + S]) for i in (0, 1))
        h = (1 - z) * torch.tanh(u[:, 2 * S :] + r * v[:, 2 * S :]) + z * h
    return h


def network() -> Any:
    return rg.nn.Sequential(
        rg.nn.Linear(F, S, dtype="float64"), rg.nn.ReLU(), rg.nn.Linear(S, S, dtype="float64")
    )


d: dict[str, Any] = {"dtype": "float64"}
LAYERS: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
    **{
        f"graph {how}": (partial(gnn.GraphConv, F, S, how, **d), convolution(how))
        for how in ("sum", "mean", "max", "min")
    },
    "sage": (lambda: gnn.SAGEConv(F, S, **d), convolution("mean")),
    "gin": (lambda: gnn.GINConv(network(), train_eps=True), isomorphism),
    "gcn without loops": (lambda: gnn.GCNConv(F, S, self_loops=False, **d), kipf),
    "gated": (lambda: gnn.GatedConv(S, steps=2, **d), gated),
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", list(LAYERS))
def test_layers(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    make, theirs = LAYERS[kind]
    layer = make()

    def weighed(layer: Any, x: Any, w: Any, e: Any, c: Any) -> Any:
        return (layer(x, gnn.Graph(x.shape[0], e), w) * c).sum()

    step = rg.jit(
        rg.value_and_grad(weighed, (0, 1, 2)),
        shapes={"x": f"N {F}", "w": "E", "e": "2 E", "c": f"N {S}"},
    )
    rng = np.random.default_rng(1)
    every = [(n, edges) for _, n, edges in shapes(rng)]
    for k, (n, edges) in enumerate([*every, *[any_graph(rng) for _ in range(40)]]):
        rng = np.random.default_rng(k)
        x, w = rng.normal(size=(n, F)), rng.uniform(0.1, 1.0, edges.shape[1])
        c = rng.normal(size=(n, S))
        p = parameters(layer)
        leaves = [torch.tensor(a, requires_grad=True) for a in (x, w)]
        loss = (theirs(torch, p, *leaves, n, edges) * torch.tensor(c)).sum()
        if n:
            loss.backward()
        with rg.no_grad():
            value, (dlayer, *grads) = step(layer, x, w, edges, c)
        np.testing.assert_allclose(value.numpy(), loss.detach().numpy(), rtol=1e-11, atol=1e-11)
        for name, mine, x_ in zip(("x", "w"), grads, leaves, strict=True):
            close(mine, x_.grad, f"{kind}, graph {k}: {name}")
        for name, mine in dlayer.named_parameters():
            close(mine, p[name].grad, f"{kind}, graph {k}: {name}")
    assert step.cache_stats()["compilations"] == 1


@pytest.mark.torch
def test_attention_pooling() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    pool = gnn.AttentionReadout(F, S)
    p = parameters(pool)
    for n in (3, 4, 7, 30):
        x, c = (np.random.default_rng(n).normal(size=size) for size in ((n, F), (2, S)))
        x = x.astype(np.float32)
        leaf = torch.tensor(x, requires_grad=True)
        parts = []
        for rows in (leaf[: n // 3], leaf[n // 3 :]):
            share = torch.softmax(affine(p, "score", rows), 0)
            parts.append((share * affine(p, "value", rows)).sum(0))
        expected = torch.stack(parts)
        (expected * torch.tensor(c)).sum().backward()
        whole = gnn.batch([gnn.Graph(n // 3, []), gnn.Graph(n - n // 3, [])])

        def loss(pool: Any, x: Any, whole: Any = whole, c: Any = c) -> Any:
            return (pool(x, whole) * c).sum()

        grads = rg.grad(loss, (0, 1))(pool, rg.tensor(x))
        np.testing.assert_allclose(grads[1].numpy(), leaf.grad.numpy(), rtol=2e-4, atol=2e-6)
        for name, mine in grads[0].named_parameters():
            np.testing.assert_allclose(mine.numpy(), p[name].grad.numpy(), rtol=2e-4, atol=2e-5)
            p[name].grad = None
