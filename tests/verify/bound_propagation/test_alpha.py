"""alpha-CROWN: means of planes, and the best slopes of a layer by a search over all of them."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.verify.bound_propagation.alpha import mean, tensors

R = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def by_meaning():
    with rg.backend("reference"):
        yield


def test_a_mean_of_planes_mixes_them_in_turn():
    """Each plane takes its share of what was mixed before it, for each function by itself."""
    slopes, biases = R.normal(size=(3, 2, 4)), R.normal(size=(3, 2))
    t = R.uniform(size=(5, 2, 2))  # functions, planes after the first, elements
    planes = tensors([((k,), b) for k, b in zip(slopes, biases, strict=True)])
    found = mean(tensors(t), planes, 5, (1,))
    shares = [(1 - t[:, 0]) * (1 - t[:, 1]), t[:, 0] * (1 - t[:, 1]), t[:, 1]]
    bias = sum(s * b for s, b in zip(shares, biases, strict=True))
    slope = sum(s[..., None] * k for s, k in zip(shares, slopes, strict=True))
    np.testing.assert_allclose(np.asarray(found.bias), bias, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(found.slopes[0]), slope, rtol=1e-12)


def test_the_best_slopes_of_a_layer():
    """Two hidden units with a slope each: the best of all on a grid is what ascent finds."""
    w, b = np.array([[1.0, -0.6], [0.7, 1.2]]), np.array([0.2, -0.1])
    v = np.array([1.0, 0.8])
    u = -w @ (v * [0.4, 0.55])  # so that slopes in the middle are best
    low, high = b - np.abs(w).sum(0), b + np.abs(w).sum(0)
    assert (low < 0).all()
    assert (high > 0).all()
    p, q = np.meshgrid(*[np.linspace(0, 1, 201)] * 2)
    a = np.stack([p, q], -1) * v  # of c . relu(z) with c > 0: the slope of the line below
    best = (a @ b - np.abs(a @ w.T + u).sum(-1)).max()
    f = lambda x: rg.relu(x @ w + b) @ v + x @ u
    box = rg.verify.Box(-np.ones(2), np.ones(2))
    first, found = (
        rg.verify.bounds(f, box, method="alpha-crown", iterations=n, lr=0.05) for n in (0, 40)
    )
    plain = rg.verify.bounds(f, box, method="crown")
    assert found.lower == pytest.approx(best, abs=0.02)  # there is a kink
    assert found.lower <= best + 1e-3
    assert first.lower == pytest.approx(plain.lower, abs=1e-12)
    assert first.lower < best - 0.2
    assert found.upper == pytest.approx(plain.upper, abs=1e-12)  # the chord is all there is above


def test_each_iterate_holds_and_the_best_is_kept():
    """A step that is far too large makes nothing worse."""
    w, v = R.normal(size=(3, 5)), R.normal(size=(5, 2))
    f = lambda x: rg.tanh(x @ w) @ v
    box = rg.verify.Box(-np.ones(3), np.ones(3))
    plain = rg.verify.bounds(f, box, method="crown")
    wild = rg.verify.bounds(f, box, method="alpha-crown", iterations=4, lr=50.0)
    assert (wild.lower >= plain.lower).all()
    assert (wild.upper <= plain.upper).all()
    y = np.tanh(R.uniform(-1, 1, size=(4000, 3)) @ w) @ v
    assert (wild.lower <= y.min(0)).all()
    assert (y.max(0) <= wild.upper).all()


@pytest.mark.parametrize("iterations", [-1, 2.5, "3"])
def test_numbers_of_steps(iterations):
    with pytest.raises(OptionError, match="a number of steps"):
        rg.verify.bounds(
            rg.exp, rg.verify.Box([0.0], [1.0]), method="alpha-crown", iterations=iterations
        )
