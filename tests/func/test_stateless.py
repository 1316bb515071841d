"""Modules as functions of their parameters."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.func import functional_call, grad, stack_module_state, vmap


def test_gradients_of_samples_and_an_ensemble() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    weights = dict(model.named_parameters())
    x, y = rg.randn(5, 3), rg.randn(5, 1)

    def loss(p, x, y):
        return ((functional_call(model, p, (x,)) - y) ** 2).mean()

    each = vmap(grad(loss), in_axes=(None, 0, 0))(weights, x, y)
    model.zero_grad()
    ((model(x) - y) ** 2).mean().backward()
    for name, p in model.named_parameters():
        np.testing.assert_allclose(each[name].mean(axis=0), p.grad, rtol=1e-4, atol=1e-6)

    several = [nn.Linear(3, 1) for _ in range(4)]
    parameters, buffers = stack_module_state(several)
    found = vmap(lambda p, b: functional_call(several[0], (p, b), x))(parameters, buffers)
    expected = rg.stack([m(x) for m in several])
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-5, atol=1e-6)


def test_the_module_stays_and_names_are_checked() -> None:
    model = nn.BatchNorm1d(2)
    before = model.weight.tolist()
    other = {"weight": rg.zeros(2), "running_mean": rg.ones(2)}
    assert functional_call(model.eval(), other, rg.ones((1, 2))).tolist() == [[0.0, 0.0]]
    assert model.weight.tolist() == before
    with pytest.raises(rg.ArgumentError, match="has no 'wieght'; it has weight"):
        functional_call(model, {"wieght": rg.zeros(2)}, rg.ones((1, 2)))
    with pytest.raises(rg.ArgumentError, match="'bias' is missing"):
        functional_call(model, {"weight": rg.zeros(2)}, rg.ones((1, 2)), strict=True)
    with pytest.raises(rg.ArgumentError, match="same class"):
        stack_module_state([nn.Linear(1, 1), nn.BatchNorm1d(1)])
