"""Activations by name."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.models.activations import activations, need_activation

X = np.linspace(-3, 3, 7)
WRITTEN_OUT = {
    "gelu": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_new": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_fast": lambda x: x / 2 * (1 + math.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0.0),
    "tanh": math.tanh,
    "linear": lambda x: x,
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_values(name):
    got = activations()[name](rg.tensor(X, dtype=rg.float64)).numpy()
    np.testing.assert_allclose(got, [WRITTEN_OUT[name](x) for x in X], rtol=1e-14, atol=1e-15)


def test_the_same_under_other_names():
    assert activations()["swish"] is activations()["silu"]
    assert activations()["gelu_pytorch_tanh"] is activations()["gelu_new"]


def test_unknown():
    with pytest.raises(rg.OptionError, match=r"hidden_act is 'glu', which is none of .*did you"):
        need_activation("glu", "hidden_act")
