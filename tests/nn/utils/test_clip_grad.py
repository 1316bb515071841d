"""PyTorch's names of clipping, against the formulas and PyTorch."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import NonFiniteError

U = nn.utils
G = [np.array([3.0, -4.0]), np.array([[12.0]])]


def parameters() -> Any:
    found = [nn.Parameter(np.ones_like(g)) for g in G]
    for p, g in zip(found, G, strict=True):
        (p * g).sum().backward()
    return [*found, nn.Parameter(np.ones(2))]  # without a gradient


def grads(found: Any) -> list[Any]:
    return [p.grad.numpy().tolist() for p in found[:2]]


def test_by_hand() -> None:
    p = parameters()
    assert U.clip_grad_norm_(iter(p), 6.5).item() == 13
    np.testing.assert_allclose(grads(p)[0], G[0] * (6.5 / (13 + 1e-6)), rtol=1e-12)
    p = parameters()
    U.clip_grad_value_(p, 3.5)
    assert grads(p) == [[3, -3.5], [[3.5]]]
    p = parameters()
    total = U.get_total_norm([q.grad for q in p[:2]], norm_type=float("inf"))
    assert total.item() == 12
    U.clip_grads_with_norm_(p, 6.0, total)
    np.testing.assert_allclose(grads(p)[1], [[12 * 6 / (12 + 1e-6)]], rtol=1e-12)
    assert p[2].grad is None


def test_without_gradients_and_with_infinite_ones() -> None:
    assert U.clip_grad_norm_(nn.Linear(2, 2), 1.0).item() == 0
    U.clip_grad_value_([], 1.0)
    assert U.get_total_norm([]).item() == 0
    with pytest.raises(NonFiniteError, match="2 tensors is inf"):
        U.get_total_norm([rg.tensor([np.inf]), rg.ones(1)], error_if_nonfinite=True)


@pytest.mark.torch
@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_against_torch(order: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = [torch.ones(g.shape, dtype=torch.float64, requires_grad=True) for g in G]
    for p, g in zip(theirs, G, strict=True):
        p.grad = torch.tensor(g)
    mine = parameters()
    expected = torch.nn.utils.clip_grad_norm_(theirs, 2.0, order)
    assert U.clip_grad_norm_(mine, 2.0, order).item() == pytest.approx(expected.item(), rel=1e-12)
    for p, q in zip(mine[:2], theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-12)
