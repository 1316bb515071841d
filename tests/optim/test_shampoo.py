"""Shampoo by its formulas in SciPy."""

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, MATRICES, MATRIX, START, moved


@pytest.mark.parametrize(
    ("start", "gradients", "most"),
    [(START, GRADIENTS, 9), (MATRIX, MATRICES, 9), (MATRIX, MATRICES, 2)],
)
def test_steps(start, gradients, most) -> None:
    lr, momentum, decay, eps = 0.1, 0.5, 0.2, 1e-2
    p, kept, expected = start, 0.0, []
    totals = [eps * np.eye(n) for n in start.shape]
    for grad in gradients:
        u = g = grad + decay * p
        for i, n in enumerate(start.shape):
            if n > most:
                continue
            flat = np.moveaxis(g, i, 0).reshape(n, -1)
            totals[i] = totals[i] + flat @ flat.T
            root = scipy.linalg.fractional_matrix_power(totals[i], -1 / (2 * start.ndim)).real
            u = np.moveaxis(np.tensordot(root, u, axes=(1, i)), 0, i)
        kept = momentum * kept + u
        p = p - lr * kept
        expected.append(p)
    found = moved(
        optim.Shampoo, gradients, start, lr=lr, momentum=momentum, weight_decay=decay, eps=eps,
        max_preconditioner_dim=most,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_low_precision_keeps_its_dtype() -> None:
    p = rg.ones((2, 3), dtype=rg.float16)
    opt = optim.Shampoo(lr=0.1)
    state = opt.init([p])
    assert state["preconditioner_0"][0].dtype == rg.float32
    (new,), _ = opt.update([p], [p], state)
    assert new.dtype == rg.float16
