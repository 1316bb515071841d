"""Adagrad by its formulas in NumPy."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


@pytest.mark.parametrize(("fall", "decay", "first"), [(0.0, 0.0, 0.0), (0.5, 0.2, 0.3)])
def test_steps(fall: float, decay: float, first: float) -> None:
    p, s, expected = START, np.full(3, first), []
    for t, grad in enumerate(GRADIENTS, 1):
        g = grad + decay * p
        s = s + g**2
        p = p - 0.1 / (1 + (t - 1) * fall) * g / (np.sqrt(s) + 1e-3)
        expected.append(p)
    found = moved(
        optim.Adagrad, lr=0.1, lr_decay=fall, weight_decay=decay, initial_accumulator_value=first,
        eps=1e-3,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("option", ["lr", "lr_decay", "eps", "initial_accumulator_value"])
def test_nothing_is_negative(option: str) -> None:
    given: dict[str, Any] = {option: -1.0}
    with pytest.raises(rg.OptionError, match=f"{option} is not negative"):
        optim.Adagrad(**given)


def test_adadelta() -> None:
    lr, rho, eps, decay = 0.5, 0.8, 1e-2, 0.1
    p, v, u, expected = START, np.zeros(3), np.zeros(3), []
    for grad in GRADIENTS:
        g = grad + decay * p
        v = rho * v + (1 - rho) * g**2
        d = np.sqrt((u + eps) / (v + eps)) * g
        u = rho * u + (1 - rho) * d**2
        p = p - lr * d
        expected.append(p)
    found = moved(optim.Adadelta, lr=lr, rho=rho, eps=eps, weight_decay=decay)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(rg.OptionError, match=r"rho is from 0 to 1, not 1\.5"):
        optim.Adadelta(rho=1.5)
