"""The feed-forward part against NumPy and against PyTorch."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError, ShapeError

X = np.random.default_rng(0).normal(size=(2, 3, 6))
erf = np.vectorize(math.erf)
BY_NAME = {
    "swiglu": lambda a: a / (1 + np.exp(-a)),
    "geglu": lambda a: a * (1 + erf(a / math.sqrt(2))) / 2,
    "reglu": lambda a: np.maximum(a, 0),
    "relu": lambda a: np.maximum(a, 0),
    "gelu": lambda a: a * (1 + erf(a / math.sqrt(2))) / 2,
    "gelu_tanh": lambda a: a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))) / 2,
    "silu": lambda a: a / (1 + np.exp(-a)),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_values(name: str) -> None:
    layer = nn.FeedForward(6, 10, name, bias=True, dtype=rg.float64)
    p = {k: v.numpy() for k, v in layer.state_dict().items()}
    up = X @ p["up_proj.weight"].T + p["up_proj.bias"]
    if name.endswith("glu"):
        gate = X @ p["gate_proj.weight"].T + p["gate_proj.bias"]
        hidden = BY_NAME[name](gate) * up
    else:
        assert layer.gate_proj is None
        hidden = BY_NAME[name](up)
    expected = hidden @ p["down_proj.weight"].T + p["down_proj.bias"]
    np.testing.assert_allclose(layer(X).numpy(), expected, rtol=1e-10)


def test_sizes_and_functions() -> None:
    assert nn.FeedForward(6).up_proj.out_features == 16
    assert nn.FeedForward(6, multiple_of=10).up_proj.out_features == 20
    assert nn.FeedForward(6, activation="relu").up_proj.out_features == 24
    layer = nn.FeedForward(6, 8, nn.Tanh(), dropout=0.5)
    assert layer.eval()(X).shape == X.shape
    assert [n for n, _ in nn.FeedForward(6, 8, rg.tanh).named_parameters()] == [
        "up_proj.weight",
        "down_proj.weight",
    ]
    with pytest.raises(OptionError, match="did you mean 'swiglu'"):
        nn.FeedForward(6, activation="swiglue")
    with pytest.raises(OptionError, match="probability"):
        nn.FeedForward(6, dropout=2)
    with pytest.raises(ShapeError, match="at least 1"):
        nn.FeedForward(0)


@pytest.mark.torch
def test_against_torch() -> None:
    """Values and gradients of what `transformers` calls a Llama MLP."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    ours = nn.FeedForward(6, 10, dtype=rg.float64)
    w = {k: torch.tensor(v.numpy(), requires_grad=True) for k, v in ours.state_dict().items()}
    x = torch.tensor(X)
    gate, up, down = (w[f"{n}_proj.weight"] for n in ("gate", "up", "down"))
    expected = (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T
    expected.square().sum().backward()
    found = ours(X)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-10)
    (found * found).sum().backward()
    for name, p in ours.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), w[name].grad.numpy(), rtol=1e-9, atol=1e-12)
