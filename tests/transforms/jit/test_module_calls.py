"""Calls with modules: taken apart and put together in C, as Python does it."""

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, pytree
from retrograd.runtime import fast_call

pytestmark = pytest.mark.skipif(not fast_call.serves(rg.Tensor), reason="calls are in Python here")


class Net(nn.Module):
    """A module with all that can stand in one."""

    def __init__(self) -> None:
        g = rg.random.Generator(0)
        self.first = nn.Linear(2, 2, generator=g)
        self.tied = self.first.weight
        self.same = self.first
        self.layers: Any = [
            nn.Linear(2, 2, generator=g),
            (nn.ReLU(), {"bias": nn.Parameter([1.0, 2.0])}),
        ]
        self.more = nn.ModuleList([nn.LayerNorm(2), nn.Dropout(0.5)])
        self.norm = nn.BatchNorm1d(2)
        self.rate, self.name, self.shape, self.f = 0.5, "net", (2, 2), np.tanh
        self.first.bias.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.norm(self.more[1](self.more[0](self.same(self.layers[0](x)))))


def scaled(model: Any, x: Any) -> Any:
    y = model(x)
    new = pytree.map(lambda p: p * 2 if p.dtype.is_float else p, model)
    return new, y


def unseen(*_: Any) -> Any:
    raise AssertionError("a module was taken apart in Python")


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(x.numpy()) for x in pytree.flatten(tree)[0]]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call a function in such a way that modules cannot be taken apart in Python."""

    def call(f: Any, *args: Any) -> Any:
        with monkeypatch.context() as patch:
            for name in ("flatten", "unflatten"):
                patch.setattr(pytree, name, unseen)
            return f(*args)

    return call


X = np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 1.0]], np.float32)


def started() -> tuple[Any, Any]:
    """A function that knows a module, and a module that it has made."""
    f = rg.jit(scaled)
    with rg.no_grad():
        model, _ = f(Net(), rg.tensor(X))
        model, _ = f(model, rg.tensor(X))
    return f, model


def test_all_that_a_module_holds(short: Any) -> None:
    f, model = started()
    before, x = leaves(model), rg.tensor(X)
    made, y = short(f, model, x)
    expected, expected_y = scaled(copy.deepcopy(model), x)
    for a, b in zip(leaves(made), leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(y.numpy(), expected_y.numpy(), rtol=1e-5, atol=1e-6)
    for a, b in zip(leaves(model), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert pytree.flatten(made)[1] == pytree.flatten(model)[1]
    assert list(vars(made)) == list(vars(model))
    assert made.tied is made.first.weight
    assert made.same is made.first
    assert made.layers is not model.layers
    assert made.layers[1][1] is not model.layers[1][1]
    assert (made.rate, made.name, made.shape, made.f) == (0.5, "net", (2, 2), np.tanh)
    assert isinstance(made.layers[1][1]["bias"], nn.Parameter)
    assert type(made.norm.running_mean) is rg.Tensor
    assert not made.first.bias.trainable
    assert made.first.weight.trainable
    assert made.norm.num_batches_tracked.item() == model.norm.num_batches_tracked.item() + 1


def test_what_was_made_is_a_module_like_any_other(short: Any) -> None:
    f, model = started()
    made, _ = short(f, model, rg.tensor(X))
    assert made.layers[0].weight.grad is None
    made.requires_grad_()
    made(rg.tensor(X)).sum().backward()
    assert made.layers[0].weight.grad is not None
    again = pickle.loads(pickle.dumps(made.state_dict()))
    made.load_state_dict(again)
    other = copy.deepcopy(made)
    assert other.tied is other.first.weight
    made.extra = 3
    with rg.no_grad():
        f(made, rg.tensor(X))
    opt = rg.optim.SGD(made, lr=0.1)
    made(rg.tensor(X)).sum().backward()
    opt.step()


CHANGES: dict[str, Any] = {
    "mode": lambda m: m.eval(),
    "number": lambda m: setattr(m, "rate", 0.25),
    "kind of number": lambda m: setattr(m, "rate", 1),
    "name": lambda m: setattr(m, "name", "other"),
    "function": lambda m: setattr(m, "f", np.sinh),
    "attribute": lambda m: setattr(m, "one_more", 1),
    "untied": lambda m: setattr(m, "tied", nn.Parameter(m.tied.numpy() + 1)),
    "tied": lambda m: setattr(m.layers[0], "weight", m.first.weight),
    "other module": lambda m: setattr(m, "same", copy.deepcopy(m.first)),
    "one module twice": lambda m: setattr(m, "layers", [m.first, m.layers[1]]),
    "frozen": lambda m: setattr(m.layers[0].weight, "trainable", False),
    "longer list": lambda m: m.layers.append(1),
    "tuple": lambda m: setattr(m, "shape", (2, 3)),
    "key": lambda m: m.layers[1][1].update(more=1),
    "class": lambda m: setattr(m, "more", nn.Sequential(*m.more)),
    "buffer": lambda m: setattr(m.norm, "running_mean", None),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.sample(5)
def test_a_change_is_seen(name: str, short: Any) -> None:
    f, model = started()
    CHANGES[name](model)
    with rg.no_grad():
        with pytest.raises(AssertionError, match="in Python"):
            short(f, model, rg.tensor(X))
        if name in ("buffer", "class"):
            return  # such a model does not run
        made, _ = f(model, rg.tensor(X))
    assert pytree.flatten(made)[1] == pytree.flatten(model)[1]
    for a, b in zip(
        leaves(made), leaves(scaled(copy.deepcopy(model), rg.tensor(X))[0]), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_one_module_for_two_arguments(short: Any) -> None:
    """Each is taken apart by itself."""
    f = rg.jit(lambda a, b: (pytree.map(lambda p, q: p + q, a, b), b))
    model = nn.Linear(2, 2)
    with rg.no_grad():
        model, _ = f(model, model)
        model, _ = f(model, model)
        before = model.weight.numpy().copy()
        made, other = short(f, model, model)
    np.testing.assert_array_equal(made.weight.numpy(), 2 * before)
    np.testing.assert_array_equal(other.weight.numpy(), before)


def test_donated(short: Any) -> None:
    """Its arrays are gone, and the new module has them."""
    opt = rg.optim.Momentum(lr=0.5)
    f = rg.jit(lambda m, s: opt.update(m, m, s), donate=("m", "s"))
    model, same = nn.Linear(2, 2), nn.Linear(2, 2)
    same.load_state_dict(model.state_dict())
    with rg.no_grad():
        state, other = opt.init(model), opt.init(same)
        for _ in range(3):
            model, state = f(model, state)
        old = model
        model, state = short(f, model, state)
        for _ in range(4):
            same, other = opt.update(same, same, other)
    with pytest.raises(rg.errors.DonatedError):
        old.weight.numpy()
    assert isinstance(model.weight, nn.Parameter)
    for a, b in zip(leaves((model, state)), leaves((same, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_random_generators_go_on(short: Any) -> None:
    opt = rg.optim.SGD(lr=0.0)

    def step(m: Any, x: Any) -> Any:
        return opt.update(m, m, opt.init(m))[0], m[1](x)

    f = rg.jit(step)
    x, seen = rg.ones(64), []
    model: Any = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    slow = copy.deepcopy(model)
    with rg.no_grad():
        for _ in range(2):
            model, _ = f(model, x)
            slow, _ = step(slow, x)
        for _ in range(3):
            model, y = short(f, model, x)
            slow, z = step(slow, x)
            np.testing.assert_array_equal(y.numpy(), z.numpy())
            seen.append(y.numpy().tobytes())
    assert len(set(seen)) == 3


@pytest.mark.slow
def test_no_object_is_left_over() -> None:
    f, model = started()
    x = rg.tensor(X)
    gc.collect()
    with rg.no_grad():
        for _ in range(3):
            model, _ = f(model, x)
        gc.collect()
        count = len(gc.get_objects())
        for _ in range(50):
            model, _ = f(model, x)
    gc.collect()
    assert len(gc.get_objects()) - count < 20


def test_a_model_that_learns_is_taken_without_gradients_alone(short: Any) -> None:
    """Its parameters require gradients; with gradients on, they get them."""
    model, x = nn.Linear(2, 2), rg.tensor(X)
    f = rg.jit(lambda m, x: m(x))
    with rg.no_grad():
        f(model, x)
        f(model, x)
        np.testing.assert_allclose(short(f, model, x).numpy(), model(x).numpy(), rtol=1e-6)
    y = f(model, x)
    assert y.requires_grad
    y.sum().backward()
    np.testing.assert_allclose(model.bias.grad.numpy(), 3.0)
    rg.optim.SGD(model, lr=1.0).step()
    with rg.no_grad():
        f(model, x)
        changed = short(f, model, x)
        np.testing.assert_allclose(changed.numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
        assert not changed.requires_grad
    assert f(model, x).requires_grad
    gone = rg.jit(lambda w: w * 2, donate=("w",))
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    with rg.no_grad():
        for _ in range(3):
            assert gone(w).tolist() == [2.0, 4.0]
    assert w.tolist() == [1.0, 2.0]
