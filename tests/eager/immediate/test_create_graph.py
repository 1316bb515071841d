"""Gradients of gradients of operations that run at once, against nodes and finite differences."""

import functools

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import trace_buffer
from retrograd.eager.grad_fn import Output
from retrograd.eager.immediate import create_graph
from retrograd.eager.trace_cache import SITES
from retrograd.tuning import TUNING

F = rg.nn.functional
RNG = np.random.default_rng(5)
X, W, V = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4)), RNG.normal(size=(5, 4))


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    trace_buffer.end_run()
    SITES.clear()


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(TUNING, "returned_runs", 0)
    trace_buffer.end_run()
    SITES.clear()


def layers(p):
    return F.mse_loss(F.linear(rg.tanh(F.linear(rg.asarray(X), p)), p), rg.asarray(V))


def slices(p):
    parts = [p[i] * p[i + 1] for i in range(3)] + [p[1:3].sum(axis=0), p[:, 2] ** 3]
    return sum([(part**2).sum() for part in parts])


def joins(p):
    rows = [p[i % 4] * (i + 1.0) for i in range(12)]
    new, old = rg.stack(rows, 0), rg.concat([r[None] for r in rows], 0)
    return (new**2 * old).sum()


def attention(p):
    q = (rg.asarray(X) @ p)[None, None]
    return (F.scaled_dot_product_attention(q, q * 0.5, q + 1.0) ** 2).sum()


def entropy(p):
    return F.cross_entropy(rg.asarray(X) @ p, rg.tensor([0, 3, 1, 2, 1])) * p[0, 0]


def convolution(p):
    image = rg.asarray(np.arange(98.0).reshape(1, 2, 7, 7) / 50)
    y = F.conv2d(image, (p * 0.3).reshape(2, 2, 2, 2), stride=2, padding=1)
    return (rg.relu(y) ** 2).mean()


def mixture(p):
    y = rg.exp(p * 0.3) / (1.0 + rg.sum(p**2, axis=1, keepdims=True)) - p.reshape(2, 8).sum()
    return rg.logsumexp(rg.where(y > 0, y, 0.1 * y * y) @ p.T)


def lookups(p):
    picked = p[rg.tensor([0, 2, 2, 1])]
    return (rg.cumsum(picked, axis=0) ** 2 * rg.max(p, axis=1, keepdims=True)).sum()


def same_twice(p):
    return (p * p + p / (p * p + 2.0)).sum() * p.sum()


PROGRAMS = [
    layers, slices, joins, attention, entropy, convolution, mixture, lookups, same_twice,
]  # fmt: skip


def of_gradient(f, p):
    """A number that hangs on the gradient of f at p."""
    g = rg.grad(f)(p)
    return (g * rg.asarray(V[:4])).sum() + (g**3).mean()


def second(f, p):
    """The gradient of that, by backward()."""
    p = rg.tensor(p, requires_grad=True)
    value = of_gradient(f, p)
    assert value.requires_grad
    value.backward()
    return value.item(), p.grad.numpy()


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_are_differences_of_first_ones(f, at_once):
    _, found = second(f, W)
    expected = rg.numerical_gradient(lambda p: of_gradient(f, p), rg.tensor(W)).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-7 * np.abs(expected).max())


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.sample(4)
def test_third_derivatives_are_differences_of_second_ones(f, at_once):
    def twice(p):
        return (rg.grad(lambda q: of_gradient(f, q))(p) * rg.asarray(X[:4])).sum()

    p = rg.tensor(W, requires_grad=True)
    twice(p).backward()
    expected = rg.numerical_gradient(twice, rg.tensor(W)).numpy()
    atol = 2e-6 * np.abs(expected).max()
    np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.sample(4)
def test_bits_are_those_of_one_program(f, monkeypatch):
    compiled = rg.jit(rg.grad(lambda p: of_gradient(f, p)))(rg.tensor(W)).numpy()
    for name, value in (("unknown_recordings", 0), ("returned_runs", 0)):
        with monkeypatch.context() as patched:
            patched.setattr(TUNING, name, value)
            trace_buffer.end_run()
            SITES.clear()
            for _ in range(2):
                _, found = second(f, W)
                np.testing.assert_array_equal(found, compiled, err_msg=name)


@pytest.mark.parametrize("f", [layers, joins, same_twice])
def test_no_nodes_are_made_of_what_ran(f, at_once, monkeypatch):
    def no(*given):
        raise AssertionError("nodes")

    monkeypatch.setattr("retrograd.eager.grad_fn._unfold", no)
    p = rg.tensor(W, requires_grad=True)
    g = rg.grad(f)(p)
    assert isinstance(g._state, Output)
    (g**2).sum().backward()
    assert np.abs(p.grad.numpy()).max() > 0


def test_a_recording_is_found_again(recorded):
    for _ in range(3):
        p = rg.tensor(W, requires_grad=True)
        for k in range(3):
            p = p - 0.1 * rg.grad(lambda q, k=k: layers(q) * (k + 1.0))(p)
        before = rg.cache_stats()["misses"]
        p.sum().numpy()
    assert rg.cache_stats()["misses"] == before


def test_what_a_function_closes_over_gets_a_gradient(at_once):
    w = rg.tensor(W, requires_grad=True)
    x = rg.tensor(X)
    slope = rg.grad(lambda x: (rg.tanh(x @ w) ** 2).sum())(x)
    assert slope.requires_grad
    (slope**2).sum().backward()

    def expected(w):
        h = np.tanh(X @ w)
        return (((2 * h * (1 - h**2)) @ w.T) ** 2).sum()

    differences = rg.numerical_gradient(lambda w: expected(w.numpy()), rg.tensor(W)).numpy()
    np.testing.assert_allclose(w.grad.numpy(), differences, rtol=1e-5)
    assert x.grad is None


