"""Edits of graphs, and choices between them: gradients arrive where they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import IndexRangeError, OptionError, ShapeError
from tests.gnn.graphs import any_graph


def edit(kind: str, g: Any, rng: Any, scores: Any) -> Any:
    route = ("sum", "mean", "attention")[int(rng.integers(3))]
    given = scores if route == "attention" else None
    if kind == "merge":
        chosen = rng.choice(g.num_nodes, 3, replace=False).tolist()
        return gnn.merge_nodes(g, chosen, route, scores=None if given is None else given[:3])
    v = int(rng.integers(g.num_nodes))
    ends = g.edges.numpy()
    near = len(set(ends[:, (ends == v).any(0)].ravel().tolist()) - {v})
    return gnn.remove_node(g, v, route if near else None,
                           scores=None if given is None or not near else given[:near])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["merge", "remove"])
@pytest.mark.sample(1)
def test_gradients_go_through_edits(kind: str) -> None:
    """Against finite differences of a network on the edited graph; and the route back is the
    transpose of the route forward."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, edges = any_graph(rng)
        n = n + 3
        x, w, s = rng.normal(size=(n, 2)), rng.random(edges.shape[1]), rng.normal(size=n)
        c = rng.normal(size=(n, 2))

        def loss(x: Any, w: Any, s: Any, n: int = n, edges: Any = edges, c: Any = c,
                 seed: int = seed) -> Any:  # fmt: skip
            g = gnn.Graph(n, edges, x, edge_weight=w)
            new, _ = edit(kind, g, np.random.default_rng(seed + 99), s)
            y = rg.tanh(gnn.message_pass(new.node_features, new, new.edge_weight))
            return ((y + new.node_features) * c[: new.num_nodes]).sum()

        arrays = [x, w, s]
        grads = rg.grad(loss, (0, 1, 2))(*map(rg.tensor, arrays))  # type: ignore[arg-type]
        for k, a in enumerate(arrays):
            for i in list(np.ndindex(a.shape))[::3]:
                ends = []
                for h in (1e-6, -1e-6):
                    moved = [b.copy() for b in arrays]
                    moved[k][i] += h
                    a_, w_, s_ = map(rg.tensor, moved)
                    ends.append(loss(a_, w_, s_).item())
                assert grads[k].numpy()[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)
        g = gnn.Graph(n, edges, x)
        new, routing = edit(kind, g, np.random.default_rng(seed + 99), rg.tensor(s))
        u = rng.normal(size=(new.num_nodes, 2))
        forward = (routing.nodes.forward(x).numpy() * u).sum()
        assert forward == pytest.approx((x * routing.nodes.back(u).numpy()).sum())


def test_what_edits_keep() -> None:
    g = gnn.Graph(4, [[0, 1, 2, 3, 1], [1, 2, 3, 0, 1]], np.arange(4.0), edge_weight=np.arange(5.0))
    new, routing = gnn.merge_nodes(g, [3, 1])
    assert new.edges.tolist() == [[0, 2, 1, 2], [2, 1, 2, 0]]
    assert new.edge_weight.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert new.node_features.tolist() == [0.0, 2.0, 4.0]
    assert [routing.nodes.number(v) for v in range(4)] == [0, 2, 1, 2]
    assert routing.edges.back(np.ones(4)).tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    kept, _ = gnn.merge_nodes(g, [3, 1], self_loops=True)
    assert kept.num_edges == 5
    contracted, _ = gnn.contract_edge(g, 0, "mean")
    assert contracted.node_features.tolist() == [0.5, 2.0, 3.0]
    removed, routing = gnn.remove_node(g, 2)
    assert removed.edges.tolist() == [[0, 2, 1], [1, 0, 1]]
    assert routing.nodes.number(2) == -1
    two = gnn.batch([g, g])
    edited, _ = gnn.remove_node(two, 5)
    assert [part.num_nodes for part in gnn.unbatch(edited)] == [4, 3]


