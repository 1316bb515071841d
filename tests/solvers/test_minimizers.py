"""Minimisation against SciPy by itself, and against known minima."""

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg

METHODS = ["L-BFGS", "BFGS", "CG", "Newton-CG", "trust-ncg", "trust-krylov"]


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", METHODS)
def test_known_minimum(method):
    found = rg.minimize(rosenbrock, np.full(6, -0.5), method=method, tol=1e-9)
    np.testing.assert_allclose(found.x.numpy(), np.ones(6), atol=1e-5)
    assert found.fun == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(
        found.jac.numpy(), scipy.optimize.rosen_der(found.x.numpy()), atol=1e-7
    )
    assert found.success
    assert 0 < found.nit <= found.nfev


def test_trees_and_kept_leaves():
    target = np.array([[1.0, -2.0]], np.float32)

    def f(p):
        return ((p["w"] * p["n"] - target) ** 2).sum() + (p["b"] + 1) ** 2

    x0 = {"w": np.zeros((1, 2), np.float32), "b": 5.0, "n": np.array(2)}
    seen = []
    found = rg.minimize(f, x0, callback=lambda x: seen.append(x["b"].item()))
    np.testing.assert_allclose(found.x["w"].numpy(), target / 2, atol=1e-4)
    assert found.x["w"].dtype == rg.float32
    assert found.x["n"].item() == 2
    assert found.x["b"].item() == pytest.approx(-1, abs=1e-4)
    assert len(seen) == found.nit


def test_a_module_is_fitted():
    x = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
    y = 3 * x - 0.5
    model = rg.nn.Linear(1, 1, generator=rg.random.Generator(0))
    found = rg.minimize(lambda m: ((m(x) - y) ** 2).mean(), model)
    assert found.x.weight.item() == pytest.approx(3, abs=1e-3)
    assert found.x.bias.item() == pytest.approx(-0.5, abs=1e-3)


def test_limits_and_misuse():
    found = rg.minimize(rosenbrock, np.full(6, -0.5), max_steps=2)
    assert found.nit == 2
    assert not found.success
    with pytest.raises(rg.OptionError, match="L-BFGS"):
        rg.minimize(rosenbrock, np.zeros(3), method="magic")
    assert rg.minimize(rosenbrock, np.zeros(3), method="newton-cg").success
    with pytest.raises(rg.OptionError, match="max_steps"):
        rg.minimize(rosenbrock, np.zeros(3), max_steps=-1)
    with pytest.raises(rg.NonFiniteError, match="value at x0"):
        rg.minimize(lambda x: rg.log(x).sum(), np.zeros(3))
    with pytest.raises(rg.NonFiniteError, match="gradient in 3 elements"):
        rg.minimize(lambda x: rg.sqrt(x).sum(), np.zeros(3))
    with pytest.raises(rg.GradientError, match="scalar"):
        rg.minimize(lambda x: x * 2, np.zeros(3))
    with pytest.raises(rg.GradientError, match="floating"):
        rg.minimize(lambda x: x.sum(), np.arange(3))
    with pytest.raises(rg.DTypeError, match="complex"):
        rg.minimize(lambda x: rg.abs(x).sum(), np.ones(3) * 1j)
