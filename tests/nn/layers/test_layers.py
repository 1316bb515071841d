"""Layers against formulas written in NumPy, and their gradients against finite differences."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, pytree

rng = np.random.default_rng(1)
X = rng.normal(size=(4, 6))


def wide(module):
    return module.to(rg.float64)


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
