"""What optimizers are given: modules, lists, groups, trees."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.optim.parameters import (
    as_parts,
    from_parts,
    groups,
    learning_leaves,
    reject_repeated,
)


def test_a_module_a_list_and_groups() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    (group,) = groups(model)
    assert [p.shape for p in group["params"]] == [(1, 3), (1,)]
    a, b = (rg.tensor([1.0], requires_grad=True) for _ in range(2))
    assert groups([a, b]) == [{"params": [a, b]}]
    assert groups({"x": a, "y": b}) == [{"params": [a, b]}]
    assert groups([{"params": a, "lr": 0.1}, {"params": [b]}]) == [
        {"params": [a], "lr": 0.1},
        {"params": [b]},
    ]


def test_what_is_refused_says_why() -> None:
    p = rg.tensor([1.0], requires_grad=True)
    with pytest.raises(rg.GradientError, match="requires_grad=True and is not computed"):
        groups([p * 2])
    with pytest.raises(rg.ShapeError, match=r"has the key 'params', this has \['lr'\]"):
        groups([{"lr": 0.1}])
    with pytest.raises(TypeError, match="a module or a list of tensors, not Tensor"):
        groups(p)
    with pytest.raises(rg.ShapeError, match="parameters 0 and 2 are the same tensor"):
        reject_repeated([p, rg.tensor([1.0]), p])


def test_of_a_tree_everything_floating_learns_and_of_a_module_what_is_not_frozen() -> None:
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    leaves, learns = learning_leaves({"a": rg.ones(2), "b": rg.arange(2), "c": 1j, "m": layer})
    assert [getattr(x, "shape", ()) for x in leaves] == [(2,), (2,), (), (1, 2), (1,)]
    assert learns == [True, False, True, True, False]


def test_complex_numbers_are_pairs() -> None:
    z = np.array([[1 + 2j, -3j]])
    parts = as_parts(rg.tensor(z))
    assert parts.tolist() == [[[1, 2], [0, -3]]]
    np.testing.assert_array_equal(from_parts(parts).numpy(), z)


def test_a_parameter_without_gradient_that_is_to_learn_gets_one() -> None:
    with rg.no_grad():
        layer = rg.jit(lambda m: rg.tree.map(lambda p: p * 2.0, m))(nn.Linear(2, 1, bias=False))
    assert not layer.weight.requires_grad
    (group,) = groups(layer)
    assert group["params"][0] is layer.weight
    assert layer.weight.requires_grad
