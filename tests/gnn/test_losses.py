"""Losses on nodes, links and pairs of graphs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import OptionError, ShapeError
from tests.gnn.graphs import any_graph


def test_masked_losses() -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(6, 3)), np.array([0, 2, 1, -100, 1, 0])
    mask = np.array([True, True, False, False, True, False])
    shifted = logits - logits.max(1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    expected = -np.mean([logp[i, labels[i]] for i in (0, 1, 4)])
    assert gnn.classification_loss(logits, labels, mask).item() == pytest.approx(expected)
    g = rg.grad(lambda x: gnn.classification_loss(x, labels, mask))(rg.tensor(logits)).numpy()
    assert not g[~mask].any()
    assert gnn.classification_loss(logits, labels, np.zeros(6, bool)).item() == 0
    t = rng.normal(size=(6, 3))
    assert gnn.regression_loss(logits, t, mask).item() == pytest.approx(
        ((logits - t) ** 2)[mask].mean()
    )
    assert gnn.regression_loss(logits, t, kind="l1").item() == pytest.approx(
        np.abs(logits - t).mean()
    )
    with pytest.raises(ShapeError, match="labels"):
        gnn.classification_loss(logits, labels[:3])
    with pytest.raises(ShapeError, match="mask"):
        gnn.classification_loss(logits, labels, mask[:3])
    with pytest.raises(OptionError, match="kind"):
        gnn.regression_loss(logits, t, kind="huge")


def test_negative_edges_are_no_edges() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        n, edges = any_graph(rng)
        g = gnn.batch([gnn.Graph(n + 2, edges), gnn.Graph(3, [[0], [1]])])
        found = gnn.negative_edges(g, 50, seed).numpy()
        assert found.shape == (2, 50)
        there = set(map(tuple, g.edges.numpy().T.tolist()))
        owner = g.node_graph.numpy()
        for u, v in found.T.tolist():
            assert (u, v) not in there
            assert u != v
            assert owner[u] == owner[v]
    full = [(u, v) for u in range(3) for v in range(3) if u != v]
    with pytest.raises(OptionError, match="every node to every other"):
        gnn.negative_edges(gnn.from_edge_list(full), 1, 0)


@pytest.mark.slow
def test_sinkhorn_is_doubly_stochastic_and_sharpens() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5, 5))
    p = gnn.sinkhorn(scores, 200).numpy()
    np.testing.assert_allclose(p.sum(0), 1, atol=1e-9)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-9)
    sharp = gnn.sinkhorn(scores, 2000, 0.01).numpy()
    best = max(itertools.permutations(range(5)), key=lambda q: scores[range(5), q].sum())
    assert np.array_equal(sharp.argmax(1), best)


@pytest.mark.slow
def test_matching_finds_a_permutation_and_its_gradient() -> None:
    rng = np.random.default_rng(2)
    n, edges = 6, rng.integers(0, 6, (2, 9))
    x = rng.normal(size=(n, 3))
    order = rng.permutation(n)
    place = np.argsort(order)
    g, h = gnn.Graph(n, edges), gnn.Graph(n, place[edges])
    cost, assignment = gnn.matching_loss(x, g, x[order], h)
    assert cost.item() < 0.05
    assert np.array_equal(assignment.numpy()[:n, :n].argmax(1), place)
    y = rng.normal(size=(4, 3))
    other = gnn.Graph(4, [[0], [1]])

    def loss(x: Any) -> Any:
        return gnn.matching_loss(x, g, y, other, temperature=0.5)[0]

    found = rg.grad(loss)(rg.tensor(x)).numpy()
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += 1e-6
        down[i] -= 1e-6
        expected = (loss(rg.tensor(up)).item() - loss(rg.tensor(down)).item()) / 2e-6
        assert found[i] == pytest.approx(expected, abs=1e-6)
