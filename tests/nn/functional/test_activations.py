"""Activations as functions: against PyTorch, on odd shapes, with every option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from tests.nn.functional.torch_cases import (
    Case,
    compare,
    normal,
)

F = nn.functional

X = np.append(normal(3, 7), [[-3.0, 3.0, 0.5, -0.5, 25.0, -25.0, 6.0]], 0)
ACTIVATIONS: dict[str, Case] = {
    name: (f, (X,))
    for name, f in {
        "celu": lambda m, x: m.celu(x, 0.5),
        "elu": lambda m, x: m.elu(x, 1.3),
        "selu": lambda m, x: m.selu(x),
        "gelu": lambda m, x: m.gelu(x),
        "gelu tanh": lambda m, x: m.gelu(x, approximate="tanh"),
        "glu": lambda m, x: m.glu(x, dim=0),
        "hardshrink": lambda m, x: m.hardshrink(x, 0.4),
        "hardsigmoid": lambda m, x: m.relu6(x + 3) / 6 if m is not F else m.hardsigmoid(x),
        "hardswish": lambda m, x: m.hardswish(x),
        "hardtanh": lambda m, x: m.hardtanh(x, -0.7, 1.2),
        "leaky_relu": lambda m, x: m.leaky_relu(x, 0.2),
        "logsigmoid": lambda m, x: m.logsigmoid(x),
        "mish": lambda m, x: m.mish(x),
        "relu": lambda m, x: m.relu(x),
        "relu6": lambda m, x: m.relu6(x),
        "rrelu": lambda m, x: m.rrelu(x, 0.1, 0.4),
        "sigmoid": lambda m, x: m.sigmoid(x),
        "silu": lambda m, x: m.silu(x),
        "softplus": lambda m, x: m.softplus(x),
        "softplus beta": lambda m, x: m.softplus(x, beta=2.5, threshold=3.0),
        "softshrink": lambda m, x: m.softshrink(x, 0.3),
        "softsign": lambda m, x: m.softsign(x),
        "softmax": lambda m, x: m.softmax(x, dim=0),
        "softmin": lambda m, x: m.softmin(x, dim=1),
        "log_softmax": lambda m, x: m.log_softmax(x, dim=-1),
        "tanh": lambda m, x: m.tanh(x),
        "tanhshrink": lambda m, x: m.tanhshrink(x),
        "threshold": lambda m, x: m.threshold(x, 0.1, -2.0),
    }.items()
}
ACTIVATIONS["prelu"] = (lambda m, x, w: m.prelu(x, w), (normal(2, 3, 5), normal(3)))
ACTIVATIONS["prelu one"] = (lambda m, x, w: m.prelu(x, w), (normal(2, 3, 5), normal(1)))


@pytest.mark.torch
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_as_in_torch(name: str) -> None:
    f, arrays = ACTIVATIONS[name]
    compare(f, arrays, name)


@pytest.mark.torch
def test_dtype_of_softmax() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x = normal(3, 4)
    for name in ("softmax", "log_softmax", "softmin"):
        single = getattr(F, name)(rg.tensor(x, dtype=rg.float32), 0, dtype=rg.float64)
        right = getattr(torch.nn.functional, name)(
            torch.tensor(x, dtype=torch.float32), 0, dtype=torch.float64
        )
        assert single.dtype == rg.float64
        np.testing.assert_allclose(single.numpy(), right.numpy(), rtol=1e-14)


def test_gumbel_softmax() -> None:
    """Frequencies of hard samples are the probabilities; the gradient is that of the soft ones."""
    p = np.array([0.2, 0.5, 0.3])
    logits = rg.asarray(np.broadcast_to(np.log(p), (20_000, 3)))
    y = F.gumbel_softmax(logits, 0.7, hard=True, generator=rg.random.Generator(1)).numpy()
    assert set(np.unique(y)) == {0.0, 1.0}
    np.testing.assert_allclose(y.mean(0), p, atol=0.012)

    def total(x: Any, hard: bool) -> Any:
        w = np.array([1.0, 2.0, 4.0])
        return (F.gumbel_softmax(x, 0.7, hard, generator=rg.random.Generator(2)) * w).sum()

    a, b = (rg.grad(lambda x, h=h: total(x, h))(logits[:5]).numpy() for h in (True, False))
    np.testing.assert_allclose(a, b, 1e-12)


@pytest.mark.parametrize("name", ["swiglu", "geglu", "reglu"])
def test_gated(name: str) -> None:
    """The activation of the first half, or array, times the second."""
    x = normal(3, 6)
    plain: Any = {"swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}[name]
    gated: Any = getattr(F, name)
    expected = plain(x[:, :3]).numpy() * x[:, 3:]
    np.testing.assert_allclose(gated(x).numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(gated(x[:, :3], x[:, 3:]).numpy(), gated(x).numpy())
    np.testing.assert_array_equal(gated(x.T, dim=0).numpy(), gated(x).numpy().T)
    assert rg.gradcheck(gated, rg.tensor(x))
    layer: Any = getattr(nn, {"swiglu": "SwiGLU", "geglu": "GEGLU", "reglu": "ReGLU"}[name])
    np.testing.assert_array_equal(layer(dim=0)(x.T).numpy(), gated(x).numpy().T)
    with pytest.raises(rg.ShapeError, match="even size"):
        gated(x[:, :5])
    with pytest.raises(rg.ShapeError, match="one shape"):
        gated(x, x[:, :1])
