"""`--gradcheck`: gradients that a test takes are checked, whatever takes them."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as rg
from retrograd.errors import GradientError
from retrograd.testing.watch import watching

X = [1.0, 2.0, 3.0]


def squares(factor: float) -> Any:
    """The sum of squares, with a rule whose factor should be 2."""
    f = rg.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, g: (factor * g * x,))
    return lambda x: f(x).sum()


def by_grad(f: Any) -> None:
    rg.grad(f)(rg.tensor(X))


def by_value_and_grad(f: Any) -> None:
    rg.value_and_grad(f)(rg.tensor(X))


def by_backward(f: Any) -> None:
    x = rg.tensor(X, requires_grad=True)
    f(x).backward()


def by_vjp(f: Any) -> None:
    rg.vjp(f, rg.tensor(X))[1](rg.tensor(1.0))


def by_trace(f: Any) -> None:
    rg.trace(rg.grad(f), rg.tensor(X))


@pytest.mark.parametrize("take", [by_grad, by_value_and_grad, by_backward, by_vjp, by_trace])
def test_a_wrong_gradient_is_caught(take: Any) -> None:
    with rg.backend("reference"):
        with watching() as watch:
            take(squares(2.0))
        assert watch.checked == 1
        with watching(), pytest.raises(GradientError, match=r"it is 1\.5 times") as caught:
            take(squares(3.0))
    assert "--gradcheck: the order 1 derivative" in str(caught.value)
    assert "custom rule" in str(caught.value)


def test_inputs_of_a_trace_are_drawn_in_their_dtype() -> None:
    w = rg.ones((3, 2))
    with rg.backend("reference"), watching() as watch:
        rg.trace(lambda x: rg.grad(lambda w: (x @ w).sum())(w), rg.ones((4, 3)))
    assert watch.checked == 1


def test_loops_in_float32_are_checked_to_their_digits() -> None:
    def summed(factor: float) -> Any:
        step = squares(factor)
        return lambda x: rg.scan(lambda c, row: (rg.tanh(c + step(row)), c), rg.tensor(0.1), x)[0]

    x = rg.tensor([[0.3, 0.2], [0.1, -0.4]])
    with rg.backend("reference"):
        with watching() as watch:
            rg.grad(summed(2.0))(x)
        assert watch.checked > 0
        with watching(), pytest.raises(GradientError, match="--gradcheck"):
            rg.grad(summed(3.0))(x)


def test_values_are_those_of_the_test() -> None:
    """A rule that is wrong below zero alone is wrong where the test is."""
    f = rg.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, g: (rg.where(x < -10, 3.0, 2.0) * g * x,))
    far = rg.tensor([-20.0, -30.0])
    with rg.backend("reference"), watching():
        rg.grad(lambda x: f(x).sum())(-far)
    with rg.backend("reference"), watching(), pytest.raises(GradientError, match="--gradcheck"):
        rg.grad(lambda x: f(x).sum())(far)
    with rg.backend("reference"), watching(), pytest.raises(GradientError, match="--gradcheck"):
        rg.grad(lambda x: f(x * far).sum())(rg.ones(2))


def test_nothing_is_watched_outside() -> None:
    with watching():
        pass
    by_grad(squares(3.0))


def test_each_computation_is_checked_once() -> None:
    f = squares(2.0)
    with rg.backend("reference"), watching() as watch:
        for _ in range(3):
            by_grad(f)
    assert watch.checked == 1


def test_what_is_held_fixed_and_integers_are_no_mistakes() -> None:
    with rg.backend("reference"), watching() as watch:
        rg.grad(lambda x: (x * rg.stop_gradient(x)).sum())(rg.tensor(X))
        rg.grad(lambda x: (x * rg.argsort(x)).sum())(rg.tensor(X))
        rg.grad(lambda x: rg.maximum(x, 2.0).sum())(rg.tensor(X))
        rg.grad(lambda z: rg.abs(z).sum())(rg.tensor([1 + 2j, 3 - 1j]))
    assert watch.checked == 4
