"""Modules made of modules."""

from __future__ import annotations

import pytest

import retrograd as rg
from retrograd import nn


def test_containers() -> None:
    box = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
    box["c"] = nn.Linear(3, 1)
    assert list(box) == ["a", "b", "c"]
    assert [n for n, _ in box.named_parameters()] == ["a.weight", "a.bias", "c.weight", "c.bias"]
    many = nn.ParameterList([rg.ones((2,)), rg.zeros((3,))])
    assert [n for n, _ in many.named_parameters()] == ["0", "1"]
    named = nn.ParameterDict({"w": rg.ones((2,))})
    slope = rg.grad(lambda d: (d["w"] * 3).sum())(named)
    assert slope["w"].tolist() == [3, 3]
    with pytest.raises(TypeError, match="holds modules"):
        box["d"] = 3  # type: ignore[assignment]


def test_lists_of_modules():
    layers = nn.ModuleList([nn.Linear(2, 2)]).append(nn.ReLU())
    assert len(layers) == 2
    assert isinstance(layers[-1], nn.ReLU)
    assert isinstance(layers[:1], nn.ModuleList)
    assert [type(m) for m in layers] == [nn.Linear, nn.ReLU]
    assert list(layers.state_dict()) == ["0.weight", "0.bias"]
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    assert isinstance(model[:2], nn.Sequential)
    assert len(model[:2]) == 2
    with pytest.raises(TypeError, match="holds modules"):
        layers.append(rg.relu)  # type: ignore[arg-type]
