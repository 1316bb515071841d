"""NAdam and RAdam by their formulas in NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


@pytest.mark.parametrize("decoupled", [False, True])
def test_nadam(decoupled: bool) -> None:
    lr, beta1, beta2, eps, decay, fall = 0.1, 0.8, 0.6, 1e-3, 0.2, 0.1
    p, m, v, product, expected = START, np.zeros(3), np.zeros(3), np.float32(1), []
    for t, grad in enumerate(GRADIENTS, 1):
        g = grad if decoupled else grad + decay * p
        p = p * (1 - lr * decay) if decoupled else p
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (k * fall)) for k in (t, t + 1))
        product = product * np.float32(mu)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        size = np.sqrt(v / (1 - beta2**t)) + eps
        whole = float(product)
        p = p - lr * (1 - mu) / (1 - whole) * g / size
        p = p - lr * following / (1 - whole * following) * m / size
        expected.append(p)
    found = moved(
        optim.NAdam, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay, momentum_decay=fall,
        decoupled_weight_decay=decoupled,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("beta2", [0.9, 0.5])
def test_radam(beta2: float) -> None:
    """With 0.9 the variance counts from the sixth step on, with 0.5 never."""
    lr, beta1, eps, decay = 0.1, 0.8, 1e-3, 0.2
    p, m, v, expected = START, np.zeros(3), np.zeros(3), []
    gradients = [*GRADIENTS, *(-GRADIENTS)]
    most = 2 / (1 - beta2) - 1
    adapted = 0
    for t, grad in enumerate(gradients, 1):
        g = grad + decay * p
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        now = most - 2 * t * beta2**t / (1 - beta2**t)
        moves = lr * m / (1 - beta1**t)
        if now > 5:
            rect = (now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now)
            moves = moves * np.sqrt(rect * (1 - beta2**t)) / (np.sqrt(v) + eps)
            adapted += 1
        p = p - moves
        expected.append(p)
    assert adapted == (3 if beta2 == 0.9 else 0)
    options = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": decay}
    np.testing.assert_allclose(moved(optim.RAdam, gradients, **options), expected, rtol=1e-12)


def test_refusals() -> None:
    with pytest.raises(rg.OptionError, match="momentum_decay"):
        optim.NAdam(momentum_decay=-1.0)
    with pytest.raises(rg.OptionError, match="betas"):
        optim.RAdam(betas=(1.0, 0.9))
