"""Modules as trees: grad, jit, vmap, and what survives them."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim, pytree


def loss(model, x, y):
    return nn.functional.mse_loss(model(x), y)


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


@pytest.fixture
def data():
    g = rg.random.Generator(0)
    return g.normal((8, 3)), g.normal((8, 1))


def test_a_tree_goes_round_with_the_same_parameters(model):
    leaves, structure = pytree.flatten(model)
    again = pytree.unflatten(structure, leaves)
    assert type(again) is nn.Sequential
    assert again is not model
    assert again[0] is not model[0]
    assert [p is q for p, q in zip(again.parameters(), model.parameters(), strict=True)] == [
        True
    ] * 4
    assert again[0].in_features == 3
    assert pytree.flatten(again)[1] == structure
    assert hash(pytree.flatten(again)[1]) == hash(structure)


def test_structure_depends_on_configuration(model):
    def structure(m):
        return pytree.flatten(m)[1]

    assert structure(nn.Dropout(0.5)) != structure(nn.Dropout(0.4))
    assert structure(nn.Dropout(0.5)) != structure(nn.Dropout(0.5).eval())
    assert structure(nn.Linear(2, 3)) != structure(nn.Linear(2, 3, bias=False))
    assert structure(nn.Linear(2, 3)) == structure(nn.Linear(2, 3))


def test_no_constructor_runs():
    class Picky(nn.Module):
        made = 0

        def __init__(self, needed):
            Picky.made += 1
            self.w = nn.Parameter(needed)
            self.table = np.arange(3)
            self.words = ["a", "b"]

    m = pytree.map(lambda x: x, Picky([1.0]))
    assert Picky.made == 1
    assert m.words == ["a", "b"]
    assert pytree.flatten(m)[1] == pytree.flatten(pytree.map(lambda x: x, m))[1]


def test_gradients_are_a_module_and_equal_backward(model, data):
    value, grads = rg.value_and_grad(loss)(model, *data)
    assert type(grads) is nn.Sequential
    found = loss(model, *data)
    found.backward()
    assert value.item() == found.item()
    for p, g in zip(model.parameters(), grads.parameters(), strict=True):
        assert isinstance(g, nn.Parameter)
        np.testing.assert_array_equal(p.grad.numpy(), g.numpy())


def test_backward_still_reaches_parameters_after_transforms(model, data):
    rg.grad(loss)(model, *data)
    rg.value_and_grad(lambda m: (loss(m, *data), m), has_aux=True)(model)
    loss(model, *data).backward()
    assert all(p.grad is not None for p in model.parameters())


def test_paths_name_graph_inputs(model, data):
    graph = rg.trace(loss, model, *data)
    assert [x.name for x in graph.inputs] == [
        "model[0].weight", "model[0].bias", "model[2].weight", "model[2].bias", "x", "y",
    ]  # fmt: skip


def test_jit_takes_and_returns_modules(model, data):
    opt = optim.SGD(lr=0.1)

    @rg.jit
    def step(model, state, x, y):
        value, grads = rg.value_and_grad(loss)(model, x, y)
        model, state = opt.update(model, grads, state)
        return model, state, value

    state = opt.init(model)
    values = []
    for _ in range(5):
        model, state, value = step(model, state, *data)
        values.append(value.item())
    assert type(model) is nn.Sequential
    assert isinstance(model[0].weight, nn.Parameter)
    assert step.cache_stats()["compilations"] == 1
    assert values == sorted(values, reverse=True)
    assert state["step"].item() == 5
    # From here on the stateful way.
    assert not model[0].weight.requires_grad
    assert model[0].weight.trainable
    optim.SGD(model, lr=0.1)
    loss(model, *data).backward()
    assert model[0].weight.grad is not None


def test_jit_of_a_model_gives_gradients_to_its_parameters(model, data):
    compiled = rg.jit(model)
    nn.functional.mse_loss(compiled(data[0]), data[1]).backward()
    assert model[0].weight.grad is not None


def test_shared_parameters_stay_shared(data):
    class Tied(nn.Module):
        def __init__(self):
            self.a = nn.Linear(3, 3, bias=False)
            self.b = self.a
            self.c = nn.Linear(3, 3, bias=False)
            self.c.weight = self.a.weight

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    m: Any = Tied()
    assert len(pytree.flatten(m)[0]) == 1
    again = pytree.map(lambda x: x * 1, m)
    assert again.a is again.b
    assert again.c.weight is again.a.weight
    x, _ = data
    g = rg.grad(lambda m: m(x).sum())(m)
    m(x).sum().backward()
    np.testing.assert_array_equal(g.a.weight.numpy(), m.a.weight.grad.numpy())


def test_second_order_through_a_module(data):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(rg.float64)
    x = data[0].astype(rg.float64)

    def penalty(m):
        slope = rg.grad(lambda x: m(x).sum())(x)
        return (slope**2).sum()

    g = rg.grad(penalty)(model)
    w = model[0].weight
    h = 1e-6
    array = w.numpy().copy()
    moved = []
    for sign in (1, -1):
        changed = array.copy()
        changed[1, 2] += sign * h
        w.replace(changed)
        moved.append(penalty(model).item())
    w.replace(array)
    assert g[0].weight.numpy()[1, 2] == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-6)


def test_vmap_over_an_ensemble():
    models = [nn.Linear(3, 2) for _ in range(4)]
    stacked = pytree.map(lambda *xs: rg.stack(xs), *models)
    x = rg.ones((3,))
    y = rg.vmap(lambda m, x: m(x), (0, None))(stacked, x)
    np.testing.assert_allclose(y.numpy(), np.stack([m(x).numpy() for m in models]), rtol=1e-6)


def test_integer_state_gets_a_zero_gradient_but_integer_arguments_are_refused():
    class Counted(nn.Module):
        def __init__(self):
            self.w = nn.Parameter([2.0])
            self.count: Any
            self.register_buffer("count", rg.tensor(3))

        def forward(self, x):
            return (self.w * x).sum() * self.count

    g = rg.grad(lambda m: m(1.0))(Counted())
    assert g.w.tolist() == [3.0]
    assert g.count.item() == 0
    assert g.count.dtype is rg.int64
    with pytest.raises(rg.GradientError):
        rg.grad(lambda p: p["a"] * 1.0)({"a": 1})


def test_frozen_parameters_are_remembered(model):
    model[0].requires_grad_(False)
    again = pytree.map(lambda x: x * 2, model)
    assert not again[0].weight.trainable
    assert again[2].weight.trainable


def test_the_structure_of_a_module_is_written_briefly():
    """Errors about structures quote it."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5)).eval()
    model[0].bias.requires_grad_(False)
    text = str(pytree.flatten(model)[1])
    linear = "Linear(training=False, in_features=2, out_features=3, weight=*, bias=frozen)"
    assert f"_items=[{linear}, Dropout(training=False, p=0.5, generator=*)]" in text
