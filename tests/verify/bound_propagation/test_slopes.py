"""What bounds of derivatives say, compared with slopes of pairs of points and of mathematics."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, DTypeError, OptionError
from retrograd.verify import Direction, lipschitz, monotone, sensitivity

Box = rg.verify.Box
W = np.array([[1.0, -2.0, 0.0], [0.5, 0.0, 3.0]])


def linear(x):
    return rg.tensor(W) @ x


@pytest.mark.parametrize(("ord", "exact"), [(1, 3.0), (math.inf, 3.5), (2, np.linalg.norm(W, 2))])
def test_of_a_matrix_they_are_its_norms(ord, exact):
    found = lipschitz(linear, Box(-np.ones(3), np.ones(3)), ord=ord)
    assert exact <= found <= exact * (1.2 if ord == 2 else 1 + 1e-9)


@pytest.mark.parametrize("ord", [1, 2, math.inf])
def test_no_pair_of_points_is_steeper(ord):
    rng = np.random.default_rng(0)
    box = Box(np.full(3, -0.5), np.full(3, 1.0))

    def f(x):
        return rg.sin(rg.tensor(W) @ (x * x)) + rg.relu(x[0])

    with rg.backend("reference"):
        constant = lipschitz(f, box, ord=ord)
        assert constant < 50
        for _ in range(20):
            x, y = (rng.uniform(box.lower, box.upper) for _ in range(2))
            moved = np.asarray(f(rg.tensor(x))) - np.asarray(f(rg.tensor(y)))
            assert np.linalg.norm(moved, ord) <= constant * np.linalg.norm(x - y, ord) * (1 + 1e-9)


def test_directions():
    box = Box([0.5, -1.0, 0.0, 2.0], [2.0, 1.0, 1.0, 3.0])
    found = monotone(lambda x: x[0] ** 2 + x[1] ** 2 - rg.exp(x[2]) + 0 * x[3], box)
    assert found.tolist() == [
        Direction.INCREASING, Direction.UNKNOWN, Direction.DECREASING, Direction.CONSTANT,
    ]  # fmt: skip


def test_sensitivities_have_both_sets_of_axes():
    low, high = sensitivity(linear, Box(np.zeros(3), np.ones(3)))
    assert low.shape == (2, 3)
    assert (low <= W).all()
    assert (high >= W).all()
    assert np.allclose(low, W)
    assert np.allclose(high, W)


def test_what_has_no_slopes():
    with pytest.raises(OptionError, match="norms"):
        lipschitz(rg.sin, Box([0.0], [1.0]), ord=3)
    with pytest.raises(ArgumentError, match="Box"):
        sensitivity(rg.sin, np.zeros(3))
    with pytest.raises(DTypeError, match="floats"):
        monotone(lambda x: x * 2, Box([0], [1]))
    with pytest.raises(ArgumentError, match="function"):
        sensitivity(3, Box([0.0], [1.0]))
    with pytest.raises(ArgumentError, match="one array"):
        sensitivity(lambda x: (x, x), Box([0.0], [1.0]))
