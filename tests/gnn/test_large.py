"""Graphs of many edges: results against SciPy, in time that is linear."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn


@pytest.mark.slow
def test_a_hundred_thousand_edges() -> None:
    import scipy.sparse

    rng = np.random.default_rng(0)
    n, e = 20_000, 100_000
    edges = rng.integers(0, n, (2, e))
    g = gnn.Graph(n, edges)
    x, w, c = rng.normal(size=(n, 8)), rng.normal(size=e), rng.normal(size=(n, 8))
    matrix = scipy.sparse.csr_matrix((w, (edges[1], edges[0])), (n, n))

    def loss(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
        return (gnn.message_pass(x, g, w) * c).sum()

    dx, dw = rg.grad(loss, (0, 1))(rg.tensor(x), rg.tensor(w))
    np.testing.assert_allclose(gnn.message_pass(x, g, w).numpy(), matrix @ x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dx.numpy(), matrix.T @ c, rtol=1e-9, atol=1e-9)
    expected = (x[edges[0]] * c[edges[1]]).sum(1)
    np.testing.assert_allclose(dw.numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_a_scan_over_a_hundred_thousand_edges() -> None:
    """Linear, so states are those of a triangular system of equations."""
    import scipy.sparse
    import scipy.sparse.linalg

    rng = np.random.default_rng(0)
    n, e = 20_000, 100_000
    ends = np.sort(rng.integers(0, n, (2, e)), axis=0)
    ends = ends[:, ends[0] != ends[1]]
    x, w = rng.normal(size=(n, 4)), rng.normal(size=ends.shape[1]) * 0.3
    c = rng.normal(size=(n, 4))
    g = gnn.Graph(n, ends)

    def states(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
        return gnn.dag_scan(lambda a, x: a + x, g, x, w)

    y = states(rg.tensor(x), rg.tensor(w)).numpy()
    dx, dw = rg.grad(lambda x, w: (states(x, w) * c).sum(), (0, 1))(rg.tensor(x), rg.tensor(w))
    a = scipy.sparse.csr_matrix((w, (ends[1], ends[0])), (n, n))
    system = (scipy.sparse.identity(n) - a).tocsr()
    expected = scipy.sparse.linalg.spsolve_triangular(system, x, lower=True)
    np.testing.assert_allclose(y, expected, rtol=1e-8, atol=1e-8)
    back = scipy.sparse.linalg.spsolve_triangular(system.T.tocsr(), c, lower=False)
    np.testing.assert_allclose(dx.numpy(), back, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        dw.numpy(), (y[ends[0]] * back[ends[1]]).sum(1), rtol=1e-8, atol=1e-8
    )
