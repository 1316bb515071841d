"""Linear bounds hold for every choice, at every point, and for the floats that programs give."""

from fractions import Fraction

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.dual_ascent import ascend, initial
from retrograd.verify.dual_bound import ValueBounds, backward, propagate, upper_line
from retrograd.verify.network import Affine
from retrograd.verify.network_of_graph import network_of
from tests.verify.networks import mlp, run


def network(sizes, seed):
    f, layers = mlp(sizes, seed)
    return network_of(rg.trace(f, rg.spec((sizes[0],)))), layers


def values(net, x):
    """Every value of a network for rows of inputs, in float64."""
    found = [x]
    for step in net.steps:
        if isinstance(step, Affine):
            found.append(step.bias + sum(found[v] @ w.T for v, w in step.terms))
        else:
            found.append(np.maximum(found[step.source], 0))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_choice_of_slopes_and_betas_gives_a_bound(seed):
    random = np.random.default_rng(seed)
    net, layers = network([3, 7, 6, 2], seed)
    low, high = -random.random((1, 3)), random.random((1, 3))
    bounds, _ = propagate(net, low, high)
    x = low + (high - low) * random.random((4000, 3))
    every = values(net, x)
    for value, a, b in zip(every, bounds.lower, bounds.upper, strict=True):
        assert (value >= a).all()
        assert (value <= b).all()
    argument = net.source(net.relus[1])
    signs = np.sign(random.integers(-1, 2, (1, 6)).astype(float))
    slopes = {k: random.random((1, net.sizes[k])) for k in net.relus}
    betas = {argument: random.random((1, 6)) * 2 * signs}
    rows = random.normal(size=(1, 2, 2))
    for decided in (False, True):
        found = backward(net, len(net.steps), rows, bounds, slopes, betas if decided else None)
        inside = (every[argument] * signs >= 0).all(1) if decided else np.ones(len(x), bool)
        linear = x @ found.coefficients[0].T + found.constant[0]
        assert (linear <= every[-1] @ rows[0].T + 1e-9)[inside].all()
        least = found.minimum(bounds)[0]
        assert (linear.min(0) >= least)[0] or decided
    np.testing.assert_allclose(run(layers, x), every[-1], atol=1e-6)


def test_the_line_above_a_relu_is_above():
    random = np.random.default_rng(0)
    low = -(10.0 ** random.uniform(-30, 5, 3000))
    high = 10.0 ** random.uniform(-30, 5, 3000)
    s, t = upper_line(low, high)
    for a, b, slope, shift in zip(low, high, s, t, strict=True):
        slope, shift = Fraction(slope), Fraction(shift)
        assert slope * Fraction(a) + shift >= 0
        assert slope * Fraction(b) + shift >= Fraction(b)


@pytest.mark.parametrize("dtype", [rg.float32, rg.float16, rg.float64, rg.bfloat16])
def test_bounds_of_a_point_hold_the_floats_of_the_program(dtype):
    """What is left of the bounds of one point is what roundings may do."""
    random = np.random.default_rng(1)
    w = [rg.asarray(random.normal(size=s) * 3).astype(dtype) for s in ((20, 30), (30, 10))]

    def f(x):
        h = rg.relu(x @ w[0] - 0.3) * 1.7
        return (h / 3 @ w[1] + rg.sum(h)) / 7 - rg.mean(h)

    graph = rg.trace(f, rg.spec((20,), dtype))
    net = network_of(graph)
    widths = []
    for seed in range(8):
        x = rg.asarray(np.random.default_rng(seed).normal(size=20)).astype(dtype)
        point = x.astype(rg.float64).numpy()[None]
        bounds, _ = propagate(net, point, point)
        with rg.backend("reference"):
            y = graph(x).astype(rg.float64).numpy()
        assert (bounds.lower[-1][0] <= y).all()
        assert (y <= bounds.upper[-1][0]).all()
        exact = net(point)[0]
        widths.append(np.abs(y - exact).max() / (bounds.upper[-1] - bounds.lower[-1]).max())
    assert max(widths) > 1e-5 or dtype == rg.float64  # the error that is allowed is no fantasy


def test_ascent_finds_better_bounds():
    net, _ = network([4, 10, 10, 2], 2)
    low, high = np.full((3, 4), -0.5), np.full((3, 4), 0.5)
    bounds, _ = propagate(net, low, high)
    rows = np.random.default_rng(0).normal(size=(3, 1, 2))
    signs = {net.source(k): np.zeros((3, net.sizes[k])) for k in net.relus}
    start = initial(net, bounds, 1)
    with rg.backend("reference"):
        found = ascend(net, bounds, rows, np.zeros((3, 1)), signs, start, 15, np.ones((3, 1)))

    def least(dual):
        made = backward(net, len(net.steps), rows, bounds, dual.slopes)
        return made.minimum(bounds)[:, 0]

    assert (least(found) > least(start) + 1e-3).all()
    assert all(s.min() >= 0 and s.max() <= 1 for s in found.slopes.values())
    assert all((b == 0).all() for b in found.betas.values())


def test_cases_are_taken_apart_and_put_together():
    net, _ = network([2, 3, 1], 0)
    low = np.random.default_rng(0).normal(size=(4, 2))
    ball = (low + 0.5, np.array([0.1, 0.2, 0.3, 0.4]))
    bounds, _ = propagate(net, low, low + 1, ball=ball)
    again = ValueBounds.stacked([bounds.take([k]) for k in range(4)])
    for a, b in zip(bounds.lower + bounds.upper, again.lower + again.upper, strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.ball is not None
    np.testing.assert_array_equal(again.ball[0], ball[0])
