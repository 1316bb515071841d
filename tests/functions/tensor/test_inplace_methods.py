"""Methods with an underscore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
C = rng.normal(size=(2, 3, 4))
I = np.array([[0, 2, 1], [3, 3, 0]])  # noqa: E741


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def test_methods_with_an_underscore_change_what_every_holder_sees() -> None:
    x = rg.tensor([1.0, 4.0])
    y = x
    assert x.add_(1, alpha=2).sqrt_().mul_(2) is x
    np.testing.assert_allclose(y.numpy(), 2 * np.sqrt([3.0, 6.0]), rtol=1e-6)
    assert x.zero_().fill_(3).copy_(rg.tensor([1, 2])).tolist() == [1.0, 2.0]
    assert y.masked_fill_(rg.tensor([True, False]), 9).tolist() == [9.0, 2.0]
    with pytest.raises(rg.ShapeError):
        x.add_(rg.ones((2, 2)))
    w = rg.tensor([1.0], requires_grad=True)
    with pytest.raises(rg.GradientError, match="no_grad"):
        w.mul_(2)
    with rg.no_grad():
        assert w.mul_(2).tolist() == [2.0]
    assert w.requires_grad
    assert w.is_leaf


def test_gradients_flow_through_methods_with_an_underscore() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y.mul_(x).add_(1)
        return (y * y).sum()

    for g in (rg.grad(f), rg.jit(rg.grad(f))):
        assert g(rg.tensor([1.0, 2.0])).tolist() == [8.0, 40.0]  # of (x^2 + 1)^2
