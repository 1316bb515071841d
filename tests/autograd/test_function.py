"""Operations as classes: gradients by their own rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import Function


class Scaled(Function):
    """Straight through, times a number that is no tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any, k: float) -> Any:
        ctx.k = k
        return rg.sign(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.k, None


class Product(Function):
    @staticmethod
    def forward(x: Any, w: Any) -> Any:
        return x @ w

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        gx = g @ w.T if ctx.needs_input_grad[0] else None
        return gx, x.T @ g if ctx.needs_input_grad[1] else None


class OfNumPy(Function):
    """Exp, by functions that retrograd does not see."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.y = np.exp(x.detach().numpy())
        return rg.as_tensor(ctx.y)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return rg.as_tensor(g.numpy() * ctx.y)


class Largest(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        at = x.argmax()
        ctx.mark_non_differentiable(at)
        ctx.save_for_backward(at)
        ctx.shape = x.shape
        return x.max(), at

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        (at,) = ctx.saved_tensors
        return rg.zeros(ctx.shape).at[at].set(g)


def test_the_rule_is_what_is_differentiated() -> None:
    x: Any = rg.tensor([1.5, -2.0], requires_grad=True)
    for k in (2.0, 3.0, 2.0, 3.0):  # other numbers in what is otherwise the same program
        x.grad = None
        y = Scaled.apply(x, k)
        y.sum().backward()
        assert y.tolist() == [1.0, -1.0]
        assert x.grad.tolist() == [k, k]


def test_needs_input_grad_and_setup_context() -> None:
    x: Any = rg.tensor([[1.0, 2.0]], requires_grad=True)
    w: Any = rg.tensor([[3.0], [4.0]], requires_grad=True)
    Product.apply(x.detach(), w).sum().backward()
    assert w.grad.tolist() == [[1.0], [2.0]]
    assert getattr(x, "grad", 0) is None
    Product.apply(x, w).sum().backward()
    assert x.grad.tolist() == [[3.0, 4.0]]
    inputs = rg.ones((2, 3), dtype=rg.float64), rg.ones((3, 2), dtype=rg.float64)
    assert rg.autograd.gradgradcheck(lambda x, w: rg.tanh(x @ w), inputs)
    assert rg.autograd.gradcheck(Product.apply, inputs)


def test_numpy_inside() -> None:
    x: Any = rg.tensor([0.0, 1.0], requires_grad=True)
    for k in (1.0, 2.0, 3.0):
        x.grad = None
        OfNumPy.apply(x * k).sum().backward()
        np.testing.assert_allclose(x.grad, k * np.exp(k * np.array([0.0, 1.0])), rtol=1e-6)


def test_results_without_a_gradient() -> None:
    x: Any = rg.tensor([1.0, 5.0, 2.0], requires_grad=True)
    value, at = Largest.apply(x)
    assert (value.requires_grad, at.requires_grad, at.item()) == (True, False, 1)
    (value * 3).backward()
    assert x.grad.tolist() == [0.0, 3.0, 0.0]


def test_under_transforms() -> None:
    x: Any = rg.ones((2, 2))
    assert rg.jit(rg.grad(lambda x: Scaled.apply(x, 2.0).sum()))(x).tolist() == [[2.0, 2.0]] * 2
    assert rg.vmap(lambda x: Product.apply(x, x))(rg.ones((3, 2, 2))).shape == (3, 2, 2)


def test_what_is_wrong_is_said() -> None:
    class Few(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x: Any = rg.ones(2, requires_grad=True)
    with pytest.raises(rg.GradientError, match="Few returned 1 gradients for 2 arguments"):
        Few.apply(x, rg.ones(2)).sum().backward()

    class InPlace(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x

    with pytest.raises(rg.GradientError, match="returns a new tensor"):
        InPlace.apply(x)
    with pytest.raises(rg.ArgumentError, match="derived from Function"):
        Function.apply(x)