def test_bad_input() -> None:
    g = gnn.Graph(3, [[0, 1], [1, 1]])
    with pytest.raises(OptionError, match="node 1 cannot be merged with itself"):
        gnn.merge_nodes(g, [1, 1])
    with pytest.raises(IndexRangeError, match="no node 7 among 3"):
        gnn.merge_nodes(g, [1, 7])
    with pytest.raises(OptionError, match="at least two"):
        gnn.merge_nodes(g, [1])
    with pytest.raises(OptionError, match="edge 1 leads from node 1 to itself"):
        gnn.contract_edge(g, 1)
    with pytest.raises(IndexRangeError, match="no edge 9"):
        gnn.contract_edge(g, 9)
    with pytest.raises(IndexRangeError, match="no node -1"):
        gnn.remove_node(g, -1)
    with pytest.raises(OptionError, match="route is one of"):
        gnn.remove_node(g, 2, "median")
    with pytest.raises(OptionError, match="scores"):
        gnn.merge_nodes(g, [0, 1], "attention")
    with pytest.raises(ShapeError, match="for 2 nodes"):
        gnn.merge_nodes(g, [0, 1], "attention", scores=[1.0])
    with pytest.raises(OptionError, match="different graphs"):
        gnn.merge_nodes(gnn.batch([g, g]), [0, 3])


@pytest.mark.parametrize("choose", [gnn.soft_choice, gnn.hard_choice])
def test_edits_are_selected_by_shares_or_straight_through(choose: Any) -> None:
    """Scores of edits learn together with a network that reads out the edited graph: the cost is
    what it reads out, least where edge 2 is contracted."""
    g = gnn.Graph(4, [[0, 1, 2], [1, 2, 3]], [[0.0], [3.0], [3.1], [7.0]])
    edited = [gnn.contract_edge(g, e, "mean")[0] for e in range(3)]

    def cost(p: dict[str, Any]) -> Any:
        seen = [gnn.readout((new.node_features * p["scale"]) ** 2, new)[0] / 20 for new in edited]
        chosen = (choose(p["scores"])[:, None] * rg.stack(seen)).sum()
        return chosen + 10.0 * (p["scale"] - 1.0) ** 2

    p = {"scores": rg.zeros((3,)), "scale": rg.tensor(1.0)}
    step = rg.jit(rg.grad(cost))
    for _ in range(300):
        grads = step(p)
        p = {k: (v - 0.03 * grads[k]).detach() for k, v in p.items()}
    assert int(p["scores"].argmax()) == 2
    least = float((edited[2].node_features.numpy() ** 2).sum()) / 20
    assert cost(p).item() < 1.05 * least
    if choose is gnn.hard_choice:  # one edit, so the optimum is known
        assert p["scale"].item() == pytest.approx(10 / (10 + least), abs=1e-4)


@pytest.mark.slow
def test_a_policy_learns_which_edge_to_contract() -> None:
    """The reward is that of contracting the edge whose ends are alike."""
    g = gnn.Graph(4, [[0, 1, 2], [1, 2, 3]], [[0.0], [3.0], [3.1], [7.0]])
    costs = []
    for e in range(3):
        u, v = g.edges.numpy()[:, e]
        costs.append(float(abs(g.node_features[int(u)] - g.node_features[int(v)]).sum()))
    scores, generator = rg.zeros((3,)), rg.random.Generator(0)
    baseline = gnn.RunningBaseline()
    for _ in range(150):
        e = int(gnn.sample_choice(scores, generator))
        new, _ = gnn.contract_edge(g, e, "mean")
        assert new.num_nodes == 3
        reward = -costs[e]
        step = rg.grad(
            lambda s, e=e, r=reward: gnn.reinforce_loss(
                gnn.log_probability(s, e)[None], [r], baseline.value or 0.0
            )
        )(scores)
        baseline.update([reward])
        scores = (scores - 0.3 * step).detach()
    assert int(scores.argmax()) == 1
