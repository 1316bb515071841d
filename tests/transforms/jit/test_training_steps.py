"""`jit` of functions that differentiate by themselves, called with tensors that require gradients:
steps of training, compiled, through which a gradient can go nevertheless."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.grad_fn import grad_fn_of
from retrograd.transforms.jit.fast_call import DEEP


def cubes(w: Any, x: Any) -> Any:
    return (w**3 * x).sum()


def parameter(*values: float) -> rg.Tensor:
    return rg.tensor(values, dtype=rg.float64, requires_grad=True)


def descend(w: Any, x: Any) -> Any:
    value, slope = rg.value_and_grad(cubes)(w, x)
    return w - 0.01 * slope, value


def called_twice(f: Any, *args: Any) -> Any:
    """The result of a second call; both are compiled, by one program."""
    for k in (1, 2):
        result = f(*args)
        assert f.cache_stats()["calls"] == k
    assert f.cache_stats()["compilations"] == 1
    return result


def test_a_step_on_a_module_compiles_once_for_all_sizes():
    layer = rg.nn.Linear(3, 1)
    step = rg.jit(rg.value_and_grad(lambda m, x: (m(x) ** 2).mean()), shapes={"x": "N 3"})
    plain = rg.value_and_grad(lambda m, x: (m(x) ** 2).mean())
    for n in range(2, 9):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        (value, slopes), (value_too, slopes_too) = step(layer, x), plain(layer, rg.tensor(x))
        assert value.requires_grad
        assert value.item() == value_too.item()
        assert np.array_equal(slopes.weight.numpy(), slopes_too.weight.numpy())
    assert step.cache_stats() == {"calls": 7, "compilations": 1, "signatures": 1}


@pytest.mark.parametrize("shapes", [{}, {"w": "N", "x": "N"}], ids=["known", "named"])
def test_gradients_go_through_results(shapes):
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    slope = called_twice(rg.jit(rg.grad(cubes), shapes=shapes), w, x)
    assert slope.tolist() == [9, 60]  # 3 w^2 x
    (slope * slope).sum().backward()
    assert w.grad.tolist() == [2 * 9 * 18, 2 * 60 * 60]  # 2 (3 w^2 x) (6 w x)


def test_gradients_go_through_several_calls():
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    step = rg.jit(descend)
    called_twice(step, w, x)
    after = w
    for _ in range(3):
        after, value = step(after, x)
    assert step.cache_stats()["calls"] == 5
    (after.sum() + value).backward()

    def written_out(w):
        for _ in range(3):
            w, value = descend(w, x)
        return w.sum() + value

    assert np.array_equal(w.grad.numpy(), rg.grad(written_out)(w.detach()).numpy())


def test_transforms_and_tapes_see_the_operations():
    w, x = parameter(1.0, 2.0), rg.tensor([3.0, 5.0], dtype=rg.float64)
    slopes = rg.jit(rg.grad(cubes))
    called_twice(slopes, w, x)
    second = rg.grad(lambda w: slopes(w, x).sum())(w)
    assert second.tolist() == [18, 60]  # 6 w x
    y = slopes(w, x)
    assert rg.grad(lambda a: (a * y).sum())(rg.ones(2, dtype=rg.float64)).tolist() == [9, 60]
    with rg.Tape() as tape:
        z = slopes(w, x)
    assert len(tape) > 3
    assert z.tolist() == [9, 60]


def test_arguments_may_have_been_computed():
    w, x = parameter(0.5, 1.0), np.array([3.0, 5.0])
    slopes = rg.jit(rg.grad(cubes))
    called_twice(slopes, w, x)
    double = w * 2
    y = slopes(double, x)
    (y.sum() + double.sum()).backward()
    assert y.tolist() == [9, 60]
    assert w.grad.tolist() == [2 * 18 + 2, 2 * 60 + 2]


def test_transforms_of_every_kind_go_through():
    w, x = parameter(1.0, 2.0), rg.tensor([3.0, 5.0], dtype=rg.float64)
    slopes = rg.jit(rg.grad(cubes))
    called_twice(slopes, w, x)
    at = rg.tensor([1.0, 2.0], dtype=rg.float64)

    def second(w):
        return slopes(w, x)

    assert rg.jvp(second, (at,), (rg.ones_like(at),))[1].tolist() == [18, 60]
    assert rg.jacfwd(second)(w).tolist() == [[18, 0], [0, 60]]
    assert rg.jacrev(second)(at).tolist() == [[18, 0], [0, 60]]
    assert rg.hessian(lambda w: second(w).sum())(at).tolist() == [[18, 0], [0, 30]]  # 6 x
    assert rg.vmap(second)(rg.stack([at, at + 1])).tolist() == [[9, 60], [36, 135]]
    assert rg.vmap(second)(rg.stack([w, w + 1])).tolist() == [[9, 60], [36, 135]]


def test_what_depends_on_no_parameter_requires_no_gradient():
    w, x = parameter(1.0), rg.tensor([3.0], dtype=rg.float64)

    def f(w, x):
        value, slope = rg.value_and_grad(cubes)(w, x)
        return slope, x * 2, value > 1, rg.stop_gradient(value), 7

    slope, double, large, stopped, seven = called_twice(rg.jit(f), w, x)
    assert [t.requires_grad for t in (slope, double, large, stopped)] == [True, *[False] * 3]
    assert seven == 7
    assert double.tolist() == [6]


def test_a_parameter_that_is_closed_over():
    w = parameter(1.0, 2.0)
    slopes = rg.jit(lambda x: rg.grad(lambda x: (w * x**2).sum())(x))
    y = called_twice(slopes, np.array([3.0, 5.0]))
    assert y.tolist() == [6, 20]
    y.sum().backward()
    assert w.grad.tolist() == [6, 10]


def test_an_argument_edited_afterwards_changes_nothing():
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    slope = called_twice(rg.jit(rg.grad(cubes)), w, x)
    x[:] = 0
    slope.sum().backward()
    assert w.grad.tolist() == [18, 60]


def test_an_array_edited_afterwards():
    given = np.array([3.0, 5.0])
    found = []
    for x in (rg.asarray(given), rg.tensor(given)):
        w = parameter(1.0, 2.0)
        given[:] = 3.0, 5.0
        slope = called_twice(rg.jit(rg.grad(cubes)), w, x)
        given[:] = 0
        slope.sum().backward()
        found.append(w.grad.tolist())
    assert found[0] == found[1] != [0, 0]


def test_a_parameter_replaced_afterwards_is_reported():
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    slope = called_twice(rg.jit(rg.grad(cubes)), w, x)
    w.grad = rg.ones(2, dtype=rg.float64)
    rg.optim.SGD([w], lr=0.5).step()
    with pytest.raises(rg.GradientError, match="optimizer's step"):
        slope.sum().backward()


def test_arguments_that_are_donated_are_not_remembered():
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    step = rg.jit(descend, donate="w")
    called_twice(step, w, x)
    after, value = step(w, x)
    assert not after.requires_grad
    assert not value.requires_grad
    assert w.tolist() == [1, 2]  # it wants a gradient: it stays
    again, _ = step(after, x)
    with pytest.raises(rg.DonatedError):
        after.tolist()
    assert again.shape == (2,)


@pytest.mark.slow
def test_what_calls_were_given_goes_with_their_results():
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    slopes = rg.jit(rg.grad(cubes))
    y = called_twice(slopes, w, x)
    z = slopes(y, x)
    kept = weakref.ref(grad_fn_of(y.leaf_or_node).segment)
    del y
    gc.collect()
    assert kept() is not None
    del z
    gc.collect()
    assert kept() is None


def test_a_loop_that_keeps_all_it_was_given_is_warned_of_once():
    step = rg.jit(descend)
    w, x = parameter(0.1), np.array([0.1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2 * DEEP):
            w, _ = step(w, x)
    assert [c.category for c in caught] == [rg.HistoryWarning]
    assert "donate" in str(caught[0].message)
    assert caught[0].filename == __file__
    w.backward(rg.ones(1, dtype=rg.float64))


def test_modules_that_come_out_know_their_past():
    layer = rg.nn.Linear(2, 1)

    @rg.jit
    def step(m, x):
        slopes = rg.grad(lambda m: (m(x) ** 2).mean())(m)
        return rg.tree.map(lambda p, g: p - 0.1 * g, m, slopes)

    x, m = rg.ones((3, 2)), layer
    for _ in range(4):
        m = step(m, x)
    assert step.cache_stats()["calls"] == 4
    assert grad_fn_of(m.weight.leaf_or_node).segment.depth == 4
    m.weight.sum().backward()
    assert layer.weight.grad.shape == (1, 2)


def test_a_function_that_does_not_differentiate_is_recorded():
    w = parameter(1.0, 2.0)
    f = rg.jit(lambda w: (w * w).sum())
    for _ in range(3):
        f(w).backward()
    assert f.cache_stats()["calls"] == 0
    assert w.grad.tolist() == [6, 12]


def test_the_first_call_finds_out_what_a_function_does():
    calls = []

    def step(w, x):
        calls.append(w)
        return rg.grad(cubes)(w, x)

    f = rg.jit(step)
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    for _ in range(3):
        assert f(w, x).tolist() == [9, 60]
    assert f.cache_stats() == {"calls": 3, "compilations": 1, "signatures": 1}
    assert len(calls) == 1


def test_a_function_that_looks_at_values_is_recorded():
    f = rg.jit(lambda w: w * w.sum().item())
    w = parameter(1.0, 2.0)
    for _ in range(2):
        assert f(w).tolist() == [3, 6]
    assert f.cache_stats()["calls"] == 0


def test_what_a_function_cuts_off_requires_no_gradient():
    def step(w, x):
        slope = rg.grad(cubes)(w, x)
        with rg.no_grad():
            after = w - 0.01 * slope
        return after, slope, w.detach() * 2, w * 2

    f = rg.jit(step)
    w, x = parameter(1.0, 2.0), np.array([3.0, 5.0])
    for n in (2, 3, 4):
        w, x = parameter(*range(1, n + 1)), np.ones(n)
        assert [y.requires_grad for y in f(w, x)] == [False, True, False, True]
    assert f.cache_stats() == {"calls": 3, "compilations": 2, "signatures": 2}
