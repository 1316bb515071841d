"""Parametrizations: values by hand, names as in PyTorch, copies, removal."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import OptionError, ShapeError

P = nn.utils.parametrize


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return rg.triu(x) + rg.triu(x, k=1).T


class Scaled(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x

    def right_inverse(self, value: Any) -> Any:
        return value / 2


class Pair(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def right_inverse(self, value: Any) -> Any:
        return rg.sign(value), rg.abs(value)


def layer() -> Any:
    return nn.Linear(3, 3, dtype=rg.float64)


def test_values_gradients_and_names() -> None:
    m = layer()
    w, kept = m.weight.numpy().copy(), m.weight
    assert P.register_parametrization(m, "weight", Symmetric()) is m
    expected = np.triu(w) + np.triu(w, 1).T
    np.testing.assert_array_equal(m.weight.numpy(), expected)
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert m.parametrizations.weight.original is kept
    assert isinstance(m, nn.Linear)
    x = np.arange(3.0)
    m(x).sum().backward()
    g = np.broadcast_to(x, (3, 3))
    np.testing.assert_allclose(kept.grad.numpy(), np.triu(g) + np.triu(g.T, 1))
    optim.SGD(m, lr=0.1).step()
    now = m.weight.numpy()
    np.testing.assert_array_equal(now, now.T)
    assert (now != expected).any()


def test_one_after_the_other_and_assigned() -> None:
    m = layer()
    w = m.weight.numpy().copy()
    P.register_parametrization(m, "weight", Scaled())
    np.testing.assert_array_equal(m.weight.numpy(), w)
    np.testing.assert_array_equal(m.parametrizations.weight.original.numpy(), w / 2)
    P.register_parametrization(m, "weight", Scaled())
    np.testing.assert_array_equal(m.weight.numpy(), w)
    np.testing.assert_array_equal(m.parametrizations.weight.original.numpy(), w / 4)
    m.weight = np.ones((3, 3))
    np.testing.assert_array_equal(m.parametrizations.weight.original.numpy(), 0.25)
    P.register_parametrization(m, "weight", Symmetric())
    with pytest.raises(OptionError, match="Symmetric has no right_inverse"):
        m.weight = np.ones((3, 3))


def test_two_parameters_and_several_originals() -> None:
    m = layer()
    w = m.weight.numpy().copy()
    P.register_parametrization(m, "weight", Pair())
    P.register_parametrization(m, "bias", Scaled())
    assert P.is_parametrized(m, "bias")
    names = [n for n, _ in m.named_parameters()]
    assert names == [f"parametrizations.{n}" for n in
                     ("weight.original0", "weight.original1", "bias.original")]  # fmt: skip
    np.testing.assert_array_equal(m.weight.numpy(), w)
    with pytest.raises(OptionError, match="several tensors"):
        P.remove_parametrizations(m, "weight", leave_parametrized=False)
    P.remove_parametrizations(m, "weight")
    assert not P.is_parametrized(m, "weight")
    assert P.is_parametrized(m)
    P.remove_parametrizations(m, "bias")
    assert type(m) is nn.Linear
    assert "parametrizations" not in vars(m)
    assert m.weight.trainable
    np.testing.assert_array_equal(m.weight.numpy(), w)


def test_copies_pickles_and_transforms() -> None:
    m = nn.Sequential(P.register_parametrization(layer(), "weight", Symmetric()))
    x = np.arange(3.0)
    expected = m(x).numpy()
    for again in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), rg.jit(lambda m: m)(m)):
        np.testing.assert_array_equal(again(x).numpy(), expected)
        assert P.is_parametrized(again[0], "weight")
        assert type(again[0]) is type(m[0])
    slopes = rg.grad(lambda m: m(x).sum())(m)
    assert slopes[0].parametrizations.weight.original.numpy()[0, 1] == 1
    assert P.type_before_parametrizations(m[0]) is nn.Linear


def test_removed_with_what_it_was() -> None:
    m = layer()
    w = m.weight.numpy().copy()
    P.register_parametrization(m, "weight", Symmetric())
    P.remove_parametrizations(m, "weight", leave_parametrized=False)
    np.testing.assert_array_equal(m.weight.numpy(), w)


def test_refusals() -> None:
    m = layer()
    with pytest.raises(OptionError, match="did you mean 'weight'"):
        P.register_parametrization(m, "wieght", Symmetric())
    with pytest.raises(OptionError, match="no parametrization"):
        P.remove_parametrizations(m, "weight")

    class Narrow(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:, :1]

    with pytest.raises(ShapeError, match=r"\(3, 1\)"):
        P.register_parametrization(m, "weight", Narrow())
    assert type(m) is nn.Linear
    P.register_parametrization(m, "weight", Narrow(), unsafe=True)
    assert m.weight.shape == (3, 1)
