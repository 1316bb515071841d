"""Matrices against NumPy and SciPy: all of a region is inside, and small regions stay small."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

Box, ball, bounds = rg.verify.Box, rg.verify.ball, rg.verify.bounds
RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 3 * np.eye(4)
S = A @ A.T / 4 + np.eye(4)
B = RNG.normal(size=(4, 2))
CASES = {
    "solve": (lambda a: rg.linalg.solve(a, rg.tensor(B)), lambda a: np.linalg.solve(a, B), A),
    "inv": (rg.linalg.inv, np.linalg.inv, A),
    "det": (rg.linalg.det, np.linalg.det, A),
    "cholesky": (rg.linalg.cholesky, lambda a: np.linalg.cholesky((a + a.T) / 2), S),
    "eigvalsh": (rg.linalg.eigvalsh, lambda a: np.linalg.eigvalsh((a + a.T) / 2), S),
    "svdvals": (rg.linalg.svdvals, lambda a: np.linalg.svd(a, compute_uv=False), A),
    "lstsq": (lambda a: rg.linalg.lstsq(a, rg.tensor(B))[0], lambda a: np.linalg.lstsq(a, B)[0], A),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "eps", [1e-6, *[pytest.param(e, marks=pytest.mark.slow) for e in (0.0, 1e-2, 1.0)]]
)
def test_all_of_a_region_is_inside(name, eps):
    f, exact, middle = CASES[name]
    box = ball(middle, eps)
    low, high = bounds(f, box)
    if eps <= 1e-6:
        assert (high - low < 1e-3).all()
    for _ in range(10):
        x = RNG.uniform(box.lower, box.upper)
        try:
            y = exact(x)
        except np.linalg.LinAlgError:
            continue
        assert (low <= y).all()
        assert (y <= high).all()


def test_where_a_region_holds_a_singular_matrix_there_are_no_bounds():
    low, high = bounds(rg.linalg.inv, ball(np.eye(2), 1.5))
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


def test_vectors_of_values_that_are_apart():
    x = np.diag([1.0, 2.0, 4.0])
    low, high = bounds(lambda a: rg.linalg.eigh(a)[1], ball(x, 1e-3))
    assert (high - low < 0.1).all()
    for _ in range(10):
        noise = RNG.uniform(-1e-3, 1e-3, (3, 3))
        _, v = np.linalg.eigh((x + noise + (x + noise).T) / 2)
        v = v * np.sign(v[np.argmax(abs(v), 0), range(3)])
        assert (low <= v).all()
        assert (v <= high).all()
    low, high = bounds(lambda a: rg.linalg.eigh(a)[1], ball(np.eye(3), 1e-3))
    assert (high >= 1).all()
    assert (high < 1.001).all()


def eigenvalues_around(rng, width):
    """Bounds of a matrix with some elements that are not sure, and eigenvalues inside."""
    n = 4
    a = rng.normal(size=(n, n)).astype(np.float32)
    by = (width * rng.random((n, n))).astype(np.float32)
    box = rg.verify.Box(a - by, a + by)
    low, high = rg.verify.bounds(rg.linalg.eigvals, box)
    for _ in range(200):
        t = np.where(rng.random((n, n)) < 0.5, rng.integers(0, 2, (n, n)), rng.random((n, n)))
        w = np.linalg.eigvals((box.lower + (box.upper - box.lower) * t).astype(np.float64))
        assert (low.real.max() <= w.real).all()
        assert (w.real <= high.real.min()).all()
        assert (low.imag.max() <= w.imag).all()
        assert (w.imag <= high.imag.min()).all()
    return a, high - low


@pytest.mark.parametrize("width", [0.0, 0.01, 0.5])
def test_eigenvalues_are_inside(width):
    a, wide = eigenvalues_around(np.random.default_rng(3), width)
    w = np.linalg.eigvals(a.astype(np.float64))
    if width == 0:
        assert wide.real.max() < np.ptp(w.real) + 1e-2
        assert wide.imag.max() < np.ptp(w.imag) + 1e-2
    norm = 2 * np.abs(a).sum(1).max()  # what the size of the matrix tells
    assert wide.real.max() < norm


def test_eigenvalues_of_a_symmetric_matrix_are_real_to_rounding():
    a = np.random.default_rng(0).normal(size=(5, 5))
    low, high = rg.verify.bounds(rg.linalg.eigvals, a + a.T)
    assert np.abs(low.imag).max() < 1e-10
    assert np.abs(high.imag).max() < 1e-10


def test_a_defective_matrix_has_bounds():
    """Its eigenvectors have no inverse: the parts of the matrix tell."""
    low, high = rg.verify.bounds(rg.linalg.eigvals, np.array([[1.0, 1.0], [0.0, 1.0]]))
    assert low.real.max() <= 1 <= high.real.min()
    assert high.real.max() < 1.8
    assert high.imag.max() < 0.8
