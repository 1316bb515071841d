"""The standard problems: values against NumPy, gradients against differences and closed forms."""

import numpy as np
import pytest

import retrograd as rg
from examples.problems import (
    PROBLEMS,
    bundle,
    cofactors,
    kmeans,
    least_squares,
    log_sum_exp,
    nested,
)

SMALL = {p.name: p for p in PROBLEMS}


@pytest.mark.parametrize("name", list(SMALL))
@pytest.mark.sample(4)
def test_value_and_gradient(name):
    problem = SMALL[name]
    args = problem.make(problem.sizes[0], np.random.default_rng(1))
    expected = problem.reference(*args)
    value, gradients = rg.value_and_grad(problem.f, argnums=problem.wrt)(*args)
    np.testing.assert_allclose(value.item(), expected, rtol=1e-7)
    compiled, again = rg.jit(rg.value_and_grad(problem.f, argnums=problem.wrt))(*args)
    np.testing.assert_allclose(compiled.item(), expected, rtol=1e-7)
    for i, g, h in zip(problem.wrt, gradients, again, strict=True):
        np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-9, atol=1e-12)
        found = differences(problem.reference, args, i)
        np.testing.assert_allclose(g.numpy(), found, rtol=1e-5, atol=1e-6 * np.abs(found).max())


def differences(f, args, i):
    """The gradient of a NumPy function by central differences of order 4."""
    x = args[i].astype(np.float64)
    found, h = np.zeros_like(x), 1e-4
    for at in np.ndindex(x.shape):
        values = []
        for k in (1, -1, 2, -2):
            moved = x.copy()
            moved[at] += k * h
            values.append(f(*args[:i], moved, *args[i + 1 :]))
        found[at] = (8 * (values[0] - values[1]) - (values[2] - values[3])) / (12 * h)
    return found


EXACT = {
    "log-sum-exp": log_sum_exp,
    "least squares": least_squares,
    "determinant by cofactors": cofactors,
    "saddle point": nested,
}


@pytest.mark.parametrize("name", list(EXACT))
@pytest.mark.parametrize("which", [0, 1])
def test_gradients_in_closed_form(name, which):
    problem = SMALL[name]
    args = problem.make(problem.sizes[which], np.random.default_rng(2))
    (found,) = rg.grad(problem.f, argnums=problem.wrt)(*args)
    expected = EXACT[name].exact_gradient(*args)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_second_derivatives_of_k_means():
    args = kmeans.make((200, 5, 3), np.random.default_rng(3))
    found = kmeans.hessian_diagonal(*args).numpy()
    np.testing.assert_allclose(found, kmeans.exact_hessian_diagonal(*args), rtol=1e-12)
    whole = rg.hessian(lambda c: kmeans.f(c, args[1]))(args[0]).numpy()
    np.testing.assert_allclose(np.einsum("ijij->ij", whole), found, rtol=1e-12)


def test_the_saddle_point_is_found():
    _, a, b = nested.make(4, np.random.default_rng(4))
    found = nested.saddle(a, b)
    assert found.success
    np.testing.assert_allclose(found.x.numpy(), nested.exact_saddle(a, b), atol=1e-7)


@pytest.mark.slow
def test_the_sparse_jacobian_of_bundle_adjustment():
    """Each residual depends on one camera, one point and one weight."""
    cameras, points, weights, which, features = bundle.make((4, 12, 40), np.random.default_rng(5))
    sizes = [a.size for a in (cameras, points, weights)]

    def f(v):
        c, p, w = v[: sizes[0]], v[sizes[0] : sizes[0] + sizes[1]], v[sizes[0] + sizes[1] :]
        shaped = c.reshape(cameras.shape), p.reshape(points.shape), w
        return bundle.residuals(*shaped, which, features)

    v = np.concatenate([a.ravel() for a in (cameras, points, weights)])
    found = rg.jacobian(f, sparse=True)(v)
    dense = rg.jacobian(f)(v).numpy()
    assert found.shape == dense.shape == (3 * 40, sum(sizes))
    assert found.nnz <= 2 * 40 * (11 + 3 + 1) + 40
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-9, atol=1e-12)
