"""Activations as layers, and functions of them, by formulas in NumPy."""

import math

import numpy as np
from scipy import special

import retrograd as rg
from retrograd import nn

F = nn.functional
rng = np.random.default_rng(1)
X = rng.normal(size=(4, 6))


def numpy_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_activations():
    cases = [
        (nn.ReLU(), np.maximum(X, 0)),
        (nn.Tanh(), np.tanh(X)),
        (nn.Sigmoid(), special.expit(X)),
        (nn.SiLU(), X * special.expit(X)),
        (nn.GELU(), X * special.ndtr(X)),
        (nn.GELU("tanh"), X / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))),
        (nn.Identity(1, a=2), X),
    ]
    for layer, expected in cases:
        np.testing.assert_allclose(np.asarray(layer(X)), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(F.elu(X, 2.0).numpy(), np.where(X > 0, X, 2 * np.expm1(X)))
    np.testing.assert_allclose(F.leaky_relu(X, 0.1).numpy(), np.where(X > 0, X, 0.1 * X))
    np.testing.assert_allclose(F.softplus(X).numpy(), np.log1p(np.exp(X)))
    np.testing.assert_allclose(F.logsigmoid(X).numpy(), np.log(special.expit(X)))
    np.testing.assert_allclose(F.softmax(X, dim=0).numpy(), numpy_softmax(X.T).T)
    np.testing.assert_allclose(F.log_softmax(X).numpy(), np.log(numpy_softmax(X)))
    assert F.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_flatten():
    x = rg.ones((2, 3, 4, 5))
    assert nn.Flatten()(x).shape == (2, 60)
    assert nn.Flatten(0, 1)(x).shape == (6, 4, 5)
    assert nn.Flatten(-2)(x).shape == (2, 3, 20)
