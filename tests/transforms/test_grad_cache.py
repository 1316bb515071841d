"""`grad` of a function that runs now: gradients without nodes mean what they mean on nodes."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.transforms import grad


def vector(*shape: int) -> rg.Tensor:
    return rg.tensor(np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape))


@pytest.fixture
def ways(monkeypatch):
    """Which way each gradient was found."""
    found: list[str] = []

    def noted(value, inner):
        result = slopes(value, inner)
        found.append("eager" if result is not None else "nodes")
        return result

    slopes = grad.eager_gradients
    monkeypatch.setattr(grad, "eager_gradients", noted)
    return found


def test_a_gradient_without_nodes_is_that_by_nodes(ways):
    x, y = vector(3), vector(4, 3)

    def f(x, y):
        return (rg.sin(x) * rg.exp(y)).sum() / rg.sqrt((x * x).sum())

    value, slopes = rg.value_and_grad(f, argnums=(0, 1))(x, y)
    assert ways == ["eager"]
    graph = rg.trace(rg.value_and_grad(f, argnums=(0, 1)), x, y)
    expected = graph(x, y)
    for a, b in zip([value, *slopes], rg.tree.flatten(expected)[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
        assert not a.requires_grad


def test_a_loop_makes_programs_once(ways):
    step = rg.value_and_grad(lambda x: ((x - 1) ** 2).sum())
    x = vector(5)
    expected = x.numpy()
    for i in range(8):
        if i == 3:
            before = rg.cache_stats()["misses"]
        value, slope = step(x)
        x = x - 0.1 * slope
        expected = expected - 0.2 * (expected - 1)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-12)
    assert value.item() > 0
    assert set(ways) == {"eager"}
    assert rg.cache_stats()["misses"] <= before + 1  # the last look


@pytest.mark.parametrize("make", [rg.zeros, rg.ones, lambda n: rg.full((n,), -0.5)])
def test_values_that_are_filled_in_need_no_nodes(ways, make):
    y = vector(4).requires_grad_()  # whose gradient goes through the gradient
    for known in (False, True):
        x = make(4)
        slope = rg.grad(lambda x: (rg.sin(x) * x * y**2).sum())(x)
        a, b = x.numpy().astype(np.float64), y.detach().numpy()
        np.testing.assert_allclose(
            slope.detach().numpy(), (np.sin(a) + a * np.cos(a)) * b**2, rtol=1e-6, atol=1e-12
        )
        slope.sum().backward()
        np.testing.assert_allclose(
            y.grad.numpy(), 2 * b * (np.sin(a) + a * np.cos(a)), rtol=1e-6, atol=1e-12
        )
        y.grad = None
        assert ways == ["eager"] * (1 + known)
    np.testing.assert_array_equal(make(4).numpy(), x.numpy())


def test_value_and_gradient_are_one_program():
    step = rg.value_and_grad(lambda x: (rg.tanh(x) * 1.25).sum())
    for _ in range(2):
        value, slope = step(vector(7))
        before = rg.cache_stats()
        slope.numpy()
        assert value.is_computed
        after = rg.cache_stats()
        assert after["hits"] + after["misses"] <= before["hits"] + before["misses"] + 1


def test_the_argument_reached_otherwise_is_a_constant(ways):
    x = vector(3)
    np.testing.assert_array_equal(rg.grad(lambda y: (x * y).sum())(x).numpy(), x.numpy())
    assert ways == ["eager"]


def test_what_wants_a_gradient_around_the_function_keeps_it(ways):
    w, x = rg.tensor([2.0, 3.0], requires_grad=True), rg.tensor([5.0, 7.0])
    slope = rg.grad(lambda x: (w * x * x).sum())(x)
    assert ways == ["eager"]
    assert w.grad is None
    assert slope.requires_grad
    slope.sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [10, 14]


def test_an_argument_that_wants_a_gradient_gets_it_through_the_gradient():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    rg.grad(lambda x: (x**3).sum())(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [12, 18]


def test_the_value_is_a_constant_for_what_comes_after():
    w = rg.tensor(2.0, requires_grad=True)
    value, slope = rg.value_and_grad(lambda x: x * x)(rg.tensor(3.0))
    (w * value * slope).backward()
    assert w.grad is not None
    assert w.grad.item() == 54


def test_unused_arguments_and_results_that_are_arguments(ways):
    assert rg.grad(lambda x, y: y * 2, argnums=(0, 1))(rg.tensor(1.0), rg.tensor(2.0)) == (0, 2)
    assert rg.grad(lambda x: x)(rg.tensor(3.0)).item() == 1
    assert not rg.value_and_grad(lambda x: x)(rg.tensor(3.0))[0].requires_grad


def test_a_function_that_looks_at_values():
    def f(x):
        return (x * x).sum() if x.sum() > 0 else (-x).sum()

    for _ in range(2):
        assert rg.grad(f)(rg.tensor([1.0, 2.0])).tolist() == [2, 4]
        assert rg.grad(f)(rg.tensor([-1.0, -2.0])).tolist() == [-1, -1]


@pytest.mark.slow
def test_a_long_recording_inside_the_function():
    def f(x):
        for _ in range(3000):
            x = x * 1.0001
        return x

    for _ in range(2):
        assert rg.grad(f)(rg.tensor(1.0, dtype=rg.float64)).item() == pytest.approx(1.0001**3000)


def test_arguments_that_wait_and_arrays_that_are_edited(ways):
    x = vector(3)
    waiting = x * 2
    np.testing.assert_allclose(rg.grad(lambda y: (y * y).sum())(waiting).numpy(), 4 * x.numpy())
    assert ways == ["eager"]
    shared = np.ones(2)
    y = rg.asarray(shared)
    assert rg.grad(lambda y: (y * y).sum())(y).tolist() == [2, 2]
    shared[:] = 3
    assert rg.grad(lambda y: (y * y).sum())(y).tolist() == [6, 6]


def test_without_gradients_around_and_with_a_tape():
    with rg.no_grad():
        slope = rg.grad(lambda x: (x * x).sum())(rg.tensor([1.0, 2.0]))
    assert slope.tolist() == [2, 4]
    tape = rg.Tape()
    x = tape.leaf(rg.tensor([1.0, 2.0]))
    assert rg.grad(lambda x: (x * x).sum())(x).tolist() == [2, 4]


def test_errors_are_those_of_before():
    with pytest.raises(rg.GradientError, match="from a scalar"):
        rg.grad(lambda x: x * 2)(rg.tensor([1.0, 2.0]))
    with pytest.raises(rg.GradientError, match="only floating values"):
        rg.grad(lambda x: x)(rg.tensor([1, 2]))
    with pytest.raises(rg.GradientError, match="plain number"):
        rg.grad(lambda x: 3.0)(rg.tensor([1.0]))


def test_second_derivatives_and_gradients_inside_of_gradients():
    second = rg.grad(lambda x: (rg.grad(lambda y: (y**3).sum())(x) * x).sum())
    np.testing.assert_allclose(second(rg.tensor([1.0, 2.0])).numpy(), [9, 36])
