"""`x.data`: the value without its history, whose changes are changes of x."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


def test_changes_in_place_are_those_of_the_tensor() -> None:
    for p in (rg.tensor([1.0, 2.0], requires_grad=True), rg.tensor([1.0, 2.0])):
        needs = p.requires_grad
        p.data.mul_(10)
        assert p.tolist() == [10.0, 20.0]
        p.data[0] = 5.0
        p.data[1:].fill_(7.0)
        assert p.tolist() == [5.0, 7.0]
        p.data += 1
        p.data -= rg.tensor([1.0, 2.0])
        assert p.tolist() == [5.0, 6.0]
        p.data.clamp_(0.0, 5.5)
        held = p.data
        held.add_(1.0)
        assert p.tolist() == held.tolist() == [6.0, 6.5]
        p.data = rg.zeros(3)
        p.data = p.data * 2 + 1
        assert p.tolist() == [1.0, 1.0, 1.0]
        assert (p.requires_grad, p.is_leaf, p.data.requires_grad) == (needs, True, False)


def test_gradient_descent_as_it_was_written_once() -> None:
    p: Any = rg.tensor([0.0, 10.0], requires_grad=True)
    for _ in range(60):
        if p.grad is not None:
            p.grad.data.zero_()
        ((p - 3) ** 2).sum().backward()
        p.data -= 0.1 * p.grad.data
    np.testing.assert_allclose(p.detach(), [3.0, 3.0], atol=1e-4)


def test_initial_values_of_a_model() -> None:
    layer: Any = nn.LSTM(2, 3)
    for name, p in layer.named_parameters():
        if "bias" in name:
            p.data.fill_(0)
            p.data[3:6].fill_(1)  # of the forget gate
        else:
            nn.init.constant_(p.data, 0.25)
    assert layer.bias_ih_l0.tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6
    assert set(layer.weight_hh_l0.flatten().tolist()) == {0.25}
    assert isinstance(layer.weight_hh_l0, nn.Parameter)
    rg.manual_seed(0)
    layer.weight_hh_l0.data.uniform_(-1, 1)
    assert layer.weight_hh_l0.abs().max() <= 1
    assert len(set(layer.weight_hh_l0.flatten().tolist())) == 36


def test_what_was_computed_before_keeps_its_value() -> None:
    x = rg.tensor([1.0, 2.0])
    y, row = x * 2, x[0]
    x.data.zero_()
    assert (y.tolist(), row.item(), x.tolist()) == ([2.0, 4.0], 1.0, [0.0, 0.0])
    picked = x.data[[0, 1]]  # a copy, as in PyTorch
    picked.fill_(9)
    assert x.tolist() == [0.0, 0.0]


def test_it_is_a_constant_to_gradients_and_a_plain_tensor_to_copies() -> None:
    assert rg.grad(lambda x: (x.data * x).sum())(rg.tensor([3.0])).tolist() == [3.0]
    y = rg.tensor([1.0], requires_grad=True) * 2
    for again in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        made = again(y.data)
        assert type(made) is rg.Tensor
        assert made.tolist() == [2.0]
    d = (rg.ones(2) * 2).data  # of what nobody holds
    gc.collect()
    assert d.zero_().tolist() == [0.0, 0.0]


def test_what_cannot_be_changed() -> None:
    y = rg.tensor([1.0], requires_grad=True) * 2
    with pytest.raises(rg.GradientError, match=r"x.detach\(\) first"):
        y.data.zero_()
    with pytest.raises(rg.TraceError, match="cannot be changed there"):
        rg.jit(lambda x: x.data.fill_(3.0))(rg.ones(2))
    p = rg.tensor([1.0], requires_grad=True)
    with pytest.raises(rg.GradientError, match="only floating"):
        p.data = rg.tensor([1])
    assert p.tolist() == [1.0]
