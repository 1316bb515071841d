"""copy, deepcopy and pickle of what users keep: by value, as other libraries do."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


ways = pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled])


@ways
def test_a_leaf_and_its_gradient(way):
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    y = way(x)
    assert (y.tolist(), y.requires_grad, y.is_leaf) == ([1, 2], True, True)
    assert y.grad.tolist() == [2, 4]
    (y * 3).sum().backward()
    assert y.grad.tolist() == [5, 7]
    assert x.grad is not None
    assert x.grad.tolist() == [2, 4]


@ways
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "bool", "float64"])
def test_every_dtype_and_computed_constants(way, dtype):
    x = rg.tensor([[1, 0], [2, 3]], dtype=dtype)
    y = way(x.reshape(4))
    assert (y.shape, y.dtype, y.tolist()) == ((4,), x.dtype, x.reshape(4).tolist())


@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
def test_a_history_is_not_lost_silently(way):
    x = rg.tensor([1.0], requires_grad=True)
    with pytest.raises(rg.GradientError, match="detach"):
        way(x * 2)
    assert way((x * 2).detach()).tolist() == [2]
    again = copy.copy(x * 2)  # another handle with the same history
    again.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2]


def test_deepcopy_owns_its_memory():
    a = np.ones(2, np.float32)
    x = rg.asarray(a)
    y = copy.deepcopy(x)
    a[:] = 5
    assert y.tolist() == [1, 1]


class Named(rg.Tensor):
    """A subclass with an attribute."""

    label: str


@ways
def test_parameters_and_subclasses_keep_what_is_theirs(way):
    p = way(rg.nn.Parameter([1.0], requires_grad=False))
    assert isinstance(p, rg.nn.Parameter)
    assert not p.trainable
    n = Named.of(np.ones(2, np.float32))
    n.label = "kept"
    assert (way(n).label, type(way(n))) == ("kept", Named)


def test_shared_tensors_stay_shared():
    x = rg.tensor([1.0])
    a, b = copy.deepcopy([x, x])
    assert a is b
    assert a is not x


@ways
def test_generators_continue_where_they_are(way):
    g = rg.random.Generator(3)
    g.normal((2,))
    h = way(g)
    assert h.normal((3,)).tolist() == g.normal((3,)).tolist()


@ways
def test_graphs(way):
    g = rg.trace(lambda x, w: rg.tanh(x @ w), rg.spec((rg.Dim("N"), 2)), rg.spec((2,)))
    assert way(g) == g
    d = way(g.gradient())
    assert d(rg.ones((3, 2)), rg.ones(2), rg.ones(3))[1].shape == (2,)


@ways
def test_declared_graphs_keep_the_values_of_their_parameters(way):
    b = rg.GraphBuilder("scaled")
    x, w = b.input("x", 2), b.parameter("w", 2, init=3.0)
    b.output(x * w)
    assert way(b.graph())(rg.ones(2)).tolist() == [3, 3]


@ways
def test_dtypes_sizes_and_scalars(way):
    assert way(rg.float32) is rg.float32
    assert way(2 * rg.Dim("N") + 1) == 2 * rg.Dim("N") + 1
    v = rg.Value(2.0, label="v")
    (v * 3).backward()
    w = way(v)
    assert (w.data, w.grad, w.label) == (2.0, 3.0, "v")


def test_a_computed_value_has_a_history_too():
    with pytest.raises(rg.GradientError, match="history"):
        copy.deepcopy(rg.Value(2.0) * 3)


def test_an_average_of_parameters():
    model = rg.nn.Linear(2, 1)
    average = copy.deepcopy(list(model.parameters()))
    optimizer = rg.optim.SGD(model, lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        (model(rg.ones((4, 2))) ** 2).mean().backward()
        optimizer.step()
        with rg.no_grad():
            average = [0.5 * a + 0.5 * p for a, p in zip(average, model.parameters(), strict=True)]  # type: ignore[misc]
    assert [a.shape for a in average] == [p.shape for p in model.parameters()]
