"""Adam and AdamW by their formulas in NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_steps(decoupled: bool, amsgrad: bool) -> None:
    lr, beta1, beta2, eps, decay = 0.1, 0.8, 0.6, 1e-3, 0.2
    p, m, v, top, expected = START, np.zeros(3), np.zeros(3), np.zeros(3), []
    for t, grad in enumerate(GRADIENTS, 1):
        g = grad if decoupled else grad + decay * p
        p = p * (1 - lr * decay) if decoupled else p
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        top = np.maximum(top, v)
        size = np.sqrt((top if amsgrad else v) / (1 - beta2**t)) + eps
        p = p - lr * m / (1 - beta1**t) / size
        expected.append(p)
    kind = optim.AdamW if decoupled else optim.Adam
    options = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": decay}
    np.testing.assert_allclose(moved(kind, amsgrad=amsgrad, **options), expected, rtol=1e-12)


def test_the_first_step_is_as_long_as_the_rate() -> None:
    first = moved(optim.Adam, lr=0.1, eps=0.0)[0]
    np.testing.assert_allclose(first, START - 0.1 * np.sign(GRADIENTS[0]), rtol=1e-12)


def test_refusals() -> None:
    with pytest.raises(rg.OptionError, match="betas is two numbers from 0 to below 1"):
        optim.AdamW(betas=(0.9, 1.0))
    p, q = (rg.tensor([1.0], requires_grad=True) for _ in range(2))
    with pytest.raises(rg.OptionError, match="amsgrad is the same in all groups"):
        optim.Adam([{"params": [p]}, {"params": [q], "amsgrad": True}])
