"""Scans over directed acyclic graphs: values and gradients against node-by-node programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import CycleError, IndexRangeError, ShapeError
from retrograd.ir import TensorType
from tests.gnn.graphs import any_dag

S = 3


def case(seed: int) -> tuple[int, Any, list[Any]]:
    rng = np.random.default_rng(seed)
    n, edges = any_dag(rng)
    arrays = [rng.normal(size=s) for s in ((n, S), (edges.shape[1],), (S, S))]
    return n, edges, arrays


def scanned(n: int, edges: Any, x: Any, w: Any, m: Any) -> Any:
    g = gnn.Graph(n, edges)
    return gnn.dag_scan(lambda a, x: rg.tanh(a @ m + x), g, x, w)


def torch_states(n: int, edges: Any, x: Any, w: Any, m: Any) -> Any:
    import torch

    order = np.argsort([depth(edges, v) for v in range(n)], kind="stable")
    states: dict[int, Any] = {}
    for v in order.tolist():
        a = torch.zeros(S, dtype=x.dtype)
        for e in np.flatnonzero(edges[1] == v).tolist():
            a = a + w[e] * states[int(edges[0, e])]
        states[v] = torch.tanh(a @ m + x[v])
    return torch.stack([states[v] for v in range(n)])


def depth(edges: Any, v: int) -> int:
    before = edges[0, edges[1] == v]
    return 1 + max((depth(edges, int(u)) for u in set(before.tolist())), default=0)


@pytest.mark.torch
@pytest.mark.parametrize("block", range(10))
def test_values_and_gradients_are_those_of_pytorch(block: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    step = rg.jit(
        rg.value_and_grad(
            lambda x, w, m, e, c: (scanned(x.shape[0], e, x, w, m) * c).sum(), (0, 1, 2)
        ),
        shapes={"x": "N 3", "w": "E", "e": "2 E", "c": "N 3"},
    )
    for seed in range(20 * block, 20 * block + 20):
        n, edges, arrays = case(seed)
        c = np.random.default_rng(seed + 10**6).normal(size=(n, S))
        theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
        loss = (torch_states(n, edges, *theirs) * torch.tensor(c)).sum()
        loss.backward()
        value, grads = step(*arrays, edges, c)  # type: ignore[call-arg]
        np.testing.assert_allclose(value.numpy(), loss.detach().numpy(), rtol=1e-12, atol=1e-13)
        for mine, x in zip(grads, theirs, strict=True):
            expected = np.zeros(mine.shape) if x.grad is None else x.grad.numpy()
            np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-11, atol=1e-12)
    assert step.cache_stats()["compilations"] == 1


CELLS = {
    "sum": lambda: gnn.SumCell(S, 4, dtype="float64"),
    "relu": lambda: gnn.SumCell(S, 4, rg.relu, dtype="float64"),
    "gru": lambda: gnn.GRU(S, 4, dtype="float64"),
    "tree": lambda: gnn.TreeLSTM(S, 4, dtype="float64"),
}


@pytest.mark.parametrize("kind", list(CELLS))
@pytest.mark.sample(1)
def test_cells_against_finite_differences(kind: str) -> None:
    rng = np.random.default_rng(4)
    cell = CELLS[kind]()
    edges = np.array([[0, 0, 1, 2, 1, 3], [1, 2, 3, 3, 3, 4]])
    g = gnn.Graph(6, edges)
    x, w = rng.normal(size=(6, S)), rng.uniform(0.5, 1.5, 6)
    seeds = rng.normal(size=(6, 4))

    def loss(cell: Any, x: Any, w: Any) -> Any:
        y = gnn.dag_scan(cell, g, x, w)
        return sum((part * seeds).sum() for part in (y.values() if isinstance(y, dict) else [y]))

    grads = rg.grad(loss, (0, 1, 2))(cell, rg.tensor(x), rg.tensor(w))
    for k, array in ((1, x), (2, w)):
        for i in np.ndindex(array.shape):
            ends = []
            for h in (1e-6, -1e-6):
                moved = array.copy()
                moved[i] += h
                ends.append(loss(cell, *((moved, w) if k == 1 else (x, moved))).item())
            assert grads[k].numpy()[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)
    for p, dp in zip(cell.parameters(), grads[0].parameters(), strict=True):
        start = p.numpy().copy()
        at = tuple(rng.integers(0, n) for n in start.shape)
        ends = []
        for h in (1e-6, -1e-6):
            moved = start.copy()
            moved[at] += h
            p.replace(moved)
            ends.append(loss(cell, x, w).item())
        p.replace(start)
        assert dp.numpy()[at] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def test_second_order() -> None:
    n, edges, (x, w, m) = case(7)

    def loss(x: Any, w: Any, m: Any) -> Any:
        return (scanned(n, edges, x, w, m) ** 2).sum()

    directions = [np.random.default_rng(k).normal(size=a.shape) for k, a in enumerate((x, w, m))]
    both = rg.grad(loss, (0, 1, 2))
    _, found = rg.jvp(both, (x, w, m), tuple(directions))
    ends = []
    for h in (1e-6, -1e-6):
        moved = (a + h * d for a, d in zip((x, w, m), directions, strict=True))
        ends.append([g.numpy() for g in both(*moved)])
    for f, up, down in zip(found, *ends, strict=True):
        np.testing.assert_allclose(f.numpy(), (up - down) / 2e-6, rtol=1e-6, atol=1e-7)


def test_states_may_be_trees_and_messages_look_at_edges() -> None:
    g = gnn.Graph(3, [[0, 1], [1, 2]])

    def cell(a: Any, x: Any) -> Any:
        return {"p": a["q"] + x, "q": a["p"] * 2.0 + x}

    def message(h: Any, edge: gnn.Edge) -> Any:
        return {"p": h["p"] + edge.features, "q": h["q"] * edge.target}

    y = gnn.dag_scan(
        cell, g, rg.ones((3, 2)) * 3.0, edge_features=rg.ones((2, 2)), message=message,
        state={"p": 2, "q": 2},
    )  # fmt: skip
    p, q = [3.0], [3.0]
    for _ in range(2):
        p, q = [*p, q[-1] * 3.0 + 3.0], [*q, (p[-1] + 1.0) * 2.0 + 3.0]
    assert y["p"][:, 0].tolist() == p
    assert y["q"][:, 1].tolist() == q


def test_vmap_over_inputs_and_over_structures() -> None:
    rng = np.random.default_rng(0)
    stack = np.array([[[0, 1], [1, 2]], [[2, 0], [0, 1]]])
    x, w, m = rng.normal(size=(2, 3, S)), rng.normal(size=(2, 2)), rng.normal(size=(2, S, S))
    together = rg.vmap(lambda e, x, w, m: scanned(3, e, x, w, m))(rg.tensor(stack), x, w, m)
    for k in range(2):
        one = scanned(3, stack[k], x[k], w[k], m[k])
        np.testing.assert_allclose(together.numpy()[k], one.numpy(), rtol=1e-13)


@pytest.mark.slow
def test_the_same_bits_in_every_batch_and_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    m = rng.normal(size=(S, S)).astype(np.float32)
    graphs = []
    for _ in range(12):
        n, edges = any_dag(rng)
        x = rng.normal(size=(n, S)).astype(np.float32)
        w = rng.normal(size=edges.shape[1]).astype(np.float32)
        graphs.append(gnn.Graph(n, edges, x, edge_weight=w))

    def run(g: Any) -> tuple[list[Any], list[Any]]:
        def loss(x: Any, w: Any) -> Any:
            return (gnn.dag_scan(lambda a, x: rg.tanh(a @ m + x), g, x, w) ** 2).sum()

        dx, dw = rg.grad(loss, (0, 1))(g.node_features, g.edge_weight)
        states = gnn.dag_scan(lambda a, x: rg.tanh(a @ m + x), g, g.node_features, g.edge_weight)
        both = [np.concatenate([s.numpy(), d.numpy()], 1) for s, d in
                zip(gnn.rows_of(g, states), gnn.rows_of(g, dx), strict=True)]  # fmt: skip
        return both, [dw.numpy()]

    alone = [run(g) for g in graphs]
    for threads in (1, 3):
        for order in (range(12), rng.permutation(12)):
            with rg.num_threads(threads):
                rows, weights = run(gnn.batch([graphs[k] for k in order]))
            for k, row in zip(order, rows, strict=True):
                assert row.tobytes() == alone[k][0][0].tobytes()
            joined = np.concatenate([alone[k][1][0] for k in order])
            assert weights[0].tobytes() == joined.tobytes()


def layers(width: int, count: int, seed: int) -> tuple[int, Any]:
    """Nodes in layers, shuffled, each with two edges from the layer before, and a chain behind."""
    rng = np.random.default_rng(seed)
    n, ends = width * count, []
    for k in range(1, count):
        source = rng.integers((k - 1) * width, k * width, 2 * width)
        ends.append(np.stack([source, np.repeat(np.arange(k * width, (k + 1) * width), 2)]))
    tail = np.arange(n - 1, n + 40)
    edges = np.concatenate([*ends, np.stack([tail[:-1], tail[1:]])], axis=1)
    return n + 40, rng.permutation(n + 40)[edges]


@pytest.mark.parametrize("kind", list(CELLS))
@pytest.mark.sample(1)
@pytest.mark.slow
def test_wide_levels_are_shared_by_threads(kind: str) -> None:
    cell = CELLS[kind]()
    step = rg.jit(
        rg.value_and_grad(lambda cell, x, w, e: weighed(cell, x, w, e), (0, 1, 2)),
        shapes={"x": "N 3", "w": "E", "e": "2 E"},
    )
    for seed, (width, count) in enumerate(((900, 4), (3, 700), (1, 1))):
        n, edges = layers(width, count, seed)
        rng = np.random.default_rng(seed)
        x, w = rng.normal(size=(n, S)), rng.uniform(0.2, 0.8, edges.shape[1])
        found = []
        for threads in (1, 2, 3, 2):
            with rg.num_threads(threads), rg.no_grad():
                value, (dcell, *rest) = step(cell, x, w, edges)
            found.append([y.numpy() for y in (value, *dcell.parameters(), *rest)])
        for other in found[1:]:
            assert [y.tobytes() for y in other] == [y.tobytes() for y in found[0]]
        with rg.backend("reference"):
            value, (_, *rest) = rg.value_and_grad(weighed, (0, 1, 2))(cell, x, w, edges)
            expected = [y.numpy() for y in (value, *rest)]
        for mine, theirs in zip([found[0][0], *found[0][-2:]], expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)
    assert step.cache_stats()["compilations"] == 1
    sizes = rg.Dim("N"), rg.Dim("E")
    specs = [rg.spec(s, rg.float64) for s in ((sizes[0], S), sizes[1:])]
    edges = rg.spec((2, sizes[1]), rg.int64)
    scan = rg.trace(lambda x, w, e: weighed(cell, x, w, e), *specs, edges)
    assert "wide levels" in scan.explain()


@pytest.mark.parametrize("at", [5, 1500, 3630])  # in the first level, a wide one, the chain
def test_what_fails_in_a_cell_is_told_whichever_thread_it_runs_on(at: int) -> None:
    n, edges = layers(900, 4, 0)
    g = gnn.Graph(n, edges)
    kind = rg.ones((n,), dtype=rg.int64).numpy().copy()
    kind[gnn.topological_order(g).numpy()[at]] = 7
    table = rg.ones((4, S))

    def scan(kind: Any, e: Any) -> Any:
        def cell(a: Any, k: Any) -> Any:
            return rg.tanh(a + table[k])

        return gnn.dag_scan(cell, gnn.Graph(kind.shape[0], e), kind, state=rg_type)

    rg_type = TensorType(rg.float32, (S,))
    step = rg.jit(scan, shapes={"kind": "N", "e": "2 E"})
    for threads in (1, 2, 3):
        with rg.num_threads(threads), pytest.raises(IndexRangeError, match=r"index 7 .*4"):
            step(kind, edges)
    assert step(np.minimum(kind, 3), edges).shape == (n, S)


def weighed(cell: Any, x: Any, w: Any, e: Any) -> Any:
    y = gnn.dag_scan(cell, gnn.Graph(x.shape[0], e), x, w)
    parts = y.values() if isinstance(y, dict) else [y]
    return sum((part * part).sum() for part in parts)


def test_a_scan_inside_of_a_cell() -> None:
    rng = np.random.default_rng(3)
    n, edges = any_dag(rng)
    x, w = rng.normal(size=(n, S)), rng.normal(size=edges.shape[1])
    g = gnn.Graph(n, edges)

    def looped(a: Any, x: Any) -> Any:
        return rg.scan(lambda c, _: (rg.tanh(c + x), None), a, None, length=3)[0]

    def unrolled(a: Any, x: Any) -> Any:
        return rg.tanh(rg.tanh(rg.tanh(a + x) + x) + x)

    found = []
    for cell in (looped, unrolled):
        f = rg.value_and_grad(lambda x, w, c=cell: (gnn.dag_scan(c, g, x, w) ** 2).sum(), (0, 1))
        value, (dx, dw) = f(rg.tensor(x), rg.tensor(w))
        found.append([y.numpy() for y in (value, dx, dw)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)


def test_cells_are_graphs_that_can_be_looked_into() -> None:
    """They are printed, counted, and searched for the first NaN like the bodies of other loops."""
    n, e = rg.Dim("N"), rg.Dim("E")
    specs = [rg.spec((n, S), rg.float64), rg.spec((e,), rg.float64), rg.spec((S, S), rg.float64)]
    edges = rg.spec((2, e), rg.int64)
    g = rg.trace(lambda x, w, m, e: scanned(x.shape[0], e, x, w, m).sum(), *specs, edges)
    assert set(g.dim_names) == {"N", "E"}
    gradient = g.gradient()
    gradient.check()
    assert rg.Graph.parse(str(gradient)) == gradient
    assert g.stats({"N": 100, "E": 0}).transcendentals == 100 * S
    chain = gnn.Graph(3, [[0, 1], [1, 2]])
    with pytest.raises(rg.NonFiniteError, match="log gives nan") as failure, rg.debug():
        gnn.dag_scan(lambda a, x: rg.log(a - 5.0), chain, rg.ones((3, S))).numpy()
    assert "test_dag.py" in str(failure.value)


def test_bad_input() -> None:
    ones = rg.ones((3, 2))
    with pytest.raises(CycleError, match="cycle of 3 nodes: 0 -> 1 -> 2 -> 0"):
        gnn.dag_scan(lambda a, x: a + x, gnn.Graph(3, [[0, 1, 2], [1, 2, 0]]), ones)
    with pytest.raises(CycleError, match="cycle of 1 nodes: 1 -> 1"):
        gnn.topological_order(gnn.Graph(3, [[0, 1], [1, 1]]))
    chain = gnn.Graph(3, [[0, 1], [1, 2]])
    with pytest.raises(ShapeError, match=r"edge_weight has the shape \(3,\).*2 edges"):
        gnn.dag_scan(lambda a, x: a + x, chain, ones, [1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"x has the shape \(2, 2\).*3 nodes"):
        gnn.dag_scan(lambda a, x: a + x, chain, rg.ones((2, 2)))
    with pytest.raises(ShapeError, match=r"state.*\[5\].*\[2\]"):
        gnn.dag_scan(lambda a, x: rg.ones((1, 5)) * a[:, :1], chain, ones)
    with pytest.raises(ShapeError, match="has to give such rows"):
        gnn.dag_scan(lambda a, x: a.sum(axis=0), chain, ones)
    step = rg.jit(
        lambda e, x: gnn.dag_scan(lambda a, x: a + x, gnn.Graph(x.shape[0], e), x),
        shapes={"e": "2 E", "x": "N 2"},
    )
    with pytest.raises(CycleError, match="0 -> 1 -> 0"):
        step(np.array([[0, 1], [1, 0]]), np.ones((2, 2), np.float32))
    with pytest.raises(IndexRangeError, match="edge 1 leads from node 1 to node 7"):
        step(np.array([[0, 1], [1, 7]]), np.ones((2, 2), np.float32))


def test_a_chain_of_ten_thousand_nodes() -> None:
    n = 10_000
    g = gnn.Graph(n, np.stack([np.arange(n - 1), np.arange(1, n)]))
    w = rg.tensor(np.full(n - 1, 0.999))
    x = rg.tensor(np.ones((n, 1)))
    loss, dw = rg.value_and_grad(lambda w: gnn.dag_scan(lambda a, x: a + x, g, x, w)[n - 1].sum())(
        w
    )
    assert loss.item() == pytest.approx((1 - 0.999**n) / 0.001, rel=1e-9)
    assert dw.numpy()[-1] == pytest.approx((1 - 0.999 ** (n - 1)) / 0.001, rel=1e-9)
