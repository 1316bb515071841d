"""Graphs as rows."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd import gnn
from retrograd.errors import ShapeError


@pytest.mark.parametrize("aggregate", ["sum", "mean", "max", "softmax"])
def test_readout_is_that_of_each_graph(aggregate: str) -> None:
    rng = np.random.default_rng(0)
    sizes = [3, 1, 0, 4]
    g = gnn.batch([gnn.Graph(n, []) for n in sizes])
    x = rng.normal(size=(8, 2))
    y = gnn.readout(x, g, aggregate).numpy()
    for k, rows in enumerate(gnn.rows_of(g, x)):
        alone = gnn.readout(rows, gnn.Graph(len(rows), []), aggregate).numpy()[0]
        assert y[k].tobytes() == alone.tobytes()


def test_a_graph_without_nodes_is_zero_and_rows_are_nodes() -> None:
    g = gnn.batch([gnn.Graph(2, []), gnn.Graph(0, []), gnn.Graph(1, [])])
    x = np.array([[1.0, -4.0], [3.0, 2.0], [5.0, 6.0]])
    assert gnn.readout(x, g, "max").tolist() == [[3, 2], [0, 0], [5, 6]]
    assert gnn.readout(x, g, "mean").tolist() == [[2, -1], [0, 0], [5, 6]]
    with pytest.raises(ShapeError, match="3 nodes"):
        gnn.readout(x[:2], g)