def test_a_closure_is_no_argument(at_once):
    p = rg.tensor(W, requires_grad=True)
    g = rg.grad(lambda q: (q * p * p).sum())(p)
    np.testing.assert_allclose(g.numpy(), W**2)
    g.sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), 2 * W)


def test_more_than_the_scalar_is_returned(at_once):
    p = rg.tensor(W, requires_grad=True)
    (value, seen), g = rg.value_and_grad(
        lambda q: ((q**3).sum(), {"squares": q**2, "n": 3}), has_aux=True
    )(p)
    assert value.requires_grad
    assert seen["squares"].requires_grad
    assert seen["n"] == 3
    (g.sum() + seen["squares"].sum() + value).backward()
    np.testing.assert_allclose(p.grad.numpy(), 6 * W + 2 * W + 3 * W**2)
    plain = rg.tensor(W)
    (value, seen), g = rg.value_and_grad(lambda q: ((q**3).sum(), q * 2), has_aux=True)(plain)
    assert not any(x.requires_grad for x in (value, seen, g))


def test_arguments_that_are_not_used_have_zeros(at_once):
    p, q = (rg.tensor(a, requires_grad=True) for a in (W, X))
    a, b = rg.grad(lambda p, q: (p**2).sum(), argnums=(0, 1))(p, q)
    np.testing.assert_allclose(a.numpy(), 2 * W)
    np.testing.assert_array_equal(b.numpy(), np.zeros_like(X))


def test_without_gradients_outside_the_result_is_a_constant(at_once):
    p = rg.tensor(W, requires_grad=True)
    with rg.no_grad():
        g = rg.grad(lambda q: (q**3).sum())(p)
    assert not g.requires_grad
    np.testing.assert_allclose(g.numpy(), 3 * W**2)


def test_sizes_that_change_are_one_kind(at_once):
    for n in range(2, 40):
        x = RNG.normal(size=(n, 4))
        p = rg.tensor(W, requires_grad=True)
        g = rg.grad(lambda q, x=x: (rg.tanh(rg.asarray(x) @ q) ** 2).mean())(p)
        (g**2).sum().backward()
        if n == 39:
            jitted = rg.jit(
                rg.grad(
                    lambda p, x=x: (
                        rg.grad(lambda q: (rg.tanh(rg.asarray(x) @ q) ** 2).mean())(p) ** 2
                    ).sum()
                )
            )
            np.testing.assert_allclose(p.grad.numpy(), jitted(rg.tensor(W)).numpy(), rtol=1e-12)


def test_a_history_that_is_gone_is_an_error(at_once):
    p = rg.tensor(W, requires_grad=True)
    y = (p**2).sum()
    y.backward()
    with pytest.raises(rg.GradientError, match="second time"):
        rg.grad(lambda q: (q * y).sum())(p).sum().backward()


def test_meta_learning_descends_like_pytorch(at_once):
    torch = pytest.importorskip("torch")

    def error(lib, x, y, q):
        return ((lib.tanh(x @ q) - y) ** 2).mean()

    def trained(lib, slopes):
        p, data = lib.tensor(W, requires_grad=True), lib.tensor(X)
        for _ in range(4):
            total = lib.tensor(0.0, dtype=lib.float64)
            for k in range(3):
                loss = functools.partial(
                    lambda k, q: ((lib.tanh(data @ q) - 0.1 * k) ** 2).mean(), k
                )
                total = total + loss(p - 0.1 * slopes(loss, p))
            total.backward()
            p = lib.tensor((p - 0.1 * p.grad).detach().numpy(), requires_grad=True)
        return p.detach().numpy()

    def slopes(loss, p):
        return torch.autograd.grad(loss(p), (p,), create_graph=True)[0]

    found = trained(rg, lambda loss, p: rg.grad(loss)(p))
    np.testing.assert_allclose(found, trained(torch, slopes), rtol=1e-12)


def test_a_pullback_that_cannot_be_a_call_is_found_on_nodes(at_once, monkeypatch):
    monkeypatch.setattr(create_graph, "_through_function", lambda *given: False)
    _, found = second(layers, W)
    monkeypatch.undo()
    np.testing.assert_array_equal(found, second(layers, W)[1])


@pytest.mark.parametrize("f", [layers, slices, joins, entropy, mixture, same_twice])
def test_nodes_of_gradients_of_calls(f, at_once):
    """Who asks for nodes gets those of calls that are gradients, numbers and all."""
    p = rg.tensor(W, requires_grad=True)
    value = of_gradient(f, p) * 1.25 + 0.5
    value.retain_grad()
    value.backward()
    np.testing.assert_allclose(p.grad.numpy(), 1.25 * second(f, W)[1], rtol=1e-10)


def test_bad_use_is_said_as_ever(at_once):
    p = rg.tensor(W, requires_grad=True)
    with pytest.raises(rg.GradientError, match="silently"):
        rg.grad(lambda q: (q * q.sum().item()).sum())(p)
    with pytest.raises(rg.GradientError, match="scalar"):
        rg.grad(lambda q: q * 2)(p)
    with pytest.raises(rg.GradientError, match="returned the plain number"):
        rg.grad(lambda q: 3.0)(p)
    with pytest.raises(ZeroDivisionError):
        rg.grad(lambda q: 1 / 0)(p)
    np.testing.assert_allclose(rg.grad(lambda q: (q**2).sum())(p).numpy(), 2 * W)
