"""Choices of linear bounds: what is optimised is the bound that is made of it."""

import numpy as np

import retrograd as rg
from retrograd.verify.dual_ascent import Dual, _compiled, _data, initial
from retrograd.verify.dual_bound import backward, propagate
from retrograd.verify.network_of_graph import network_of
from tests.verify.networks import mlp


def test_the_objective_is_the_bound():
    """For random choices, in a box and in a ball, but for roundings."""
    random = np.random.default_rng(0)
    f, _ = mlp([3, 5, 4, 2], 1)
    net = network_of(rg.trace(f, rg.spec((3,))))
    low, high = np.full((4, 3), -1.0), np.full((4, 3), 1.0)
    for ball in (None, (np.zeros((4, 3)), np.linspace(0.2, 0.8, 4))):
        bounds, _ = propagate(net, low, high, ball=ball)
        rows = random.normal(size=(4, 1, 2))
        signs = {net.source(k): np.sign(random.normal(size=(4, net.sizes[k]))) for k in net.relus}
        choice = initial(net, bounds, 1)
        choice = choice.like([random.random(tuple(x.shape)) for x in choice.arrays()])
        choice.weights[:] = 1.0
        betas = {v: choice.betas[v] * signs[v] for v in choice.betas}
        made = backward(net, len(net.steps), rows, bounds, choice.slopes, betas)
        weights = [
            ([w for _, w in s.terms], s.bias) if hasattr(s, "terms") else None for s in net.steps
        ]
        given = list(choice.slopes.values()), list(choice.betas.values()), choice.weights
        with rg.backend("reference"):
            data = _data(net, bounds, rows, np.zeros((4, 1)), signs)
            (_, value), _ = _compiled(net.structure, ball is not None)(given, data, weights)
        np.testing.assert_allclose(value.numpy(), made.minimum(bounds)[:, 0], rtol=1e-9, atol=1e-9)


def test_choices_are_rounded_to_few_places():
    choice = Dual({2: np.array([[1 / 3]])}, {1: np.array([[1e-3]])}, np.array([[0.7]]))
    rounded = choice.rounded()
    for x, y in zip(choice.arrays(), rounded.arrays(), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
        assert (y * 2.0**32 == np.round(y * 2.0**32)).all()
