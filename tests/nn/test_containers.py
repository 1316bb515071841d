"""Modules made of modules."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any

import numpy as np
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


def test_sequential_of_a_dict_has_its_names() -> None:
    net: Any = rg.nn.Sequential(
        collections.OrderedDict(conv=rg.nn.Linear(2, 3), act=rg.nn.ReLU(), fc=rg.nn.Linear(3, 1))
    )
    assert list(net.state_dict()) == ["conv.weight", "conv.bias", "fc.weight", "fc.bias"]
    assert net.conv is net[0]
    assert isinstance(net[:2], rg.nn.Sequential)
    assert net[:2].act is net[1]
    x = rg.ones((4, 2))
    before = net(x)
    net.fc = rg.nn.Linear(3, 5)  # takes part in forward
    assert net(x).shape == (4, 5)
    assert len(net) == 3
    net.fc.weight.requires_grad_(False)
    np.testing.assert_allclose(net.fc(net.act(net.conv(x))).numpy(), net(x).numpy())
    assert before.shape == (4, 1)
    slopes = rg.grad(lambda m: m(x).sum())(net)
    assert slopes.conv.weight.shape == (3, 2)
    again = pickle.loads(pickle.dumps(net))
    assert again.conv.weight.tolist() == net.conv.weight.tolist()
    np.testing.assert_allclose(rg.jit(lambda m, x: m(x))(net, x).numpy(), net(x).numpy(), 1e-6)
    with pytest.raises(AttributeError, match="did you mean 'conv'"):
        net.convv  # noqa: B018
    with pytest.raises(TypeError, match="holds modules, not int"):
        net.fc = 3
    net.add_module("last", rg.nn.Linear(5, 2))
    assert net(x).shape == (4, 2)
    del net[-1]
    net[2] = rg.nn.Linear(3, 7)
    assert net(x).shape == (4, 7)
    assert net.fc.out_features == 7


def test_a_list_of_modules_is_changed_like_a_list() -> None:
    a, b, c = (rg.nn.Linear(2, 2) for _ in range(3))
    net: Any = rg.nn.Sequential(a, b)
    net.insert(1, c)
    assert list(net) == [a, c, b]
    assert net.pop(0) is a
    net[0] = a
    assert list(net) == [a, b]
    assert list(net.__add__([c])) == [a, b, c]
    net.add_module("2", c)
    net.add_module("0", c)
    assert list(net) == [c, b, c]
    net.add_module("head", a)
    assert list(dict(net.named_children())) == ["0", "1", "2", "head"]
    assert net.head is a
    del net[:2]
    assert list(net) == [c, a]
    with pytest.raises(IndexError):
        net[5] = a
    with pytest.raises(rg.OptionError, match="have names"):
        net.insert(0, a)


def test_names_of_a_module_dict_are_attributes() -> None:
    blocks: Any = rg.nn.ModuleDict([("fc", rg.nn.Linear(2, 3)), ("keys", rg.nn.ReLU())])
    assert blocks.fc is blocks["fc"]
    assert list(blocks.keys()) == ["fc", "keys"]  # a method stays one
    blocks.fc = rg.nn.Linear(2, 5)
    assert blocks["fc"].out_features == 5
    blocks.add_module("head", rg.nn.Linear(5, 1))
    assert list(blocks) == ["fc", "keys", "head"]
    blocks.pop("keys")
    assert copy.deepcopy(blocks).head.weight.shape == (1, 5)
    with pytest.raises(AttributeError, match="did you mean 'head'"):
        blocks.haed  # noqa: B018
    blocks.clear()
    assert len(blocks) == 0
