"""Determinants, of singular matrices too: derivatives against cofactors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrograd as rg
from tests.functions.linalg.matrices import Array, close, general


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20])
def test_gradient_of_det(n: int, dtype: str) -> None:
    """Determinants of what is left without a row and a column, for matrices of every rank."""
    rng = np.random.default_rng(n)
    whole = general(n, n)
    stack = [whole, rng.uniform(-1, 1, (n, n)), np.eye(n), -np.eye(n), np.zeros((n, n))]
    for rank in range(max(n - 3, 0), n):
        u, v = rng.uniform(-1, 1, (n, rank)), rng.uniform(-1, 1, (rank, n))
        stack += [u @ v, np.diag(np.arange(n) >= n - rank) * 2.0]
    x = np.stack(stack)
    minors = np.zeros_like(x)
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(x, i, 1), j, 2)
        minors[:, i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    t = rg.asarray(x.astype(dtype))
    g = rg.grad(lambda y: rg.sum(rg.linalg.det(y)))(t).numpy()
    size = np.linalg.norm(x, 2, (1, 2), keepdims=True) ** (n - 1)
    bound = {"float64": 1e-12, "float32": 1e-4}[dtype]
    assert (np.abs(g - minors) <= bound * np.maximum(size, 1e-300)).all()


def test_second_derivative_of_det_of_a_singular_matrix() -> None:
    """It is a polynomial: what central differences of the cofactors give but for rounding."""
    rng = np.random.default_rng(5)

    def cofactors(x: Array) -> Array:
        cut = (np.delete(np.delete(x, i, 0), j, 1) for i, j in np.ndindex(x.shape))
        signs = np.array([(-1) ** (i + j) for i, j in np.ndindex(x.shape)])
        return np.asarray(signs * [np.linalg.det(m) for m in cut]).reshape(x.shape)

    slope = rg.grad(rg.linalg.det)
    for backend, n, rank in itertools.product(("llvm", "reference"), (3, 4), range(5)):
        if rank > n:
            continue
        x = rng.uniform(-1, 1, (n, rank)) @ rng.uniform(-1, 1, (rank, n))
        t = rng.uniform(-1, 1, (n, n))
        with rg.backend(backend):
            y = rg.asarray(x)
            close(slope(y), cofactors(x), 1e-13)
            second = rg.grad(lambda z, t=t: rg.sum(slope(z) * t))
            along = [(cofactors(x + h * t) - cofactors(x - h * t)) / (2 * h) for h in (1, 2)]
            want = (4 * along[0] - along[1]) / 3  # exact for polynomials of degree 3
            close(second(y), want, 1e-12)
            close(rg.jvp(slope, (y,), (rg.asarray(t),))[1], want, 1e-12)
    third = rg.grad(lambda z: rg.sum(rg.grad(lambda w: rg.sum(slope(w) ** 2))(z) ** 2))
    assert np.isnan(third(rg.asarray(np.diag([1.0, 2, 0]))).numpy()).all()
    for bad in (np.nan, np.inf):
        x = np.diag([1, 2, bad])
        assert np.isnan(slope(rg.asarray(x)).numpy()).all()
