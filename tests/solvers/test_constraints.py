"""Bounds and constraints on trees: SciPy's answers on the vector by hand, with its differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg

CONSTRAINED = ["SLSQP", "trust-constr", "COBYLA", "COBYQA"]
BOUNDED = ["L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead", "Powell", "COBYQA"]


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", BOUNDED)
def test_bounds_of_an_array(method: str) -> None:
    def f(x: Any) -> Any:
        return (x[0] - 1) ** 2 + 3 * (x[1] - 1) ** 2 + x[0] * x[1]

    bounds = [(-1.0, 0.3), (None, 2.0)]
    expected = scipy.optimize.minimize(f, [-0.5, 0.0], bounds=bounds, tol=1e-12)
    found = rg.minimize(f, np.array([-0.5, 0.0]), method=method, bounds=bounds, tol=1e-10)
    np.testing.assert_allclose(found.x.numpy(), expected.x, atol=2e-4)


def test_bounds_of_trees() -> None:
    def f(p: Any) -> Any:
        return ((p["a"] - 3.0) ** 2).sum() + (p["b"][0] + 2.0) ** 2 * p["n"]

    x0 = {"a": np.zeros(2), "b": [0.0], "n": np.array(2)}
    for bounds, a, b in (
        (None, [3.0, 3.0], -2.0),
        ((-1.0, 1.0), [1.0, 1.0], -1.0),
        ({"a": (None, np.array([2.0, 9.0])), "b": None, "n": None}, [2.0, 3.0], -2.0),
        ({"a": (0, 1), "b": [(-0.5, None)], "n": None}, [1.0, 1.0], -0.5),
    ):
        found = rg.minimize(f, x0, bounds=bounds, tol=1e-12).x
        np.testing.assert_allclose(found["a"].numpy(), a, atol=1e-5)
        assert found["b"][0].item() == pytest.approx(b, abs=1e-3)
    both = rg.minimize(
        lambda p: (p[0] - 1) ** 2 + p[1] ** 2, (2.0, 5.0), bounds=((2, 9), (3, None))
    )
    assert [round(x.item(), 4) for x in both.x] == [2.0, 3.0]
    own = scipy.optimize.Bounds([0, 0], [1, 9])
    assert rg.minimize(lambda x: -x.sum(), np.zeros(2), bounds=own).x.tolist() == [1.0, 9.0]


@pytest.mark.parametrize("method", CONSTRAINED)
@pytest.mark.parametrize("form", ["dict", "object"])
def test_constraints_on_trees(method: str, form: str) -> None:
    """The point of a circle and a half plane that is furthest along a direction."""

    def f(p: Any) -> Any:
        return p["x"] + 2 * p["y"] + p["x"] ** 2 / 8

    def circle(p: Any) -> Any:
        return [1.0 - p["x"] ** 2 - p["y"] ** 2]

    def plane(p: Any) -> Any:
        return p["y"] + 0.5

    x0 = {"x": np.array(0.1), "y": np.array(0.2)}
    if form == "dict":
        given: Any = [{"type": "ineq", "fun": circle}, {"type": "ineq", "fun": plane}]
    else:
        make = scipy.optimize.NonlinearConstraint
        given = [make(circle, 0, np.inf), make(plane, 0, np.inf)]
    found = rg.minimize(f, x0, method=method, constraints=given, tol=1e-9)
    assert found.x["x"].item() == pytest.approx(-np.sqrt(0.75), abs=2e-3)
    assert found.x["y"].item() == pytest.approx(-0.5, abs=1e-3)


def test_equations_and_linear_constraints() -> None:
    sphere = {"type": "eq", "fun": lambda x: (x * x).sum() - 1}
    found = rg.minimize(
        lambda x: x.sum(), np.array([1.0, -0.5, 0.2]), constraints=sphere, tol=1e-12
    )
    np.testing.assert_allclose(found.x.numpy(), -np.ones(3) / np.sqrt(3), atol=1e-6)
    line = scipy.optimize.LinearConstraint([[1.0, 1.0]], 1, 1)
    found = rg.minimize(lambda x: (x * x).sum(), np.zeros(2), constraints=line)
    np.testing.assert_allclose(found.x.numpy(), [0.5, 0.5], atol=1e-6)
    exact = scipy.optimize.NonlinearConstraint(lambda x: x**3, 1, np.inf)
    found = rg.minimize(
        lambda x: (x * x).sum(), np.full(2, 2.0), method="trust-constr", constraints=exact
    )
    np.testing.assert_allclose(found.x.numpy(), [1.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("method", ["trust-exact", "dogleg"])
def test_the_whole_hessian(method: str) -> None:
    def f(x: Any) -> Any:
        return rg.cosh(x - rg.arange(4.0)).sum() + (x.sum() - 6) ** 2  # dogleg: convex

    found = rg.minimize(f, np.zeros(4), method=method, tol=1e-9)
    np.testing.assert_allclose(found.x.numpy(), np.arange(4.0), atol=1e-6)


def test_misuse() -> None:
    x0 = np.zeros(2)
    with pytest.raises(rg.OptionError, match="BFGS takes no bounds; L-BFGS"):
        rg.minimize(rosenbrock, x0, method="BFGS", bounds=(0, 1))
    with pytest.raises(rg.OptionError, match="CG takes no constraints; SLSQP"):
        rg.minimize(rosenbrock, x0, method="CG", constraints={"type": "eq", "fun": rosenbrock})
    with pytest.raises(rg.OptionError, match="did you mean 'SLSQP'"):
        rg.minimize(rosenbrock, x0, method="SLSQB")
    with pytest.raises(rg.OptionError, match="a constraint is"):
        rg.minimize(rosenbrock, x0, constraints={"type": "equal", "fun": rosenbrock})
    with pytest.raises(rg.ShapeError, match="3 bounds for 2 elements"):
        rg.minimize(rosenbrock, x0, bounds=[(0, 1)] * 3)
    with pytest.raises(rg.ShapeError, match=r"a bound of the shape \(3,\) does not broadcast"):
        rg.minimize(rosenbrock, x0, bounds=(np.zeros(3), None))
    with pytest.raises(rg.OptionError, match="or a tree like the start"):
        rg.minimize(lambda p: p["a"].sum(), {"a": x0}, bounds={"b": (0, 1)})
    with pytest.raises(rg.OptionError, match="bounds are pairs"):
        rg.minimize(rosenbrock, x0, bounds=3)
