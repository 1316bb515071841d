"""Derivatives of a function at inputs: against formulas."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import functional

X, Y = rg.tensor([1.0, 3.0]), rg.tensor([2.0, -1.0])


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(strategy: str) -> None:
    a, b = functional.jacobian(lambda x, y: x * y**2, (X, Y), strategy=strategy)
    assert a.tolist() == [[4.0, 0.0], [0.0, 1.0]]
    assert b.tolist() == [[4.0, 0.0], [0.0, -6.0]]
    assert functional.jacobian(lambda x: x.sum(), X).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(strategy: str) -> None:
    (aa, ab), (ba, bb) = functional.hessian(
        lambda x, y: (x * y**2).sum(), (X, Y), outer_jacobian_strategy=strategy
    )
    assert aa.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert ab.tolist() == ba.tolist() == [[4.0, 0.0], [0.0, -2.0]]
    assert bb.tolist() == [[2.0, 0.0], [0.0, 6.0]]
    with pytest.raises(rg.GradientError, match="one number"):
        functional.hessian(lambda x: x, X)


def test_products() -> None:
    v: Any = rg.tensor([10.0, 100.0])
    out, found = functional.vjp(lambda x, y: x * y, (X, Y), v)
    assert out.tolist() == [2.0, -3.0]
    assert [g.tolist() for g in found] == [[20.0, -100.0], [10.0, 300.0]]
    assert functional.jvp(lambda x: x**2, X, v)[1].tolist() == [20.0, 600.0]
    for product in (functional.vhp, functional.hvp):
        value, h = product(lambda x: (x**3).sum(), X, v)
        assert (value.item(), h.tolist()) == (28.0, [60.0, 1800.0])
    assert functional.vjp(lambda x: (x**2).sum(), X)[1].tolist() == [2.0, 6.0]
    with pytest.raises(rg.GradientError, match="give v"):
        functional.vjp(lambda x: x, X)


def test_results_are_constants_unless_asked() -> None:
    x: Any = rg.tensor([1.0, 2.0], requires_grad=True)
    assert not functional.jacobian(lambda x: x**2, x).requires_grad
    functional.jacobian(lambda x: x**3, x, create_graph=True).sum().backward()
    np.testing.assert_allclose(x.grad, [6.0, 12.0])
