"""Initial values: distributions, reproducibility."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

init = nn.init
SHAPE = (200, 300)


@pytest.mark.parametrize(
    ("f", "std", "bound"),
    [
        (init.uniform, 1 / math.sqrt(12), 1),
        (init.normal, 1, None),
        (init.xavier_uniform, math.sqrt(2 / 500), math.sqrt(6 / 500)),
        (init.xavier_normal, math.sqrt(2 / 500), None),
        (init.kaiming_uniform, math.sqrt(2 / 300), math.sqrt(6 / 300)),
        (init.kaiming_normal, math.sqrt(2 / 300), None),
    ],
)
def test_spread(f, std, bound):
    x = f(SHAPE, generator=rg.random.Generator(1)).numpy()
    assert x.dtype == np.float32
    assert x.std() == pytest.approx(std, rel=0.02)
    if bound:
        assert 0.99 * bound < x.max() <= bound
    y = f(SHAPE, generator=rg.random.Generator(1), dtype=rg.float64).numpy()
    assert y.dtype == np.float64
    assert y.std() == pytest.approx(std, rel=0.02)


def test_constants_and_fans():
    assert init.zeros((2,)).tolist() == [0, 0]
    assert init.ones((2,)).tolist() == [1, 1]
    assert init.constant((2,), 3, dtype=rg.float64).dtype is rg.float64
    assert init.fans((8, 4, 3, 3)) == (36, 72)
    x = init.kaiming_normal(SHAPE, mode="fan_out", nonlinearity="tanh").numpy()
    assert x.std() == pytest.approx(5 / 3 / math.sqrt(200), rel=0.02)


def test_default_stream_is_seeded():
    init.seed(5)
    a = nn.Linear(3, 3).weight.numpy()
    b = nn.Linear(3, 3).weight.numpy()
    init.seed(5)
    c = nn.Linear(3, 3).weight.numpy()
    init.seed(0)
    assert np.array_equal(a, c)
    assert not np.array_equal(a, b)


def test_default_values_of_layers():
    g = rg.random.Generator(0)
    layer = nn.Linear(400, 100, generator=g)
    for p in layer.parameters():
        assert 0.98 / 20 < abs(p.numpy()).max() <= 1 / 20
    assert nn.Embedding(300, 100, generator=g).weight.numpy().std() == pytest.approx(1, rel=0.02)
    attention: Any = nn.MultiHeadAttention(64, 4, generator=g)
    assert not attention.in_proj_bias.numpy().any()
    assert not attention.out_proj.bias.numpy().any()
    bound = math.sqrt(6 / (4 * 64))
    assert 0.98 * bound < attention.in_proj_weight.numpy().max() <= bound
    norm: Any = nn.LayerNorm(3)
    assert norm.weight.tolist() == [1, 1, 1]
    assert norm.bias.tolist() == [0, 0, 0]
    assert nn.LayerNorm(3, bias=False).bias is None


def test_making_a_layer_compiles_nothing():
    before = rg.cache_stats()["misses"]
    with rg.backend("llvm"):
        layer = nn.Linear(7, 5)
    assert all(key is not None for key in layer.state_dict())
    assert layer.weight.is_computed
    assert rg.cache_stats()["misses"] <= before + 2  # on the reference backend
