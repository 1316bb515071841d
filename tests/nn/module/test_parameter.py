"""`Parameter`: what a module learns."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


def test_parameters_are_floating():
    with pytest.raises(rg.GradientError):
        nn.Parameter([1, 2])
    assert not nn.Parameter([1, 2], requires_grad=False).requires_grad


def test_its_data_is_a_copy() -> None:
    data = np.ones(2)
    p = nn.Parameter(data)
    data[0] = 5
    assert p.tolist() == [1, 1]
    assert p.requires_grad
    assert p.trainable


def test_a_frozen_one_stays_a_parameter_and_learns_again_when_asked() -> None:
    layer: Any = nn.Linear(2, 1)
    layer.weight.requires_grad_(False)
    assert not layer.weight.trainable
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
    layer(rg.ones((1, 2))).sum().backward()
    before: Any = layer.weight.grad
    assert before is None
    layer.weight.requires_grad_()
    layer(rg.ones((1, 2))).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1]]


def test_its_gradient_has_its_shape() -> None:
    p = nn.Parameter(rg.ones((2,)))
    p.grad = rg.tensor([1.0, 2.0])
    assert p.grad.tolist() == [1, 2]
    with pytest.raises(rg.ShapeError):
        p.grad = rg.ones((3,))
