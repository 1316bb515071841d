"""Layers against formulas written in NumPy, and their gradients against finite differences."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import retrograd as rg
from retrograd import nn, pytree
from retrograd.errors import ShapeError

F = nn.functional
rng = np.random.default_rng(1)
X = rng.normal(size=(4, 6))


def wide(module):
    return module.to(rg.float64)


def numpy_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_linear():
    layer: Any = wide(nn.Linear(6, 3))
    w, b = layer.weight.numpy(), layer.bias.numpy()
    np.testing.assert_allclose(layer(X).numpy(), X @ w.T + b)
    np.testing.assert_allclose(layer(X[0]).numpy(), X[0] @ w.T + b)
    np.testing.assert_allclose(layer(X[None, None]).numpy()[0, 0], X @ w.T + b)
    assert wide(nn.Linear(6, 3, bias=False))(X).shape == (4, 3)


def test_embedding():
    layer: Any = nn.Embedding(5, 3)
    index = np.array([[0, 4], [2, 2]])
    np.testing.assert_array_equal(layer(index).numpy(), layer.weight.numpy()[index])
    layer(index).sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [1, 0, 2, 0, 1]
    with pytest.raises(rg.DTypeError, match="in Embedding"):
        layer([0.5])
    for i in (5, -1):
        with pytest.raises(rg.IndexRangeError):
            layer([i]).numpy()


@pytest.mark.parametrize("index", [1, -4])
def test_padding_is_zero_and_not_trained(index):
    layer: Any = nn.Embedding(5, 3, padding_idx=index)
    assert layer.weight.numpy()[1].tolist() == [0, 0, 0]
    layer([1, 1, 2]).sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(("shape", "axes"), [(6, (1,)), ((6,), (1,)), ((4, 6), (0, 1))])
def test_normalizations(shape, axes):
    mean, var = X.mean(axes, keepdims=True), X.var(axes, keepdims=True)
    layer = wide(nn.LayerNorm(shape, eps=1e-3))
    np.testing.assert_allclose(layer(X).numpy(), (X - mean) / np.sqrt(var + 1e-3))
    square = (X * X).mean(axes, keepdims=True)
    layer = wide(nn.RMSNorm(shape, eps=1e-3))
    np.testing.assert_allclose(layer(X).numpy(), X / np.sqrt(square + 1e-3))
    layer = nn.RMSNorm(shape, elementwise_affine=False)
    np.testing.assert_allclose(layer(X).numpy(), X / np.sqrt(square + np.finfo(float).eps))
    assert not list(layer.parameters())


def test_normalizations_check_the_shape():
    for layer in (nn.LayerNorm(5), nn.RMSNorm((3, 6))):
        with pytest.raises(rg.ShapeError, match=f"in {type(layer).__name__}"):
            layer(X)


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


def test_symbolic_batch():
    model = nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Flatten(), nn.Linear(4, 1))
    f = rg.jit(lambda x: model(x).sum(), shapes={"x": "N 6"})
    with rg.no_grad():
        for n in (1, 3, 5):
            x = rg.ones((n, 6))
            assert f(x).item() == pytest.approx(model(x).sum().item(), rel=1e-5)
    assert f.cache_stats()["compilations"] == 1


LAYERS = {
    "linear": lambda: nn.Linear(6, 3),
    "layer norm": lambda: nn.LayerNorm(6),
    "layer norm over two axes": lambda: nn.LayerNorm((4, 6)),
    "rms norm": lambda: nn.RMSNorm(6),
    "rms norm over two axes": lambda: nn.RMSNorm((4, 6)),
    "mlp": lambda: nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 2), nn.Sigmoid()),
    "silu": lambda: nn.Sequential(nn.Linear(6, 5), nn.SiLU(), nn.Tanh()),
    "attention": lambda: nn.MultiHeadAttention(6, 2),
    "causal attention": lambda: nn.MultiHeadAttention(6, 3, causal=True, bias=False),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_by_finite_differences(name):
    """Along a random direction of all parameters and the input."""
    layer = wide(LAYERS[name]())
    weights = rng.normal(size=layer(X).shape)

    def f(layer, x):
        return (layer(x) * weights).sum()

    leaves, structure = pytree.flatten((layer, rg.tensor(X)))
    leaves = [np.asarray(x) + 0.1 * rng.normal(size=x.shape) for x in leaves]
    direction = [rng.normal(size=x.shape) for x in leaves]

    def at(h):
        moved = [rg.tensor(x + h * d) for x, d in zip(leaves, direction, strict=True)]
        return pytree.unflatten(structure, moved)

    grads = pytree.flatten(rg.grad(f, argnums=(0, 1))(*at(0)))[0]
    slope = sum((g.numpy() * d).sum() for g, d in zip(grads, direction, strict=True))
    h = 1e-5
    expected = (f(*at(h)).item() - f(*at(-h)).item()) / (2 * h)
    assert slope == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.sample(2)
def test_cross_map_normalisation(size: int) -> None:
    """By its definition; PyTorch's own has other windows for all but the first channels."""
    x = np.random.default_rng(0).normal(size=(2, 7, 3, 2))
    layer, half = nn.CrossMapLRN2d(size, 0.3, 0.7, 1.3), (size - 1) // 2
    total = np.stack(
        [(x[:, max(c - half, 0) : c + half + 1] ** 2).sum(axis=1) for c in range(7)], axis=1
    )
    np.testing.assert_allclose(layer(x).numpy(), x / (1.3 + 0.3 / size * total) ** 0.7, 1e-12)
    slope = rg.grad(lambda x: (layer(x) ** 3).sum())
    expected = rg.numerical_gradient(lambda x: (layer(x) ** 3).sum(), x)
    np.testing.assert_allclose(slope(x).numpy(), expected.numpy(), 1e-7, 1e-9)
    with pytest.raises(ShapeError, match="N, C, H, W"):
        layer(x[0])
