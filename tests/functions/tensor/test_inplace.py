"""In-place operators on leaves, and gradients of what is not a leaf."""

import copy
import operator
import pickle
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

OPERATORS = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
]  # fmt: skip


def leaf(*values):
    return rg.tensor([*values] or [1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("change", OPERATORS)
@pytest.mark.parametrize("other", [3.0, np.ones(2, np.float32), rg.tensor([2.0, 3.0])])
def test_a_leaf_is_changed_without_gradients_only(change, other):
    x = alias = leaf()
    with pytest.raises(rg.GradientError, match=r"leaf that requires a gradient .* in-place"):
        change(x, other)
    expected = {"iadd": "add", "isub": "sub"}.get(change.__name__, change.__name__[1:])
    expected = getattr(operator, expected)(x.detach(), other).tolist()
    with rg.no_grad():
        x = change(x, other)
    assert x is alias
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == expected
    (x * x).sum().backward()
    assert alias.grad.tolist() == [2 * v for v in expected]


def test_descent_written_out_is_that_of_an_optimizer():
    x = rg.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    models = [nn.Linear(3, 2) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizer = rg.optim.SGD(models[1], lr=0.125)
    for _ in range(5):
        for model in models:
            (model(x) ** 2).mean().backward()
        with rg.no_grad():
            for p in models[0].parameters():
                p -= 0.125 * p.grad
                p.grad = None
        optimizer.step()
        optimizer.zero_grad()
    for p, q in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert isinstance(p, nn.Parameter)
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-6)


def test_what_was_computed_from_the_value_of_before_has_no_gradient_any_more():
    x = leaf()
    y = (x * x).sum()
    with rg.no_grad():
        x += 1
    assert y.item() == 5
    with pytest.raises(rg.GradientError, match="changed a parameter"):
        y.backward()


def test_a_leaf_keeps_its_shape_and_dtype():
    x = leaf()
    with rg.no_grad():
        with pytest.raises(rg.ShapeError, match=r"\(3, 2\)"):
            x += rg.ones((3, 2))
        with pytest.raises(rg.DTypeError, match="complex64"):
            x *= 1j
        x += rg.ones(2, dtype=rg.float64)
    assert x.dtype == rg.float32
    assert x.tolist() == [2, 3]


def test_every_holder_of_what_is_no_leaf_sees_a_change():
    x = leaf()
    y = same = x * 2
    part = y[1:]
    y += 1
    y *= y
    y.sum().backward()
    assert same.tolist() == [9, 25]
    assert part.tolist() == [4]
    assert x.grad.tolist() == [12, 20]
    z = same = rg.ones(2)
    z += 1
    assert same.tolist() == [2, 2]


@pytest.mark.parametrize("f", [lambda f: f, rg.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("x", [leaf(), rg.tensor([1.0, 2.0])], ids=["leaf", "constant"])
def test_what_a_function_has_made_is_changed_under_transforms(f, x):
    def g(x):
        x = x + 1
        x *= x
        return x.sum()

    assert rg.grad(f(g))(x).tolist() == [4, 6]
    assert f(rg.grad(g))(x).tolist() == [4, 6]
    assert rg.jit(g)(x).item() == 13
    assert rg.jvp(g, (x,), (rg.ones(2),))[1].item() == 10
    assert rg.vmap(lambda v: g(v[None]))(x).tolist() == [4, 9]
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("x", [leaf(), rg.tensor([1.0, 2.0])], ids=["leaf", "constant"])
def test_a_function_that_is_compiled_changes_no_leaf_from_outside(x):
    w = leaf()

    def step(x, w=w):
        with rg.no_grad():
            w -= 1
        return x * w

    with pytest.raises(rg.TraceError, match=r"captured by it.*x = x \+ y"):
        rg.jit(step)(x)
    assert w.tolist() == [1, 2]


def test_grad_of_what_is_not_a_leaf_says_why_there_is_none():
    x = leaf()
    y = x * 2
    z = y.sum()
    for t in (y, z):
        with pytest.warns(UserWarning, match=r"not a leaf.*retain_grad") as seen:
            assert t.grad is None
        assert seen[0].filename == __file__
    z.backward()
    for t in (y, z):
        with pytest.warns(UserWarning, match="not a leaf"):
            assert t.grad is None


def test_nothing_but_asking_for_a_gradient_warns():
    x = leaf()
    y = x * 2
    layer = nn.Linear(2, 2)
    h = layer(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in (x, y, h, y.detach(), rg.ones(2)):
            repr(t), str(t), rg.tree.flatten([t]), copy.copy(t), t.shape
        pickle.loads(pickle.dumps(x))
        copy.deepcopy(layer)
        x.grad, rg.ones(2).grad, y.detach().grad
        h.sum().backward()
        assert x.grad is not None
        rg.optim.SGD([x], lr=0.1).step()
        rg.optim.clip_grad_norm(layer.parameters(), 1.0)


@pytest.mark.parametrize("look", [False, True])
def test_retained_gradients(look):
    x = leaf()
    y = x * 3
    z = y * y
    total = z.sum()
    for t in (y, y, z, total):
        t.retain_grad()
        assert t.retains_grad
    if look:
        y.numpy()
        total.numpy()
    total.backward(retain_graph=True)
    assert (y.grad.tolist(), z.grad.tolist(), total.grad.item()) == ([6, 12], [1, 1], 1)
    assert x.grad.tolist() == [18, 36]
    total.backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([12, 24], [36, 72])
    (x * 2).sum().backward()
    assert y.grad.tolist() == [12, 24]


@pytest.mark.slow
def test_retained_gradients_of_a_recording_that_is_cut():
    x = leaf()
    y = x * 3
    y.retain_grad()
    z = y
    for _ in range(1_000):
        z = z + y * 0.5
    z.sum().backward()
    assert y.grad.tolist() == [501, 501]
    assert x.grad.tolist() == [1503, 1503]


def test_retaining_is_for_what_requires_a_gradient():
    x = leaf()
    same = x.reshape(2)
    x.retain_grad()
    same.retain_grad()
    assert not x.retains_grad
    (same * same).sum().backward()
    assert x.grad.tolist() == same.grad.tolist() == [2, 4]
    with pytest.raises(rg.GradientError, match="retain_grad"):
        rg.ones(2).retain_grad()
    y = rg.jit(lambda x: x * 2)(x)
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 8]
