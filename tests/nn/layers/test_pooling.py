"""Pooling layers: PyTorch's values from the same options, indices, regions."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

rng = np.random.default_rng(8)
SIZES = {1: (9,), 2: (7, 8), 3: (5, 6, 5)}
POOLS: dict[str, Any] = {
    "MaxPool": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    "AvgPool": {"kernel_size": 2},
    "AdaptiveAvgPool": {"output_size": 3},
}


def compare(ours, theirs, x):
    """The same state gives the same values and gradients."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = theirs.double()
    ours = ours.to(rg.float64)
    ours.load_state_dict(theirs.state_dict())
    a, b = torch.tensor(x, requires_grad=True), rg.tensor(x, requires_grad=True)
    expected, found = theirs(a), ours(b)
    weights = rng.normal(size=tuple(expected.shape))
    (expected * torch.tensor(weights)).sum().backward()
    (found * weights).sum().backward()
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), atol=1e-12)
    given = {n: p.grad.numpy() for n, p in theirs.named_parameters()}
    for name, p in ours.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), given[name], atol=1e-11)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", POOLS)
def test_pools_against_torch(name, rank):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    ours, theirs = (getattr(m, f"{name}{rank}d")(**POOLS[name]) for m in (nn, torch.nn))
    compare(ours, theirs, rng.normal(size=(2, 4, *SIZES[rank])))


def test_indices_and_adaptive_sizes():
    x = rng.normal(size=(2, 3, 6))
    y, at = nn.MaxPool1d(2, return_indices=True)(x)
    np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), -1), y.numpy())
    pooled = nn.AdaptiveAvgPool2d((None, 1))(x[None]).numpy()
    np.testing.assert_allclose(pooled, x[None].mean(-1, keepdims=True))
