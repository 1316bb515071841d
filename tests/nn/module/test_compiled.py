"""`jit` of a module is the module with a compiled call."""

import copy
import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim


class Model(nn.Module):
    """Its state changes with each call, in training."""

    def __init__(self):
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
        self.head = nn.Linear(8, 2)

    def forward(self, x, scale=1.0, twice=False):
        return self.encode(x) * (2 * scale if twice else scale)

    def encode(self, x):
        return self.head(self.body(x))


@pytest.fixture
def pair():
    """A model and the same one again, to be called as they are."""
    rg.manual_seed(3)
    model = Model()
    return model, copy.deepcopy(model)


@pytest.fixture
def x():
    return rg.tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4) / 7)


def same(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_state_moves_on_as_without_jit(pair, x):
    model, other = pair
    compiled = rg.jit(model)
    with rg.no_grad():
        results = [compiled(x) for _ in range(3)]
        for found in results:
            same(found, other(x))
        assert not np.array_equal(results[0].numpy(), results[1].numpy())  # dropout draws anew
        same(model.body[1].running_mean, other.body[1].running_mean)
        compiled.eval()
        assert not model.training
        same(compiled(x), other.eval()(x))
    assert compiled.cache_stats()["signatures"] == 2


def test_new_parameters_are_seen_and_not_compiled_for(pair, x):
    model, other = pair
    compiled, opt = rg.jit(model), optim.SGD(other.parameters(), lr=0.1)
    own = optim.SGD(compiled.parameters(), lr=0.1)
    for _ in range(3):
        for m, o in ((compiled, own), (other, opt)):
            o.zero_grad()
            (m(x) ** 2).sum().backward()
            o.step()
    same(model.head.weight, other.head.weight)
    compiled.eval(), other.eval()
    with rg.no_grad():
        same(compiled(x), other(x))
        count = compiled.cache_stats()["compilations"]
        model.head.bias.data = rg.ones(2)
        other.head.bias.data = rg.ones(2)
        same(compiled(x), other(x))
    assert compiled.cache_stats()["compilations"] == count


def test_it_is_a_module_of_the_same_class(pair, x):
    model, _ = pair
    compiled = rg.jit(model)
    assert isinstance(compiled, Model)
    assert compiled.head is model.head
    assert str(compiled) == str(model)
    compiled.head = nn.Linear(8, 5)
    assert model(x).shape == (3, 5)
    assert list(compiled.state_dict()) == list(model.state_dict())
    gradient = rg.grad(lambda m: m(x).sum())(compiled)
    assert type(gradient) is Model
    assert gradient.head.weight.shape == (5, 8)


def test_it_may_be_part_of_a_module(pair, x):
    model, other = pair
    outer = nn.Sequential(rg.jit(model), nn.Linear(2, 1))
    assert next(n for n, _ in outer.named_parameters()) == "0.body.0.weight"
    graph = rg.trace(outer.eval(), x)
    outer.train()
    assert any(n.scope.startswith("Sequential[0].body") for n in graph.nodes), str(graph)
    outer(x).sum().backward()
    assert model.head.weight.grad is not None
    other(x)  # whose statistics move on likewise
    outer.eval()
    same(outer(x), outer[1](other.eval()(x)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_compiled_and_apart(pair, x, copied):
    model, _ = pair
    model.eval()
    compiled = rg.jit(model, static_argnames="twice")
    again = copied(compiled)
    with rg.no_grad():
        same(again(x, twice=True), 2 * model(x))
        assert again.cache_stats()["calls"] == 1
        assert compiled.cache_stats()["calls"] == 0
        again.head.weight.data = again.head.weight * 0
        same(compiled(x), model(x))
    assert copy.copy(compiled).head is model.head


def test_options_are_about_the_arguments_of_forward(pair, x):
    model, _ = pair
    model.eval()
    with rg.no_grad():
        for options in (
            {"static_argnums": 2},
            {"static_argnums": -1},
            {"static_argnames": "twice"},
        ):
            same(rg.jit(model, **options)(x, 3.0, True), 6 * model(x))
        given = rg.tensor(x.numpy().copy())
        rg.jit(model, donate=0)(given)
        with pytest.raises(rg.DonatedError):
            given.numpy()
        named = rg.jit(model, shapes={"x": "N 4"})
        assert named(x).shape == (3, 2)
        assert named(x[:2]).shape == (2, 2)
        assert named.cache_stats()["compilations"] == 1
    with pytest.raises(rg.ArgumentError, match="no parameter named 'y'"):
        rg.jit(model, static_argnames="y")


def test_methods(pair, x):
    model, other = pair
    encode = rg.jit(model.encode)
    with rg.no_grad():
        for _ in range(3):
            same(encode(x), other.encode(x))
        same(model.body[1].running_var, other.body[1].running_var)
    assert encode.cache_stats()["signatures"] == 1


def test_compiled_again_and_errors(pair, x):
    model, _ = pair
    model.eval()
    with rg.no_grad():
        same(rg.jit(rg.jit(model))(x), model(x))
    with pytest.raises(rg.ShapeError, match=r"in module|head|body") as caught:
        rg.jit(model)(rg.ones((3, 5)))
    assert "Linear" in str(caught.value) or getattr(caught.value, "__notes__", [])
