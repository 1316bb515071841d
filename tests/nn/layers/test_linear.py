"""Linear layers against formulas in NumPy."""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn

rng = np.random.default_rng(1)
X = rng.normal(size=(4, 6))


def wide(module):
    return module.to(rg.float64)


def test_linear():
    layer: Any = wide(nn.Linear(6, 3))
    w, b = layer.weight.numpy(), layer.bias.numpy()
    np.testing.assert_allclose(layer(X).numpy(), X @ w.T + b)
    np.testing.assert_allclose(layer(X[0]).numpy(), X[0] @ w.T + b)
    np.testing.assert_allclose(layer(X[None, None]).numpy()[0, 0], X @ w.T + b)
    assert wide(nn.Linear(6, 3, bias=False))(X).shape == (4, 3)
