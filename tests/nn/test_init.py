"""Initial values: distributions, reproducibility."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError, ShapeError

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


def test_nothing_is_drawn_where_it_is_skipped():
    before = init.default_generator().state_dict()
    with init.skip_init():
        layer, table = nn.Linear(3, 2, dtype=rg.float64), nn.Embedding(4, 2)
        attention: Any = nn.MultiHeadAttention(4, 2)
        with pytest.raises(rg.ShapeError, match="-1"):
            init.uniform((-1,))
    for p in (*layer.parameters(), *table.parameters(), *attention.parameters()):
        assert not p.numpy().any()
    assert layer.weight.dtype is rg.float64
    after = init.default_generator().state_dict()
    assert all(np.array_equal(before[k], after[k]) for k in before)
    assert nn.Linear(3, 2).weight.numpy().all()


def test_what_is_skipped_is_drawn_again_after_an_error():
    with pytest.raises(rg.ShapeError), init.skip_init():
        nn.Linear(0, 1)
    assert nn.Linear(3, 2).weight.numpy().all()


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
    """Of a size that nobody has made before, in a process of its own: elsewhere it may be the call
    with which an operation has run often enough to be compiled."""
    code = """
import retrograd as rg
from retrograd.runtime.executable import Executable
for n in (6, 8):
    rg.nn.Linear(n, 18 - n)  # other sizes get names
made, init = [], Executable.__init__
def noted(self, *args, **options):
    made.append(self)
    init(self, *args, **options)
Executable.__init__ = noted
layer = rg.nn.Linear(7, 5)
assert all(key is not None for key in layer.state_dict())
assert layer.weight.is_computed
assert not made, [str(x.graph) for x in made]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_truncated_normal_numbers():
    x = init.trunc_normal((400, 500), 1.0, 2.0, -1.0, 4.0, dtype=rg.float64).numpy()
    assert x.min() >= -1
    assert x.max() <= 4
    law = stats.truncnorm(-1, 1.5, 1.0, 2.0)
    assert stats.kstest(x.ravel(), law.cdf).pvalue > 1e-3


def test_orthogonal_columns_and_rows():
    for shape in ((6, 4), (4, 6), (3, 2, 2), (5, 5)):
        x = init.orthogonal(shape, 2.0, dtype=rg.float64).numpy().reshape(shape[0], -1)
        x = x if x.shape[0] >= x.shape[1] else x.T
        np.testing.assert_allclose(x.T @ x, 4 * np.eye(x.shape[1]), atol=1e-12)


def test_sparse_eye_and_dirac():
    x = init.sparse((10, 7), 0.25).numpy()
    assert ((x == 0).sum(axis=0) == 3).all()
    assert init.eye((2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    y = rg.ones((1, 4, 5, 5)) * rg.arange(4).reshape((1, 4, 1, 1))
    kept = nn.functional.conv2d(y, init.dirac((4, 2, 3, 3), groups=2), padding=1, groups=2)
    np.testing.assert_array_equal(kept.numpy(), y.numpy())


def test_in_place():
    layer = nn.Conv2d(4, 8, 3).to(rg.float64)
    weight = layer.weight
    for name in ("normal", "kaiming_uniform", "xavier_normal", "orthogonal", "dirac", "zeros"):
        init.seed(2)
        assert getattr(init, f"{name}_")(weight) is weight
        init.seed(2)
        drawn = getattr(init, name)((8, 4, 3, 3), dtype=rg.float64)
        np.testing.assert_array_equal(layer.weight.numpy(), drawn.numpy())
    init.constant_(layer.bias, 3)
    assert layer.bias.tolist() == [3] * 8
    layer(np.ones((1, 4, 5, 5))).sum().backward()
    assert layer.weight.grad is not None
    init.seed(0)


@pytest.mark.torch
def test_against_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    for shape, groups in (((4, 2, 3), 2), ((3, 5, 2, 3), 1), ((6, 1, 3, 3, 1), 3)):
        expected = torch.nn.init.dirac_(torch.empty(shape), groups)
        np.testing.assert_array_equal(init.dirac(shape, groups).numpy(), expected.numpy())


def test_refused_shapes():
    for call in (
        lambda: init.orthogonal((3,)),
        lambda: init.eye((3, 3, 3)),
        lambda: init.dirac((3, 3)),
        lambda: init.sparse((3,), 0.5),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(OptionError):
        init.dirac((4, 2, 3), groups=3)


def test_models_made_by_a_transform():
    """Of generators that are arguments: the same models that each makes by itself."""

    def made(g):
        return nn.Sequential(nn.Linear(3, 4, generator=g), nn.Embedding(5, 4, generator=g))

    many = rg.random.Generator(0).split(3)
    stacked = rg.vmap(made)(many)
    for i in range(3):
        alone, compiled = made(many[i]), rg.jit(made)(many[i])
        for a, b, c in zip(
            alone.parameters(), compiled.parameters(), stacked.parameters(), strict=True
        ):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
            np.testing.assert_array_equal(a.numpy(), c.numpy()[i])
    assert all(p.trainable for p in stacked.parameters())
    x = rg.ones((2, 3))
    rows = rg.vmap(lambda m: m[0](x))(stacked).numpy()
    np.testing.assert_allclose(rows[1], made(many[1])[0](x).numpy(), rtol=1e-6)


def test_parameters_of_lazy_tensors_are_computed():
    """What is only not computed yet is no part of a program."""
    p = nn.Parameter(rg.ones((2,)) * 3.0)
    assert p.is_source
    (p * p).sum().backward()
    assert p.grad.tolist() == [6.0, 6.0]
