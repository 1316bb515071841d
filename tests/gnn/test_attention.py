"""Attention along edges, against a loop over the nodes in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd import gnn
from retrograd.errors import OptionError, ShapeError
from tests.gnn.torch_layers import compare, graphs, reduced

F = 3


@pytest.mark.torch
def test_attention_layer() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    layer = gnn.GATConv(F, 2, heads=2, edge_features=2, dtype="float64")
    p = {k: torch.tensor(v.numpy().copy()) for k, v in layer.named_parameters()}
    for k, (_, n, edges) in enumerate(graphs(10)):
        rng = np.random.default_rng(k)
        e = edges.shape[1]
        x, w, f = rng.normal(size=(n, F)), rng.uniform(0.1, 1, e), rng.normal(size=(e, 2))
        g = gnn.Graph(n, edges)

        def theirs(x: Any, w: Any, f: Any, n: int = n, edges: Any = edges, e: int = e) -> Any:
            a, b = (
                (x @ p[f"from_{end}.weight"].T).reshape(n, 2, 2) for end in ("source", "target")
            )
            seen = a[edges[0]] + b[edges[1]] + (f @ p["from_edge.weight"].T).reshape(e, 2, 2)
            loops = np.arange(n)
            every = torch.cat([seen, a + b])
            score = (torch.nn.functional.leaky_relu(every, 0.2) * p["attention"]).sum(-1)
            rows = torch.cat([a[edges[0]] * w[:, None, None], a])
            ids = np.concatenate([edges[1], loops])
            parts = [reduced(torch, rows[:, h], ids, n, "attention", score[:, h]) for h in range(2)]
            return torch.stack(parts, 1).reshape(n, 4) + p["bias"]

        compare(lambda x, w, f, g=g: layer(x, g, w, f), theirs, [x, w, f])


@pytest.mark.slow
def test_heads_are_averaged_without_concat_and_options_are_checked() -> None:
    g = gnn.Graph(3, [[0, 1], [2, 2]])
    x = np.random.default_rng(0).normal(size=(3, F))
    beside, mean = (
        gnn.GATConv(F, 2, heads=3, concat=c, bias=False, dtype="float64") for c in (True, False)
    )
    mean.load_state_dict(beside.state_dict())
    expected = beside(x, g).numpy().reshape(3, 3, 2).mean(axis=1)
    np.testing.assert_allclose(mean(x, g).numpy(), expected, rtol=1e-12)
    with pytest.raises(OptionError, match="at least one head"):
        gnn.GATConv(F, 2, heads=0)
    with pytest.raises(ShapeError, match="edge_features exactly if"):
        beside(x, g, edge_features=np.ones((2, 1)))
