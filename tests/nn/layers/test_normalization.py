"""Layers that normalise: values by hand, and the statistics that they keep."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

rng = np.random.default_rng(1)
X = rng.normal(size=(4, 6))


def wide(module):
    return module.to(rg.float64)


def test_batch_norm_keeps_running_statistics() -> None:
    norm = nn.BatchNorm1d(2).to(rg.float64)
    x = np.array([[1.0, 10.0], [3.0, 30.0]])
    norm(x)
    np.testing.assert_allclose(norm.running_mean.numpy(), [0.2, 2.0])
    np.testing.assert_allclose(norm.running_var.numpy(), [0.9 + 0.2, 0.9 + 20.0])
    assert norm.num_batches_tracked.item() == 1
    before = norm.eval()(x).numpy()
    np.testing.assert_allclose(before, (x - [0.2, 2.0]) / np.sqrt(np.array([1.1, 20.9]) + 1e-5))
    assert norm.num_batches_tracked.item() == 1
    copied = nn.BatchNorm1d(2).to(rg.float64)
    copied.load_state_dict(norm.state_dict())
    np.testing.assert_array_equal(copied.eval()(x).numpy(), before)


def test_running_statistics_come_out_of_functions() -> None:
    norm, x = nn.BatchNorm1d(1), np.array([[1.0], [3.0]], np.float32)
    rg.grad(lambda m: (m(x) ** 2).sum())(norm)
    assert norm.running_mean.item() == pytest.approx(0.2)
    _, after = rg.grad(lambda m: ((m(x) ** 2).sum(), m), has_aux=True)(norm)
    assert norm.running_mean.item() == pytest.approx(0.2)
    assert after.running_mean.item() == pytest.approx(0.38)
    step = rg.jit(lambda m: m(x).sum())
    for mean in (0.38, 0.542, 0.6878):
        step(norm)
        assert norm.running_mean.item() == pytest.approx(mean)
    both = rg.jit(lambda m: (m(x).sum(), m))
    with rg.no_grad():
        for mean in (0.81902, 0.937118):
            _, norm = both(norm)
            assert norm.running_mean.item() == pytest.approx(mean)


@pytest.mark.parametrize(("shape", "axes"), [(6, (1,)), ((6,), (1,)), ((4, 6), (0, 1))])
def test_normalizations(shape, axes):
    mean, var = X.mean(axes, keepdims=True), X.var(axes, keepdims=True)
    layer = wide(nn.LayerNorm(shape, eps=1e-3))
    np.testing.assert_allclose(layer(X).numpy(), (X - mean) / np.sqrt(var + 1e-3))
    square = (X * X).mean(axes, keepdims=True)
    layer = wide(nn.RMSNorm(shape, eps=1e-3))
    np.testing.assert_allclose(layer(X).numpy(), X / np.sqrt(square + 1e-3))
    layer = nn.RMSNorm(shape, elementwise_affine=False)
    np.testing.assert_allclose(layer(X).numpy(), X / np.sqrt(square + np.finfo(float).eps))
    assert not list(layer.parameters())


def test_normalizations_check_the_shape():
    for layer in (nn.LayerNorm(5), nn.RMSNorm((3, 6))):
        with pytest.raises(rg.ShapeError, match=f"in {type(layer).__name__}"):
            layer(X)
