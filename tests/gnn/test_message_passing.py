"""Messages along edges, against a loop over the nodes in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from tests.gnn.torch_layers import compare, graphs, reduced

F = 3


@pytest.mark.torch
@pytest.mark.parametrize("aggregate", ["sum", "mean", "max", "min", "softmax", "attention"])
def test_message_passing(aggregate: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    for k, (_, n, edges) in enumerate(graphs(20)):
        rng = np.random.default_rng(k)
        e = edges.shape[1]
        x, w, f, s = (rng.normal(size=size) for size in ((n, F), e, (e, F), e))
        g = gnn.Graph(n, edges)
        extra = [s] if aggregate == "attention" else []

        def mine(x: Any, w: Any, f: Any, *s: Any, g: Any = g) -> Any:
            return gnn.message_pass(x, g, w, aggregate, edge_features=f, score=s[0] if s else None)

        def theirs(x: Any, w: Any, f: Any, *s: Any, n: int = n, edges: Any = edges) -> Any:
            rows = (x[edges[0]] + f) * w[:, None]
            return reduced(torch, rows, edges[1], n, aggregate, *s)

        compare(mine, theirs, [x, w, f, *extra])


def test_messages_that_a_function_makes() -> None:
    g = gnn.Graph(3, [[0, 1, 0], [2, 2, 1]])
    x = np.array([[1.0], [2.0], [4.0]])
    y = gnn.message_pass(
        x,
        g,
        [1.0, 0.5, 2.0],
        message=lambda u, e: u * e,
        edge_features=np.array([[3.0], [5.0], [7.0]]),
    )
    assert y.tolist() == [[0.0], [14.0], [3.0 + 5.0]]


def test_a_node_that_no_edge_leads_to_gets_zero_and_equal_maxima_share() -> None:
    g = gnn.Graph(3, [[0, 1], [2, 2]])
    x = rg.tensor([[-2.0], [-2.0], [9.0]])
    assert gnn.message_pass(x, g, aggregate="max").tolist() == [[0.0], [0.0], [-2.0]]
    slope = rg.grad(lambda x: gnn.message_pass(x, g, aggregate="max").sum())(x)
    assert slope.tolist() == [[0.5], [0.5], [0.0]]
