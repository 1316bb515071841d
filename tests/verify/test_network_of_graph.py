"""The network of a graph gives what the graph gives, and refuses what is none."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.network import Relu
from retrograd.verify.network_of_graph import network_of

nn = rg.nn
W = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
KERNEL = np.random.default_rng(4).normal(size=(4, 1, 2, 3)).astype(np.float32)


def functions():
    """By name: a function, and the shape of its input."""
    pool = nn.functional
    constant = np.array([[1.5, -2.0, 0.25]], np.float32)
    yield "matmul and bias", lambda x: x @ rg.asarray(W) + 1.5, (2, 4)
    yield "constant on the left", lambda x: rg.asarray(W.T) @ x, (4, 2)
    yield "stacks", lambda x: rg.einsum("bij,bjk->bik", x, rg.ones((2, 3, 2)) * 2), (2, 2, 3)
    yield "stacks, left", lambda x: rg.einsum("bij,bjk->bik", rg.ones((2, 2, 3)), x), (2, 3, 2)
    yield "the same element twice", lambda x: rg.concat([x, x]) @ rg.asarray(W[:, 0]), (2,)
    yield "arithmetic", lambda x: -(x * rg.asarray(constant) - x / 4) + (2 - x), (1, 3)
    yield "division", lambda x: x / 3 - 1.5, (3,)
    yield "sums", lambda x: rg.mean(x, axis=1) + rg.sum(x), (2, 3)
    yield "movement", lambda x: rg.flip(rg.permute_dims(x, (1, 0)), axis=0)[1:, ::2], (3, 4)
    yield "padding", lambda x: rg.pad(x, ((1, 0), (0, 2))), (2, 2)
    yield "relu and residual", lambda x: rg.relu(x @ rg.asarray(W[:, :4] @ W.T)) + x, (4,)
    yield "abs, max, min", lambda x: rg.maximum(abs(x), x[::-1] + 1) - rg.minimum(x, 0.5), (5,)
    yield "clip", lambda x: rg.clip(x, -0.5, 0.75) + rg.clip(x, 0, 6), (5,)
    yield "leaky", lambda x: pool.leaky_relu(x, 0.1), (6,)
    yield "where", lambda x: rg.where(np.array([True, False, True]), x, x * 2 + 1), (3,)
    yield "where positive", lambda x: rg.where(x > 0, x, 0.0), (5,)
    yield "maxima", lambda x: rg.max(x, axis=1) - rg.min(x), (3, 5)
    yield "gather", lambda x: rg.take(x, np.array([2, 0, 0]), axis=0), (3, 2)
    yield "max pool", lambda x: pool.max_pool2d(x, 3, stride=2, padding=1), (1, 1, 5, 5)
    yield "mean pool", lambda x: pool.avg_pool2d(x, 2), (1, 2, 4, 4)
    yield (
        "conv, all options",
        lambda x: pool.conv2d(
            x, rg.asarray(KERNEL), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2
        ),
        (2, 2, 5, 6),
    )
    yield "conv transposed", lambda x: pool.conv_transpose2d(x, rg.asarray(KERNEL)), (1, 4, 3, 2)
    yield "outputs", lambda x: (x * 2, rg.relu(x)), (3,)
    yield "constant output", lambda x: rg.ones((2,)), (3,)
    yield "nothing", lambda x: x, (2, 2)


CASES = {name: (f, shape) for name, f, shape in functions()}


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_the_graph_gives(name):
    f, shape = CASES[name]
    graph = rg.trace(f, rg.spec(shape))
    net = network_of(graph)
    x = np.random.default_rng(0).normal(size=(20, *shape)).astype(np.float32)
    y = net(x.reshape(len(x), -1))
    with rg.backend("reference"):
        for row, expected in zip(x, y, strict=True):
            found = graph(row)
            parts = found if isinstance(found, tuple) else (found,)
            flat = np.concatenate([p.numpy().ravel() for p in parts])
            np.testing.assert_allclose(expected, flat, rtol=1e-5, atol=1e-5)


def test_modules_in_eval():
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.LeakyReLU(0.1), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 3),
    ).eval()  # fmt: skip
    net = network_of(rg.trace(model, rg.spec((1, 1, 4, 4))))
    x = np.random.default_rng(0).normal(size=(1, 1, 4, 4)).astype(np.float32)
    with rg.backend("reference"):
        np.testing.assert_allclose(net(x.reshape(1, -1)), model(rg.asarray(x)).numpy(), rtol=1e-5)
    assert any(isinstance(step, Relu) for step in net.steps)
    again = network_of(rg.trace(model, rg.spec((1, 1, 4, 4))))
    assert net.digest() == again.digest()


def test_a_bias_belongs_to_its_sum_unless_that_is_read_elsewhere():
    def f(x):
        y = x @ rg.asarray(W)
        return y + 1.0, y

    graph = rg.trace(f, rg.spec((4,)))
    x = np.ones((1, 4))
    np.testing.assert_allclose(
        network_of(graph)(x), np.concatenate([x @ W + 1, x @ W], 1), rtol=1e-6
    )
    assert len(network_of(rg.trace(lambda x: x @ rg.asarray(W) + 1, rg.spec((4,)))).steps) == 1


def test_what_is_no_network():
    for f, op in (
        (rg.tanh, "tanh"),
        (lambda x: x * x, "mul"),
        (lambda x: 1 / (x + 2), "div"),
        (lambda x: x @ x, "dot_general"),
        (lambda x: rg.where(x > 0, x, x + 1), "select"),
        (lambda x: rg.where(x > 1, x, 0.0), "gt"),
    ):
        with pytest.raises(rg.RetrogradError, match=op):
            network_of(rg.trace(f, rg.spec((3,))))
    with pytest.raises(rg.RetrogradError, match="infinite or NaN"):
        network_of(rg.trace(lambda x: x * np.nan, rg.spec((3,))))


def test_it_may_be_too_large(monkeypatch):
    from retrograd.tuning import TUNING

    monkeypatch.setattr(TUNING, "network_weights", 10)
    with pytest.raises(rg.RetrogradError, match="too large"):
        network_of(rg.trace(lambda x: x @ rg.asarray(W), rg.spec((4,))))
