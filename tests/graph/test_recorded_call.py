"""Graphs called while something is traced or differentiated, as the functions they are of."""

import numpy as np
import pytest

import retrograd as rg

N = rg.Dim("N")
X, W = np.linspace(-1.0, 1.0, 12).reshape(4, 3), np.linspace(-0.5, 0.7, 6).reshape(3, 2)


def f(x, w):
    return rg.reshape(rg.tanh(x @ w), (-1,)).sum() + x.shape[0]


@pytest.fixture(scope="module")
def g():
    return rg.trace(f, rg.spec((N, 3), rg.float64), rg.spec((3, 2), rg.float64))


def test_gradients_go_through_a_call(g):
    expected = X.T @ (1 - np.tanh(X @ W) ** 2)
    np.testing.assert_allclose(rg.grad(g, argnums=1)(X, W).numpy(), expected)
    w = rg.tensor(W, requires_grad=True)
    g(X, w).backward()
    np.testing.assert_allclose(w.grad.numpy(), expected)
    with rg.no_grad():
        assert not g(X, w).requires_grad
    assert not g(X, w.detach()).requires_grad


def test_to_any_order_and_forward(g):
    def twice(h):
        return rg.grad(lambda w: rg.grad(lambda x: h(x, w))(rg.asarray(X)).sum())(rg.asarray(W))

    np.testing.assert_allclose(twice(g).numpy(), twice(f).numpy())
    y, t = rg.jvp(lambda x: g(x, W), (X,), (np.ones_like(X),))
    z, u = rg.jvp(lambda x: f(x, W), (X,), (np.ones_like(X),))
    np.testing.assert_allclose([y.item(), t.item()], [z.item(), u.item()])


def test_under_other_transforms(g):
    many = np.stack([X, 2 * X])
    expected = [g(x, W).item() for x in many]
    np.testing.assert_allclose(rg.vmap(g, in_axes=(0, None))(many, W).numpy(), expected)
    np.testing.assert_allclose(rg.jit(g)(X, W).item(), expected[0])
    outer = rg.trace(lambda x: g(rg.concat([x, x]), W), rg.spec((rg.Dim("M"), 3), rg.float64))
    np.testing.assert_allclose(outer(X[:2]).item(), g(np.concatenate([X[:2], X[:2]]), W).item())
    assert "tanh" in str(outer)


def test_what_the_function_returned_is_returned(g):
    model = rg.nn.Linear(3, 1)
    h = rg.trace(lambda m, x: {"loss": (m(x) ** 2).sum()}, model, rg.ones((2, 3)))
    h(model, rg.ones((2, 3)))["loss"].backward()
    by_graph = model.weight.grad.numpy().copy()
    model.zero_grad()
    (model(rg.ones((2, 3))) ** 2).sum().backward()
    np.testing.assert_array_equal(by_graph, model.weight.grad.numpy())


def test_arguments_that_do_not_fit(g):
    with pytest.raises(
        rg.ShapeError, match=r"axis 1 of input 'x'.* has the size 3, but .* 5 there"
    ):
        rg.grad(g)(np.ones((4, 5)), W)
    with pytest.raises(rg.DTypeError, match="input 'w' is f64"):
        rg.jit(g)(X, W.astype(np.float32))
    with pytest.raises(rg.ShapeError, match=r"input 'x' is .*N, 3.*, but the tensor given is"):
        rg.trace(g, rg.spec((rg.Dim("M"), rg.Dim("K")), rg.float64), rg.spec((3, 2), rg.float64))
    with pytest.raises(rg.DTypeError, match="input 'x' is f64"):
        rg.trace(g, rg.spec((rg.Dim("M"), 3)), rg.spec((3, 2), rg.float64))
    with pytest.raises(rg.ShapeError, match=r"input 'x' is .*, but the tensor given is"):
        rg.trace(g, rg.spec((rg.Dim("M"),), rg.float64), rg.spec((3, 2), rg.float64))


def test_python_numbers_take_the_dtype_of_the_input():
    g = rg.trace(lambda a: a * a, rg.spec((), rg.float64))
    assert rg.grad(g)(3.0).item() == 6
