"""Dropout: statistics, edge cases, reproducibility, state in pure functions."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim, pytree

ONES = np.ones((200, 200), np.float32)


def test_statistics():
    y = nn.Dropout(0.3)(ONES).numpy()
    kept = y != 0
    assert kept.mean() == pytest.approx(0.7, abs=0.01)
    np.testing.assert_allclose(y[kept], 1 / 0.7, rtol=1e-6)
    assert abs(kept[:, :-1] == kept[:, 1:]).mean() == pytest.approx(0.58, abs=0.01)


def test_draws_differ_and_seeds_repeat():
    a, b = (nn.Dropout(0.5, generator=rg.random.Generator(3)) for _ in range(2))
    first = a(ONES).numpy()
    assert np.array_equal(first, b(ONES).numpy())
    assert not np.array_equal(first, a(ONES).numpy())
    c, d = nn.Dropout(0.5), nn.Dropout(0.5)
    assert not np.array_equal(c(ONES).numpy(), d(ONES).numpy())


def test_edges():
    x = ONES * np.array(np.inf)
    for layer in (nn.Dropout(0.0), nn.Dropout(0.5).eval()):
        state = layer.state_dict()
        assert np.array_equal(layer(x).numpy(), x)
        assert layer.state_dict()["generator.count"].item() == state["generator.count"].item()
    y = nn.Dropout(1.0)(x)
    assert y.shape == ONES.shape
    assert (y.numpy() == 0).all()
    z: Any = rg.tensor(ONES, requires_grad=True)
    nn.Dropout(1.0)(z).sum().backward()
    assert (z.grad.numpy() == 0).all()


def test_gradient_is_the_mask():
    x: Any = rg.tensor(ONES, requires_grad=True)
    y = nn.Dropout(0.25)(x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


def test_a_training_loop_does_not_recompile():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    opt = optim.SGD(model, lr=0.1)
    x = rg.tensor(np.ones((8, 4), np.float32))
    counts = []
    for _ in range(5):
        opt.zero_grad()
        (model(x) ** 2).mean().backward()
        opt.step()
        counts.append(rg.cache_stats()["misses"])
    assert counts[1] == counts[-1]


def test_jit_carries_the_state():
    layer = nn.Dropout(0.5)
    f = rg.jit(lambda m, x: (m, m(x)))
    eager = pytree.map(lambda x: x, layer)
    for _ in range(3):
        layer, y = f(layer, ONES)
        assert np.array_equal(y.numpy(), eager(ONES).numpy())
    assert f.cache_stats()["compilations"] == 1
    other = rg.jit(lambda m, x: m(x))  # which does not return it
    for _ in range(3):
        assert np.array_equal(other(layer, ONES).numpy(), eager(ONES).numpy())


def test_jit_refuses_a_generator_from_outside():
    layer = nn.Dropout(0.5)
    with pytest.raises(rg.TraceError, match="random generator"):
        rg.jit(lambda x: layer(x))(ONES)


@pytest.mark.parametrize("compiled", [False, True])
def test_update_moves_the_streams_on(compiled):
    model = nn.Sequential(nn.Linear(50, 1), nn.Dropout(0.5))
    opt = optim.SGD(lr=0.0)
    x = np.random.default_rng(0).normal(size=(100, 50)).astype(np.float32)

    def step(model, state):
        value, grads = rg.value_and_grad(lambda m: m(x).sum())(model)
        return *opt.update(model, grads, state), value

    step = rg.jit(step) if compiled else step
    state = opt.init(model)
    values = []
    for _ in range(4):
        model, state, value = step(model, state)
        values.append(value.item())
    assert len(set(values)) == 4


def test_spatial_dropout_drops_channels_that_are_last():
    for layer, shape in (
        (nn.SpatialDropout(0.3), (50, 2, 40)),
        (nn.SpatialDropout1D(0.3), (50, 2, 40)),
        (nn.SpatialDropout2D(0.3), (50, 2, 3, 40)),
        (nn.SpatialDropout3D(0.3), (50, 2, 3, 2, 40)),
    ):
        y = layer(np.ones(shape)).numpy()
        first = y.reshape(50, -1, 40)[:, :1]
        assert (y.reshape(50, -1, 40) == first).all()
        assert (first != 0).mean() == pytest.approx(0.7, abs=0.05)
        assert set(np.unique(first)) == {0, 1 / 0.7}
        assert (layer.eval()(np.ones(shape)).numpy() == 1).all()
    with pytest.raises(rg.ShapeError, match="has 4 axes"):
        nn.SpatialDropout2D()(np.ones((2, 3, 4)))
    with pytest.raises(rg.ShapeError, match=r"\[N, \.\.\., C\]"):
        nn.SpatialDropout()(np.ones(3))
