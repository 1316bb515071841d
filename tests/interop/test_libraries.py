"""Tensors in the hands of other libraries: opt_einsum, array_api_compat and array_api_extra,
networkx, pandas, matplotlib and SciPy's minimizers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _on_the_reference() -> Any:
    with rg.backend("reference"):
        yield


# -- opt_einsum ------------------------------------------------------------------------------------
EXPRESSIONS = ["ij,jk,kl->il", "ij,jk,kl->li", "ii,jk,kl->jl", "ab,bc,bd->acd", "ij,ij,kl->ik"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_opt_einsum_contracts_tensors(expression: str) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    arrays = [RNG.normal(size=(3, 3)) for _ in range(3)]
    wanted = np.einsum(expression, *arrays)
    tensors = [rg.asarray(a) for a in arrays]
    found = opt_einsum.contract(expression, *tensors)
    assert isinstance(found, rg.Tensor)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    made = opt_einsum.contract_expression(expression, *[(3, 3)] * 3)
    np.testing.assert_allclose(made(*tensors, backend="retrograd"), wanted, rtol=1e-12)
    constant = opt_einsum.contract_expression(expression, tensors[0], (3, 3), (3, 3), constants=[0])
    np.testing.assert_allclose(constant(*tensors[1:]), wanted, rtol=1e-12)


def test_opt_einsum_plans_for_tensors_shares_intermediates_and_is_differentiated() -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    a, b, c = (rg.asarray(RNG.normal(size=s)) for s in ((2, 9), (9, 9), (9, 2)))
    path, info = opt_einsum.contract_path("ij,jk,kl->il", a, b, c)
    assert path == [(0, 1), (0, 1)]
    assert info.opt_cost < info.naive_cost
    with opt_einsum.shared_intermediates() as cache:
        first = opt_einsum.contract("ij,jk,kl->il", a, b, c)
        known = len(cache)
        opt_einsum.contract("ij,jk,kl->li", a, b, c)
    assert 0 < known <= len(cache)
    grads = rg.grad(lambda *x: opt_einsum.contract("ij,jk,kl->il", *x).sum(), argnums=(0, 1, 2))
    d = grads(a, b, c)
    np.testing.assert_allclose(d[1], np.outer(a.numpy().sum(0), c.numpy().sum(1)), rtol=1e-12)
    jitted = rg.jit(lambda *x: opt_einsum.contract("ij,jk,kl->il", *x))
    np.testing.assert_allclose(jitted(a, b, c), first, rtol=1e-12)


# -- array_api_compat, array_api_extra -------------------------------------------------------------
def test_array_api_compat_recognises_tensors() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = rg.ones((2, 3))
    assert compat.array_namespace(x, 1.0, None) is rg
    for version in ("2022.12", "2023.12", "2024.12"):
        assert compat.array_namespace(x, api_version=version) is rg
    assert compat.is_array_api_obj(x)
    assert compat.is_writeable_array(x)
    assert not compat.is_lazy_array(x)
    assert (compat.device(x), compat.size(x)) == ("cpu", 6)
    assert compat.to_device(x, "cpu") is x
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(x, np.ones(2))
    lazy = []

    def identity(y: rg.Tensor) -> rg.Tensor:
        lazy.append(compat.is_lazy_array(y))
        return y

    rg.jit(identity)(x)
    assert lazy == [True]


def test_array_api_extra_works_eagerly_compiled_and_under_gradients() -> None:
    xpx = pytest.importorskip("array_api_extra")
    x = rg.asarray([1.0, 4.0, -9.0])

    def root(x: Any) -> Any:
        return xpx.apply_where(x > 0, x, rg.sqrt, fill_value=0.0)

    for f in (root, rg.jit(root)):
        assert f(x).tolist() == [1.0, 2.0, 0.0]
    assert rg.grad(lambda x: root(x).sum())(x).tolist() == [0.5, 0.25, 0.0]

    def changed(x: Any) -> Any:  # `copy`, as an argument cannot be written to
        return xpx.at(x)[1].multiply(3.0, copy=True)

    for f in (changed, rg.jit(changed)):
        assert f(x).tolist() == [1.0, 12.0, -9.0]
    assert rg.grad(lambda x: changed(x).sum())(x).tolist() == [1.0, 3.0, 1.0]
    assert x.tolist() == [1.0, 4.0, -9.0]
    xpx.at(x)[x < 0].set(0.0)
    assert x.tolist() == [1.0, 4.0, 0.0]
    np.testing.assert_allclose(xpx.cov(rg.stack([x, x**2])), np.cov([[1, 4, 0], [1, 16, 0]]))


# -- networkx --------------------------------------------------------------------------------------
def test_networkx_weights() -> None:
    nx = pytest.importorskip("networkx")
    a = rg.asarray([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    graph = nx.from_numpy_array(a.numpy(), create_using=nx.DiGraph)
    assert rg.asarray(nx.to_numpy_array(graph)).tolist() == a.tolist()
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    graph = nx.DiGraph([(0, 1, {"weight": w[0]}), (1, 2, {"weight": w[1]})])
    nx.shortest_path_length(graph, 0, 2, weight="weight").backward()
    assert w.grad is not None
    assert w.grad.tolist() == [1.0, 1.0]


# -- pandas ----------------------------------------------------------------------------------------
def test_pandas_series_and_frames() -> None:
    pd = pytest.importorskip("pandas")
    x, m = rg.asarray([1.5, 2.5]), rg.asarray([[1, 2], [3, 4]])
    assert pd.Series(x).dtype == np.float32
    assert pd.Series(x).tolist() == [1.5, 2.5]
    frame = pd.DataFrame(m, columns=["a", "b"])
    assert [str(d) for d in frame.dtypes] == ["int64", "int64"]
    frame["c"] = x
    assert frame.c.tolist() == [1.5, 2.5]
    assert pd.DataFrame({"a": x, "b": m[0]}).b.tolist() == [1, 2]
    assert list(pd.Index(rg.arange(3))) == [0, 1, 2]
    for make in (rg.tensor, rg.asarray):
        assert make(frame[["a", "b"]]).tolist() == m.tolist()
        assert make(frame.c).dtype is rg.float32
        assert make(pd.Series([True, False])).dtype is rg.bool
    assert (x * pd.Series([2.0, 4.0])).tolist() == [3.0, 10.0]
    with pytest.raises(rg.DTypeError, match="no numbers"):
        rg.tensor(pd.Series(["a", "b"]))


# -- matplotlib ------------------------------------------------------------------------------------
@pytest.fixture
def axes() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()
    plt.close(figure)


def test_matplotlib_draws_tensors(axes: Any) -> None:
    x = rg.linspace(0.0, 1.0, 5)
    (line,) = axes.plot(x, x**2)
    np.testing.assert_allclose(line.get_ydata(), np.linspace(0, 1, 5) ** 2, rtol=1e-6)
    (alone,) = axes.plot(x.astype(rg.bfloat16))
    assert alone.get_ydata().tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    points = axes.scatter(x, x, s=10 * x, c=x)
    assert points.get_offsets().shape == (5, 2)
    counts, edges, _ = axes.hist(x, bins=5)
    assert (np.asarray(counts).tolist(), len(edges)) == ([1.0] * 5, 6)
    bars = axes.bar(x, x)
    assert [bar.get_height() for bar in bars] == x.tolist()
    axes.fill_between(x, x, x + 1)
    axes.errorbar(x, x, yerr=x)
    axes.axhline(x[1])
    axes.set_xlim(x[0], x[-1])


def test_matplotlib_shows_matrices(axes: Any) -> None:
    m = rg.reshape(rg.arange(6), (2, 3))
    for shown in (m, m > 2, m.astype(rg.float16), rg.ones((2, 3, 3))):
        image = axes.imshow(shown)
        assert image.get_array().shape == shown.shape
    axes.contourf(m)
    axes.pcolormesh(m)


# -- json ------------------------------------------------------------------------------------------
def test_json_takes_lists_of_numbers() -> None:
    x = rg.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match="Tensor is not JSON serializable"):
        json.dumps({"loss": x})
    assert (
        json.dumps({"loss": x.tolist(), "one": x[0].item()}) == '{"loss": [1.0, 2.0], "one": 1.0}'
    )


METHODS = [
    "CG",
    "BFGS",
    "Newton-CG",
    "L-BFGS-B",
    "TNC",
    "SLSQP",
    "trust-constr",
    "dogleg",
    "trust-ncg",
    "trust-exact",
    "trust-krylov",
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(4)
def test_scipys_minimizers_take_gradients_and_hessians(method: str) -> None:
    def rosenbrock(x: Any) -> rg.Tensor:
        return rg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    wants_hessian = method in ("Newton-CG", "dogleg") or method.startswith("trust")
    options = {"hess": rg.jit(rg.hessian(rosenbrock))} if wants_hessian else {}
    for start in (np.array([-1.0, 0.5]), rg.asarray([-1.0, 0.5], dtype=rg.float64)):
        for f, jac in (
            (rosenbrock, rg.jit(rg.grad(rosenbrock))),
            (rg.jit(rg.value_and_grad(rosenbrock)), True),
        ):
            found = scipy.optimize.minimize(f, start, method=method, jac=jac, tol=1e-8, **options)
            np.testing.assert_allclose(np.asarray(found.x), [1.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_scipys_least_squares_take_jacobians_and_tensors(method: str) -> None:
    def residuals(x: Any) -> rg.Tensor:
        return rg.stack([x[0] - 1, 10 * (x[1] - x[0] ** 2)])

    jacobian = rg.jacobian(residuals)
    start = rg.asarray([2.0, 2.0], dtype=rg.float64)
    found = scipy.optimize.least_squares(residuals, start, jac=jacobian, method=method)
    np.testing.assert_allclose(np.asarray(found.x), [1.0, 1.0], atol=1e-6)

    def model(t: Any, a: Any, b: Any, c: Any) -> rg.Tensor:
        return a * rg.exp(-b * rg.asarray(t)) + c

    t = rg.linspace(0, 4, 30, dtype=rg.float64)
    y = model(t, 2.0, 0.7, 0.1)
    fitted, _ = scipy.optimize.curve_fit(model, t, y, p0=[1.0, 1.0, 0.0], method=method)
    np.testing.assert_allclose(fitted, [2.0, 0.7, 0.1], atol=1e-4)
