"""Sparse matrices of features."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import FormatError, ShapeError


def test_a_sparse_matrix_is_an_ordinary_argument() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.4)
    w, c = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    matrix = gnn.CSR.from_dense(dense)
    step = rg.jit(rg.grad(lambda m, w: ((m @ w) * c).sum(), (0, 1)))
    dm, dw = step(matrix, rg.tensor(w))
    np.testing.assert_allclose((matrix @ w).numpy(), dense @ w, rtol=1e-13)
    np.testing.assert_allclose(dw.numpy(), dense.T @ c, rtol=1e-12)
    np.testing.assert_allclose(dm.values.numpy(), (c @ w.T)[dense != 0], rtol=1e-12)
    np.testing.assert_array_equal(matrix.to_dense().numpy(), dense)
    layer = gnn.GCNConv(4, 2, dtype="float64")
    g = gnn.Graph(5, [[0, 1], [1, 2]])
    np.testing.assert_allclose(layer(matrix, g).numpy(), layer(dense, g).numpy(), rtol=1e-12)
    import scipy.sparse

    other = gnn.CSR.from_scipy(scipy.sparse.coo_matrix(dense))
    np.testing.assert_array_equal(other.to_dense().numpy(), dense)
    with pytest.raises(ShapeError):
        matrix @ rng.normal(size=(5, 3))
    with pytest.raises(FormatError, match="value 1 is in column 7"):
        gnn.CSR([1.0, 2.0], [0, 7], [0, 1, 2], (2, 4))
