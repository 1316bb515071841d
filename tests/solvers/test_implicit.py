"""Roots and fixed points against SciPy, closed forms and finite differences."""

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg

A = np.array([[3.0, 1.0], [-0.5, 2.0]])


def cube_root(a):
    return rg.root(lambda x: x**3 - a, 1.0)


def kepler(mean, e):
    """Kepler's equation, for the eccentric anomaly."""
    return rg.root(lambda x: x - e * rg.sin(x) - mean, mean)


def test_roots_against_scipy():
    def f(x):
        return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]]

    found = rg.root(lambda x: rg.stack(f(x)), np.zeros(2))
    expected = scipy.optimize.root(f, np.zeros(2), tol=1e-12).x
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


def test_far_starts_need_shorter_steps():
    found = rg.root(rg.atan, np.array(3.0))  # full steps run away from 1.39 on
    assert abs(found.item()) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True])
def test_derivatives_of_every_order(jit):
    a = np.array(8.0)
    f, expected = cube_root, [2.0, 1 / 12, -1 / 144, 5 / 3456]
    for k, value in enumerate(expected):
        g = rg.jit(f) if jit else f
        assert g(a).item() == pytest.approx(value, rel=1e-9), k
        f = rg.grad(f)
    assert rg.jacfwd(cube_root)(a).item() == pytest.approx(1 / 12, rel=1e-9)


@pytest.mark.slow
def test_gradients_in_several_arguments():
    assert rg.gradcheck(kepler, np.array(0.7), np.array(0.4), order=2, rtol=1e-5)
    w = np.array([[0.3, -0.2], [0.1, 0.4]])

    def equilibrium(w, b):
        return rg.fixed_point(lambda x: rg.tanh(w @ x + b), np.zeros(2))

    assert rg.gradcheck(equilibrium, w, np.array([0.5, -1.0]), order=2, rtol=1e-5)


def test_fixed_points():
    x = rg.fixed_point(rg.cos, np.array(1.0))
    assert x.item() == pytest.approx(0.7390851332151607, abs=1e-9)
    x = rg.fixed_point(lambda p: {"a": p["b"] / 2 + 1, "b": p["a"] / 2}, {"a": 0.0, "b": 0.0})
    assert x["a"].item() == pytest.approx(4 / 3, rel=1e-4)
    assert x["b"].dtype == rg.float32


def test_eager_tensors_get_gradients():
    t = rg.tensor(np.array([2.0, 3.0]), requires_grad=True)
    x = rg.root(
        lambda x: {"u": x["u"] * t[0] - x["v"], "v": x["v"] ** 3 - t[1]}, {"u": 1, "v": 1.0}
    )
    (x["u"] + x["v"]).backward()
    v = 3 ** (1 / 3)
    np.testing.assert_allclose(t.grad.numpy(), [-v / 4, 1.5 * v / 9], rtol=1e-9)


def test_samples_take_the_steps_they_need():
    a = np.array([1.0, 8.0, 27.0, 1e6])
    np.testing.assert_allclose(rg.vmap(cube_root)(a).numpy(), np.cbrt(a), rtol=1e-9)
    np.testing.assert_allclose(
        rg.vmap(rg.grad(cube_root))(a).numpy(), np.cbrt(a) / a / 3, rtol=1e-8
    )


def test_a_minimum_is_differentiated_as_a_root_of_the_gradient():
    """Ridge regression's solution in its penalty: dx/dp = -(A'A + p)^-1 x."""
    b = np.array([1.0, -2.0])

    def loss(x, p):
        r = A @ x - b
        return 0.5 * (r * r).sum() + 0.5 * p * (x * x).sum()

    solution = lambda p: rg.root(lambda x: rg.grad(loss)(x, p), np.zeros(2))
    p = np.array(0.3)
    matrix = A.T @ A + 0.3 * np.eye(2)
    x = np.linalg.solve(matrix, A.T @ b)
    np.testing.assert_allclose(solution(p).numpy(), x, rtol=1e-9)
    np.testing.assert_allclose(
        rg.jacrev(solution)(p).numpy(), -np.linalg.solve(matrix, x), rtol=1e-8
    )


def test_what_has_no_solution():
    with pytest.raises(rg.LoopLimitError):
        rg.root(lambda x: x * x + 1, np.array(0.5)).item()
    with pytest.raises(rg.LinAlgError):
        rg.root(lambda x: x * 0 + 1, np.array(0.5)).item()
    with pytest.raises(rg.LoopLimitError):
        rg.fixed_point(lambda x: -2 * x + 1, np.array(0.5), max_steps=20).item()
    with pytest.raises(rg.LoopLimitError):
        rg.fixed_point(lambda x: x * np.nan, np.array(0.5), max_steps=20).item()
    with pytest.raises(rg.LoopLimitError):  # infinity is as near to infinity as can be
        rg.fixed_point(lambda x: x * 2, np.array(0.5, np.float32)).item()
    with pytest.raises(rg.LoopLimitError):
        rg.root(lambda x: x * np.inf, np.array(0.5)).item()


def test_misuse():
    with pytest.raises(rg.ShapeError, match="2 unknowns and returns 1"):
        rg.root(lambda x: x.sum(), np.zeros(2))
    with pytest.raises(rg.OptionError, match="tol"):
        rg.root(lambda x: x, np.zeros(2), tol=0)
    with pytest.raises(rg.DTypeError, match="float64 for float32"):
        rg.root(lambda x: x - rg.ones(2, dtype=rg.float64), rg.zeros(2))
    with pytest.raises(rg.DTypeError, match="floating"):
        rg.fixed_point(lambda x: x, rg.arange(2))
