"""A function of a tree as SciPy takes one."""

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_the_pieces_scipy_takes():
    o = rg.solvers.objective(rosenbrock, np.zeros(4))
    v, p = np.array([0.3, -0.2, 0.5, 1.0]), np.array([1.0, 2.0, -1.0, 0.5])
    assert o.fun(v) == pytest.approx(scipy.optimize.rosen(v))
    np.testing.assert_allclose(o.jac(v), scipy.optimize.rosen_der(v), rtol=1e-12)
    np.testing.assert_allclose(o.hessp(v, p), scipy.optimize.rosen_hess_prod(v, p), rtol=1e-12)
    found = scipy.optimize.minimize(o.fun_and_jac, o.x0, jac=True, method="SLSQP")
    np.testing.assert_allclose(o.unpack(found.x).numpy(), np.ones(4), atol=1e-3)
