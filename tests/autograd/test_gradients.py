"""Gradients of tensors that have been computed: against formulas and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import backward, grad


def test_gradients_of_every_order_without_touching_grad() -> None:
    x: Any = rg.tensor(np.array([0.5, -1.5, 2.0]), requires_grad=True)
    y = (x**4).sum()
    for power, factor in ((3, 4.0), (2, 12.0), (1, 24.0)):
        (y,) = grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.detach(), factor * x.detach().numpy() ** power, rtol=1e-12)
    assert x.grad is None
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, [24.0] * 3)


@pytest.mark.parametrize("looks", [False, True])
def test_a_penalty_on_gradients_trains_a_model(looks: bool) -> None:
    """As of a Wasserstein critic; against finite differences of the loss."""
    rng = np.random.default_rng(0)
    w: Any = rg.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    v: Any = rg.tensor(rng.normal(size=(4,)), requires_grad=True)
    data = rng.normal(size=(5, 3))

    def loss(w: Any, v: Any) -> Any:
        x: Any = rg.tensor(data, requires_grad=True)
        y = (x @ w).tanh() @ v
        if looks:
            y.numpy(force=True)
        (g,) = grad(y, x, rg.ones_like(y), create_graph=True)
        return (((g**2).sum(axis=1) ** 0.5 - 1) ** 2).mean()

    for _ in range(4):  # once interpreted, then as it has been seen
        w.grad = v.grad = None
        loss(w, v).backward()
    h = 1e-6
    for at in ((0, 0), (2, 3)):
        up, down = w.detach().numpy().copy(), w.detach().numpy().copy()
        up[at] += h
        down[at] -= h
        slope = (loss(rg.tensor(up), v) - loss(rg.tensor(down), v)) / (2 * h)
        assert w.grad[at].item() == pytest.approx(slope.item(), rel=1e-6)


def test_several_outputs_and_inputs_and_what_lies_between() -> None:
    a: Any = rg.tensor(2.0, requires_grad=True)
    b: Any = rg.tensor(3.0, requires_grad=True)
    c = a * b
    found = grad([c * a, c + b], [a, b, c], [rg.tensor(1.0), rg.tensor(10.0)])
    assert [g.item() for g in found] == [2 * 6 + 10 * 3, 4 + 10 * 3, 2 + 10]


def test_under_transforms() -> None:
    def slope(x: Any) -> Any:
        return grad((x**3).sum(), x, create_graph=True)[0]

    x: Any = rg.tensor([1.0, 2.0])
    assert rg.jit(slope)(x).tolist() == [3.0, 12.0]
    assert rg.grad(lambda x: slope(x).sum())(x).tolist() == [6.0, 12.0]
    assert rg.vmap(slope)(x).tolist() == [3.0, 12.0]


def test_history_is_given_up_unless_it_is_kept() -> None:
    x: Any = rg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    assert [grad(y, x, retain_graph=True)[0].tolist() for _ in range(2)] == [[2.0, 4.0]] * 2
    grad(y, x)
    with pytest.raises(rg.GradientError, match="has lost its history"):
        grad(y, x)


def test_what_has_no_gradient_is_said() -> None:
    x, z = rg.tensor([1.0, 2.0], requires_grad=True), rg.tensor(1.0, requires_grad=True)
    with pytest.raises(rg.GradientError, match="give grad_outputs"):
        grad(x * 2, x)
    with pytest.raises(rg.GradientError, match=r"input 0.* requires no gradient"):
        grad((x * 2).sum(), rg.ones(2))
    with pytest.raises(rg.GradientError, match="depends on nothing"):
        grad(rg.ones(2).sum(), x)
    with pytest.raises(rg.GradientError, match=r"do not depend on input 1.*allow_unused"):
        grad((x * 2).sum(), [x, z])
    assert grad((x * 2).sum(), [x, z], allow_unused=True)[1] is None
    assert grad((x * 2).sum(), [x, z], materialize_grads=True)[1].item() == 0.0
    with pytest.raises(rg.ShapeError, match="of this type"):
        grad(x * 2, x, rg.ones(3))
    with pytest.raises(rg.ShapeError, match="2 vectors for 1"):
        grad(x * 2, x, [rg.ones(2), rg.ones(2)])
    with pytest.raises(rg.ArgumentError, match="inputs are tensors, not str"):
        grad((x * 2).sum(), ["x"])


def test_backward_of_several_and_to_some() -> None:
    x: Any = rg.tensor(2.0, requires_grad=True)
    z: Any = rg.tensor(5.0, requires_grad=True)
    backward([x * z, x * x])
    assert (x.grad.item(), z.grad.item()) == (9.0, 2.0)
    backward(x * z, inputs=[x])
    assert (x.grad.item(), z.grad.item()) == (14.0, 2.0)
    backward(rg.stack([x, z]), rg.tensor([1.0, 3.0]))
    assert (x.grad.item(), z.grad.item()) == (15.0, 5.0)
    with pytest.raises(rg.GradientError, match=r"rg.autograd.grad"):
        backward(x * x, create_graph=True)
