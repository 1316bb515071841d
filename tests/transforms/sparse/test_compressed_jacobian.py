"""Sparse Jacobians and Hessians: the dense ones, in SciPy's formats, from few passes."""

import numpy as np
import pytest
from scipy import optimize
from scipy import sparse as sp

import retrograd as rg
from retrograd.transforms.sparse import compressed_jacobian

X = np.linspace(-1, 1, 40)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("form", [True, "csr", "csc", "coo"])
def test_formats(form):
    found = rg.hessian(rosenbrock, sparse=form)(X)
    assert sp.issparse(found)
    assert found.format == (form if isinstance(form, str) else "csr")
    np.testing.assert_allclose(found.toarray(), optimize.rosen_hess(X), rtol=1e-10)
    assert found.nnz == 3 * 40 - 2


def test_it_takes_few_passes(monkeypatch):
    sizes = []
    real = compressed_jacobian._directions

    def counting(nodes, colours):
        sizes.append(int(colours.max()) + 1)
        return real(nodes, colours)

    monkeypatch.setattr(compressed_jacobian, "_directions", counting)
    rg.jacobian(lambda x: x[1:] * x[:-1], sparse=True)(X)
    rg.hessian(rosenbrock, sparse=True)(X)
    rg.jacobian(lambda x: x.reshape(2, 20).sum(axis=1), sparse=True)(X)  # two rows: reverse mode
    assert sizes == [2, 3, 1]


def test_trees_are_laid_out_leaf_after_leaf():
    def f(p, scale):
        return {"a": p["u"] * p["v"][0] * scale, "b": rg.sin(p["v"])}

    p = {"u": X[:4], "v": X[:3] + 3}
    found = rg.jacobian(f, sparse=True)(p, 2.0).toarray()
    dense = rg.jacobian(f)(p, 2.0)
    expected = np.block(
        [[dense["a"]["u"].numpy(), dense["a"]["v"].numpy()],
         [dense["b"]["u"].numpy(), dense["b"]["v"].numpy()]]
    )  # fmt: skip
    np.testing.assert_allclose(found, expected)
    both = rg.jacobian(lambda x, y: x * y, argnums=(0, 1), sparse=True)(X, X + 1)
    np.testing.assert_allclose(both.toarray(), np.hstack([np.diag(X + 1), np.diag(X)]))


def test_values_change_and_the_pattern_is_remembered(monkeypatch):
    calls = []
    real = compressed_jacobian.patterns

    def counting(*args):
        calls.append(1)
        return real(*args)

    monkeypatch.setattr(compressed_jacobian, "patterns", counting)
    weight = rg.tensor(2.0, requires_grad=True, dtype="float64")
    jac = rg.jacobian(lambda x, i: rg.take(x, i) ** 2 * weight, sparse=True)
    for scale in (1.0, 3.0):
        found = jac(scale * X, np.array([1, 2, 1])).toarray()
        assert found[0, 1] == pytest.approx(4 * scale * X[1])
        assert np.count_nonzero(found) == 3
    assert len(calls) == 1
    weight.replace(np.array(5.0))
    assert jac(X, np.array([1, 2, 1])).toarray()[0, 1] == pytest.approx(10 * X[1])
    other = jac(X, np.array([7, 2, 1])).toarray()
    assert other[0, 7] == pytest.approx(10 * X[7])
    assert len(calls) == 2


def test_nothing_depends_on_the_argument():
    found = rg.jacobian(lambda x: rg.ones(3) * 2, sparse=True)(X)
    assert found.shape == (3, 40)
    assert found.nnz == 0
    assert rg.hessian(lambda x: (2 * x).sum(), sparse=True)(X).nnz == 0


def test_for_scipy():
    """Least squares and Newton's method take what comes out."""
    data = np.sin(3 * X)
    residual = lambda x: rg.concat([x - data, 3 * (x[1:] - x[:-1])])
    jac = rg.jacobian(residual, sparse=True)
    f = lambda x: residual(rg.tensor(x)).numpy()
    found = optimize.least_squares(f, X * 0, jac=jac, ftol=1e-14, gtol=1e-12, xtol=1e-12)
    expected = np.linalg.lstsq(jac(X).toarray(), -f(X * 0), rcond=None)[0]
    np.testing.assert_allclose(found.x, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rg.jacobian(rg.sin, sparse="dense"), rg.OptionError, "csr"),
        (lambda: rg.jacobian(rg.sin, has_aux=True, sparse=True), rg.OptionError, "has_aux"),
        (lambda: rg.hessian(rg.sin, sparse=True)(X), rg.GradientError, "scalar"),
        (lambda: rg.hessian(lambda x: (x[0], x[1]), sparse=True)(X), rg.ShapeError, "2 outputs"),
        (lambda: rg.jacobian(rg.argmax, sparse=True)(X), rg.GradientError, "int64"),
        (lambda: rg.jacobian(rg.sin, sparse=True)(np.arange(3)), rg.GradientError, "int64"),
        (lambda: rg.jacobian(lambda x: x * 1j, sparse=True)(X), rg.GradientError, "complex"),
        (lambda: rg.jit(rg.jacobian(rg.sin, sparse=True))(X), rg.TraceError, "traced"),
    ],
)
def test_what_has_no_sparse_derivative(call, error, words):
    with pytest.raises(error, match=words):
        call()
