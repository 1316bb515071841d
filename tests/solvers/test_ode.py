"""Differential equations against closed forms, SciPy, and differences of themselves."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrograd as rg

TS = np.linspace(0, 5, 11)


def damped(t, y):
    return rg.stack([y[1], -y[0] - 0.1 * y[1] + rg.sin(t)])


def test_against_scipy():
    found = rg.odeint(damped, np.array([1.0, 0.0]), TS, rtol=1e-9, atol=1e-11)
    expected = solve_ivp(
        lambda t, y: [y[1], -y[0] - 0.1 * y[1] + np.sin(t)],
        (0, 5),
        [1, 0],
        t_eval=TS,
        rtol=1e-11,
        atol=1e-13,
    ).y.T
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-8)
    assert found[0].tolist() == [1, 0]


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_tolerances_are_kept_to(rtol):
    y = rg.odeint(lambda t, y: -2.0 * t * y, rg.tensor(1.0, rg.float64), TS[:6], rtol=rtol)
    error = np.abs(y.numpy() - np.exp(-(TS[:6] ** 2)))
    assert error.max() < 20 * rtol


@pytest.mark.slow
def test_times_that_fall_or_stand_still():
    y = rg.odeint(lambda t, y: y, rg.tensor(1.0, rg.float64), [1.0, 0.5, 0.5, -1.0])
    np.testing.assert_allclose(y.numpy(), np.exp([0, -0.5, -0.5, -2]), rtol=1e-6)
    assert rg.odeint(lambda t, y: y, rg.tensor(1.0), [3.0]).tolist() == [1]
    assert rg.odeint(lambda t, y: y, rg.tensor(2.0), [3.0, 3.0]).tolist() == [2, 2]


def test_trees_and_dtypes():
    y0 = {"q": rg.tensor([1.0, 2.0]), "p": rg.tensor(0.0, rg.float64)}
    y = rg.odeint(lambda t, y: {"q": -y["q"], "p": rg.sum(y["q"])}, y0, [0.0, 1.0])
    assert y["q"].dtype == rg.float32
    assert y["p"].dtype == rg.float64
    np.testing.assert_allclose(y["q"].numpy()[1], np.exp(-1) * np.array([1, 2]), rtol=1e-5)
    np.testing.assert_allclose(y["p"].numpy()[1], 3 * (1 - np.exp(-1)), rtol=1e-5)


def decay(a, y0, end):
    ts = rg.stack([end * 0, end * 0.5, end])
    return rg.odeint(lambda t, y: -a * y, y0, ts, rtol=1e-9, atol=1e-12)[1:].sum()


@pytest.mark.slow
def test_gradients_in_everything():
    args = [np.array(x) for x in (0.7, 1.5, 2.0)]
    found = [g.item() for g in rg.grad(decay, argnums=(0, 1, 2))(*args)]
    a, y0, end = args
    half, whole = np.exp(-a * end / 2), np.exp(-a * end)
    expected = [
        -y0 * end * (half / 2 + whole),
        half + whole,
        -a * y0 * (half / 2 + whole),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.slow
def test_second_derivatives_and_forward_mode():
    f = lambda a: decay(a, np.array(1.5), np.array(2.0))
    a = np.array(0.7)
    expected = 1.5 * (np.exp(-0.7) + 4 * np.exp(-1.4))
    assert rg.hessian(f)(a).item() == pytest.approx(expected, rel=1e-6)
    assert rg.jacfwd(f)(a).item() == pytest.approx(rg.grad(f)(a).item(), rel=1e-12)
    assert rg.jit(rg.grad(f))(a).item() == pytest.approx(rg.grad(f)(a).item(), rel=1e-12)


@pytest.mark.slow
def test_modes_agree_where_the_solution_is_inexact():
    """Both are derivatives of the steps that were made."""

    def f(w):
        y = rg.odeint(lambda t, y: rg.sin(w * y), np.array(1.0), [0.0, 2.0], rtol=1e-2, atol=1e-2)
        return y[-1]

    w = np.array(0.9)
    assert rg.jacfwd(f)(w).item() == pytest.approx(rg.grad(f)(w).item(), rel=1e-12)
    assert rg.jacfwd(rg.jacfwd(f))(w).item() == pytest.approx(rg.hessian(f)(w).item(), rel=1e-10)


def hunt(p, y0, ts, gradient):
    """Predators and prey, in the course of a year."""

    def slope(t, y):
        return rg.stack([p[0] * y[0] - p[1] * y[0] * y[1], y[0] * y[1] - p[2] * y[1] * rg.cos(t)])

    y = rg.odeint(slope, y0, ts, rtol=1e-9, atol=1e-11, gradient=gradient)
    return (y * y).sum()


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
@pytest.mark.sample(1)
def test_gradients_against_differences(gradient):
    args = np.array([1.5, 1.0, 3.0]), np.array([1.0, 0.5]), np.array([0.0, 0.5, 1.2, 2.0])
    found = rg.grad(hunt, argnums=(0, 1, 2))(*args, gradient)
    expected = rg.numerical_gradient(lambda p, y0, ts: hunt(p, y0, ts, "discrete"), *args)
    for g, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.numpy(), e.numpy(), rtol=1e-7)


@pytest.mark.slow
def test_the_adjoint_of_trees_of_samples_and_of_nothing():
    def solve(y, gradient="adjoint"):
        field = lambda t, s: {"a": -s["a"], "b": s["a"].sum() * t}
        found = rg.odeint(field, {"a": y, "b": 0.0 * y[0]}, [0.0, 1.0], gradient=gradient)
        return found["b"][-1] + found["a"][-1, 0]

    y = rg.tensor(np.array([[1.0, 2.0], [3.0, -1.0]]))
    found = rg.vmap(rg.grad(solve))(y).numpy()
    np.testing.assert_allclose(found[0], rg.grad(solve)(y[0], "discrete").numpy(), rtol=1e-5)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    still = rg.grad(lambda y: rg.odeint(lambda t, v: -v, y, [1.0], gradient="adjoint").sum())
    assert still(np.array(2.0)).item() == 1


@pytest.mark.slow
def test_samples_have_steps_of_their_own():
    rates = np.array([0.1, 1.0, 30.0])
    solve = lambda a: rg.odeint(lambda t, y: -a * y, np.array(1.0), [0.0, 1.0])[-1]
    np.testing.assert_allclose(rg.vmap(solve)(rates).numpy(), np.exp(-rates), rtol=1e-4, atol=1e-8)
    alone = [rg.grad(solve)(a).item() for a in rates]
    np.testing.assert_allclose(rg.vmap(rg.grad(solve))(rates).numpy(), alone, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_what_cannot_be_solved():
    with pytest.raises(rg.LoopLimitError, match="50"):
        rg.odeint(lambda t, y: -1e6 * y, np.array(1.0), [0.0, 1.0], max_steps=50).numpy()
    with pytest.raises(rg.LoopLimitError):
        rg.odeint(lambda t, y: y / 0.0 - y / 0.0, np.array(1.0), [0.0, 1.0], max_steps=50).numpy()


def test_misuse():
    with pytest.raises(rg.ShapeError, match="a row of"):
        rg.odeint(damped, np.ones(2), 3.0)
    with pytest.raises(rg.ShapeError, match="like those of y0"):
        rg.odeint(lambda t, y: y[:1], np.ones(2), TS)
    with pytest.raises(rg.ShapeError, match="tree like y0"):
        rg.odeint(lambda t, y: (y, y), np.ones(2), TS)
    with pytest.raises(rg.OptionError, match="adjoint"):
        rg.odeint(damped, np.ones(2), TS, gradient="exact")
    with pytest.raises(rg.OptionError, match="tolerances"):
        rg.odeint(damped, np.ones(2), TS, rtol=-1)
    with pytest.raises(rg.DTypeError, match="floating"):
        rg.odeint(lambda t, y: y, np.arange(3), TS)
    with pytest.raises(rg.OptionError, match="number 2 of them turns back"):
        rg.odeint(damped, np.ones(2), [0.0, 2.0, 1.0])


def test_nothing_to_solve():
    assert rg.odeint(lambda t, y: -y, np.zeros((0, 3)), [0.0, 1.0]).shape == (2, 0, 3)


def test_a_function_of_y_and_t_is_not_taken_for_one_of_t_and_y() -> None:
    """The order of SciPy's `odeint`, which would integrate another equation."""
    ts = np.linspace(0.0, 1.0, 4)
    y0 = rg.tensor(1.0, rg.float64)

    def late(y: Any, t: Any) -> Any:
        return -2.0 * y + 0 * t

    with pytest.raises(rg.OptionError, match=r"tfirst=False for a function f\(y, t\)"):
        rg.odeint(late, y0, ts)
    found = rg.odeint(late, y0, ts, tfirst=False)
    np.testing.assert_allclose(found.numpy(), np.exp(-2 * ts), rtol=1e-5)
    # dy/dt = -2 t + 0 y, which is what the names say is not meant.
    as_it_is = rg.odeint(late, y0, ts, tfirst=True)
    np.testing.assert_allclose(as_it_is.numpy(), 1 - ts**2, rtol=1e-5)
    plain = rg.odeint(lambda a, b: -2.0 * b, y0, ts)
    np.testing.assert_allclose(plain.numpy(), np.exp(-2 * ts), rtol=1e-5)
    rg.odeint(rg.multiply, y0, ts)  # names that say nothing
