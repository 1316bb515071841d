"""Stochastic gradient descent by its formulas in NumPy."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


@pytest.mark.parametrize(
    ("momentum", "dampening", "nesterov", "decay"),
    [(0.0, 0.0, False, 0.0), (0.9, 0.0, False, 0.1), (0.9, 0.3, False, 0.0), (0.8, 0.0, True, 0.2)],
)
def test_steps(momentum: float, dampening: float, nesterov: bool, decay: float) -> None:
    """The first step takes the gradient as it is for its momentum, undamped."""
    p, b, expected = START, np.zeros(3), []
    for t, grad in enumerate(GRADIENTS):
        g = grad + decay * p
        if momentum:
            b = momentum * b + (1 - dampening if t else 1) * g
            g = g + momentum * b if nesterov else b
        p = p - 0.1 * g
        expected.append(p)
    found = moved(
        optim.SGD, lr=0.1, momentum=momentum, dampening=dampening, nesterov=nesterov,
        weight_decay=decay,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_nesterov_needs_a_momentum_that_is_not_damped() -> None:
    every: list[dict[str, Any]] = [{}, {"momentum": 0.9, "dampening": 0.1}]
    for options in every:
        with pytest.raises(rg.OptionError, match="nesterov"):
            optim.SGD(nesterov=True, **options)


def test_names_of_sgd() -> None:
    for kind, options in ((optim.Momentum, {}), (optim.Nesterov, {"nesterov": True})):
        expected = moved(optim.SGD, lr=0.1, momentum=0.9, **options)
        np.testing.assert_array_equal(moved(kind, lr=0.1), expected)


def test_averaged() -> None:
    """The rate and the share in the average are those of the step before, in float32."""
    lr, lambd, alpha, t0, decay = 0.1, 0.2, 0.5, 1, 0.3
    p, ax, eta, mu, expected = START, np.zeros(3), np.float32(lr), np.float32(1), []
    for t, grad in enumerate(GRADIENTS, 1):
        g = grad + decay * p
        p = (1 - lambd * float(eta)) * p - float(eta) * g
        ax = p if mu == 1 else ax + float(mu) * (p - ax)
        eta = np.float32(lr / (1 + lambd * lr * t) ** alpha)
        mu = np.float32(1 / max(1, t - t0))
        expected.append(p)
    options: dict[str, Any] = {
        "lr": lr,
        "lambd": lambd,
        "alpha": alpha,
        "t0": t0,
        "weight_decay": decay,
    }
    np.testing.assert_allclose(moved(optim.ASGD, **options), expected, rtol=1e-12)
    opt = optim.ASGD(**options)
    q, state = rg.tensor(START), opt.init(rg.tensor(START))
    for g in GRADIENTS:
        q, state = opt.update(q, rg.tensor(g), state)
    np.testing.assert_allclose(state["ax"][0].numpy(), ax, rtol=1e-12)
    assert not np.allclose(ax, p)
