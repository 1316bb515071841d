"""Stochastic gradient descent by its formulas in NumPy."""

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
    for options in ({}, {"momentum": 0.9, "dampening": 0.1}):
        with pytest.raises(rg.OptionError, match="nesterov"):
            optim.SGD(nesterov=True, **options)
