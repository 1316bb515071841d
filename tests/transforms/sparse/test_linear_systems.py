"""Patterns of solutions: of linear systems, of equations, and of gradients through loops."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.transforms.sparse.linear_systems import inverse

RNG = np.random.default_rng(0)
N = 6
ONES = np.ones(N)
BLOCKS = np.array([[2.0, 1.0], [0.5, 3.0]])


def chain(v):
    """Each element, and the one before it."""
    return rg.concat([v[:1], v[1:] - 0.5 * rg.sin(v[:-1])])


def halved(x):
    """Elements by themselves, for as long as one of them needs it."""
    step = lambda s: (s[0] + 1, rg.sin(s[1]) * 0.8)
    return rg.while_loop(lambda s: (s[1] > 0.3).any(), step, (0, x))[1]


def one_halved(v):
    return rg.while_loop(lambda s: s > 0.3, lambda s: rg.sin(s) * 0.8, v)


def counted(x):
    """A number of steps that is not known."""
    return rg.fori_loop(rg.tensor(0), rg.tensor(3), lambda i, s: rg.sin(s) * x, x)


# Functions of a vector of six positive elements, and how many elements are stored.
JACOBIANS = {
    "a diagonal": (lambda x: rg.linalg.solve(rg.diag(x), ONES), N),
    "a triangle": (lambda x: rg.linalg.solve(np.eye(N) * 3 + np.eye(N, k=1), x), 21),
    "a triangle, transposed": (
        lambda x: rg.linalg.solve((np.eye(N) * 3 + np.eye(N, k=1)).T * x[:, None], x),
        21,
    ),
    "a triangular system": (
        lambda x: rg.linalg.solve_triangular(np.tril(np.ones((N, N))) + np.eye(N), x, lower=True),
        21,
    ),
    "rows in another order": (
        lambda x: rg.linalg.solve(np.eye(N)[::-1] * 2, x) + rg.linalg.solve(np.eye(N), x[::-1]),
        N,
    ),
    "inverse of a diagonal": (lambda x: rg.linalg.inv(rg.diag(x)).sum(0), N),
    "root of numbers": (lambda x: rg.root(lambda v: v * v - x, ONES), N),
    "root of a chain": (lambda x: rg.root(lambda v: chain(v) * (1 + v * v) - x, ONES), 21),
    "root of blocks": (
        lambda x: rg.root(lambda v: (v.reshape(3, 2) @ BLOCKS).reshape(-1) + v**3 - x, ONES),
        12,
    ),
    "root of what is coupled": (
        lambda x: rg.root(lambda v: v**3 + 3 * v - rg.roll(v, 1) - x, ONES),
        36,
    ),
    "fixed points of numbers": (lambda x: rg.fixed_point(lambda v: 0.5 * rg.cos(v * x), ONES), N),
    "fixed point of a chain": (
        lambda x: rg.fixed_point(lambda v: 0.2 * rg.concat([x[:1], chain(v)[1:] * x[1:]]), ONES),
        21,
    ),
    "an equation for each": (
        lambda x: rg.odeint(lambda t, y: -y * y, x, [0.0, 0.5, 1.0])[-1],
        N,
    ),
    "gradient through a loop": (rg.grad(lambda x: (halved(x) ** 2).sum()), N),
    "gradients of a batch of loops": (rg.vmap(rg.grad(one_halved)), N),
    "gradient of a batch of loops": (rg.grad(lambda x: rg.vmap(one_halved)(x).sum()), N),
    "gradient through a counted loop": (rg.grad(lambda x: counted(x).sum()), N),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.sample(5)
def test_patterns_are_no_larger_than_they_must_be(name, backend):
    f, count = JACOBIANS[name]
    x = RNG.uniform(0.5, 1.5, size=N)
    with rg.backend(backend):
        found = rg.jacobian(f, sparse=True)(x)  # type: ignore[arg-type]
        expected = rg.jacobian(f)(x).numpy()  # type: ignore[arg-type]
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-7, atol=1e-9)
    assert found.nnz == count


@pytest.mark.slow
@pytest.mark.parametrize("f", [halved, counted, lambda x: rg.root(lambda v: v * v - x, ONES)])
def test_hessians(f):
    x = RNG.uniform(0.5, 1.5, size=N)
    total = lambda x: (f(x) ** 2).sum()
    found = rg.hessian(total, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), rg.hessian(total)(x).numpy(), rtol=1e-7, atol=1e-9)
    assert found.nnz == N


@pytest.mark.slow
def test_a_loop_that_keeps_few_states_has_a_right_hessian():
    step = lambda s: (s[0] + 1, rg.sin(s[1]) * 0.8)
    end = lambda s: (s[1] > 0.3).any()
    total = lambda x: rg.while_loop(end, step, (0, x), checkpoint=2)[1].sum()
    x = RNG.uniform(0.5, 1.5, size=N)
    expected = rg.hessian(total)(x).numpy()
    found = rg.hessian(total, sparse=True)(x).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(7)
def test_where_inverses_are_zero(seed):
    """Against the inverse of a matrix of random numbers, of which none is zero by accident."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    where = rng.random((n, n)) < rng.uniform(0.1, 0.6)
    where |= np.eye(n, dtype=bool)[rng.permutation(n)]
    matrix = np.where(where, rng.normal(size=(n, n)), 0)
    found = inverse(where)
    assert found is not None
    exact = np.abs(np.linalg.inv(matrix)) > 1e-9
    np.testing.assert_array_equal(found.toarray(), exact)


def test_no_inverse():
    assert inverse(np.array([[True, True], [False, False]])) is None


@pytest.mark.slow
def test_the_rule_of_a_forward_mode_that_is_missing():
    """Where only reverse mode can be had, it is taken, whatever the number of passes."""
    f = lambda x: rg.odeint(lambda t, y: -x * y, x, [0.0, 1.0], gradient="adjoint", rtol=1e-9)[-1]
    x = RNG.uniform(0.5, 1.5, size=N)
    exact = np.diag(np.exp(-x) * (1 - x))
    np.testing.assert_allclose(rg.jacobian(f)(x).numpy(), exact, atol=1e-7)
    found = rg.jacobian(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), exact, atol=1e-7)
    assert found.nnz == N
    with pytest.raises(rg.GradientError, match="odeint with gradient='adjoint'"):
        rg.jacfwd(f)(x)
