"""Adagrad by its formulas in NumPy."""

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
    given = {option: -1.0}
    with pytest.raises(rg.OptionError, match=f"{option} is not negative"):
        optim.Adagrad(**given)
