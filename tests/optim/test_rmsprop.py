"""RMSprop by its formulas in NumPy."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps(momentum: float, centered: bool) -> None:
    lr, alpha, eps, decay = 0.1, 0.8, 1e-3, 0.2
    p, v, u, b, expected = START, np.zeros(3), np.zeros(3), np.zeros(3), []
    for grad in GRADIENTS:
        g = grad + decay * p
        v, u = alpha * v + (1 - alpha) * g**2, alpha * u + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - centered * u**2) + eps)
        p = p - lr * b
        expected.append(p)
    found = moved(
        optim.RMSprop, lr=lr, alpha=alpha, eps=eps, weight_decay=decay, momentum=momentum,
        centered=centered,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_refusals() -> None:
    for option in ("alpha", "eps", "momentum"):
        given: dict[str, Any] = {option: -0.1}
        with pytest.raises(rg.OptionError, match=option):
            optim.RMSprop(**given)
