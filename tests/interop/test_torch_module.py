"""as_torch_module: trained by PyTorch, a module computes what PyTorch's own does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop import as_torch_module

pytestmark = pytest.mark.torch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_the_same_trajectory_state_and_modes(torch: Any) -> None:
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Tanh(), torch.nn.Linear(6, 1)
    theirs = torch.nn.Sequential(*layers).double()
    nn = rg.nn
    own = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 1)).double()
    ours = as_torch_module(own)
    assert set(ours.state_dict()) == set(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(8, 4, dtype=torch.float64)
    losses = []
    for net in (theirs, torch.nn.Sequential(ours)):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = (net(x) - 1).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-10)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-7)
    ours.eval()
    theirs.eval()
    np.testing.assert_allclose(ours(x).detach().numpy(), theirs(x).detach().numpy(), rtol=1e-6)
    assert own.training  # what it was made of stays as it was
    assert "Sequential" in repr(ours)


def test_randomness_goes_on(torch: Any) -> None:
    net = as_torch_module(rg.nn.Sequential(rg.nn.Dropout(0.5)))
    x = torch.ones(64)
    first, second = net(x), net(x)
    assert set(first.tolist()) == {0.0, 2.0}
    assert not torch.equal(first, second)
    net.eval()
    assert torch.equal(net(x), x)


def test_frozen_parameters_and_what_is_no_module(torch: Any) -> None:
    model = rg.nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    net = as_torch_module(model)
    net(torch.ones(1, 2)).sum().backward()
    assert net.weight.grad.tolist() == [[1.0, 1.0]]
    assert net.bias.grad is None
    with pytest.raises(rg.ArgumentError, match=r"takes an rg\.nn\.Module, not a function"):
        as_torch_module(lambda x: x)  # type: ignore[arg-type]
