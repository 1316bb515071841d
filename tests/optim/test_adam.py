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


def test_groups_may_differ_in_what_they_remember() -> None:
    p, q = (rg.tensor([1.0], requires_grad=True) for _ in range(2))
    opt = optim.Adam([{"params": [p]}, {"params": [q], "amsgrad": True}])
    (p * q).sum().backward()
    opt.step()
    kept = [set(s) - {"step"} for s in opt.state_dict()["state"].values()]
    assert kept == [{"exp_avg", "exp_avg_sq"}, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}]


def test_adamax() -> None:
    lr, beta1, beta2, eps, decay = 0.1, 0.8, 0.6, 1e-3, 0.2
    p, m, u, expected = START, np.zeros(3), np.zeros(3), []
    for t, grad in enumerate(GRADIENTS, 1):
        g = grad + decay * p
        m, u = beta1 * m + (1 - beta1) * g, np.maximum(beta2 * u, np.abs(g) + eps)
        p = p - lr / (1 - beta1**t) * m / u
        expected.append(p)
    options = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": decay}
    np.testing.assert_allclose(moved(optim.Adamax, **options), expected, rtol=1e-12)


def test_sparse_adam_moves_rows() -> None:
    """Those that were looked at; where eps stands makes it differ from Adam."""
    lr, beta1, beta2, eps = 0.1, 0.8, 0.6, 0.5
    table = rg.nn.Parameter(np.ones((4, 2)))
    opt = optim.SparseAdam([table], lr=lr, betas=(beta1, beta2), eps=eps)
    p, m, v = np.ones((4, 2)), np.zeros((4, 2)), np.zeros((4, 2))
    for t, rows in enumerate(([1, 2, 1], [2, 0, 0]), 1):
        opt.zero_grad()
        rg.nn.functional.embedding(rg.tensor(rows), table, sparse=True).sum().backward()
        opt.step()
        for row in set(rows):
            g = rows.count(row)
            m[row], v[row] = beta1 * m[row] + (1 - beta1) * g, beta2 * v[row] + (1 - beta2) * g**2
            size = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
            p[row] -= size * m[row] / (np.sqrt(v[row]) + eps)
        np.testing.assert_allclose(table.numpy(), p, rtol=1e-12)
