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
