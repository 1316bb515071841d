"""grad, value_and_grad, vjp, jvp, vmap: values, composition, pytrees, errors."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg


@pytest.fixture(autouse=True)
def on_reference():
    with rg.backend("reference"):
        yield


def test_grad_of_numbers_arrays_and_tensors():
    f = rg.grad(lambda x: (x**3).sum())
    assert f(2.0).item() == 12
    np.testing.assert_allclose(f(np.array([1.0, 2.0])).numpy(), [3, 12])
    assert f(rg.tensor([2.0])).tolist() == [12]


def test_higher_orders():
    f = lambda x: rg.sin(x) * x
    d3 = rg.grad(rg.grad(rg.grad(f)))
    x = 0.7
    expected = -3 * np.sin(x) - x * np.cos(x)
    assert d3(np.float64(x)).item() == pytest.approx(expected, abs=1e-6)


def test_argnums_and_aux():
    f = lambda x, y: (x * y**2, {"y": y})
    (value, aux), (gx, gy) = rg.value_and_grad(f, argnums=(0, -1), has_aux=True)(2.0, 3.0)
    assert (value.item(), gx.item(), gy.item()) == (18, 9, 12)
    assert not aux["y"].requires_grad if hasattr(aux["y"], "requires_grad") else True
    g, aux = rg.grad(f, has_aux=True)(2.0, 3.0)
    assert g.item() == 9
    with pytest.raises(rg.GradientError, match="argnums is 5"):
        rg.grad(f, argnums=5)(1.0, 2.0)


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def test_pytrees_keep_their_structure():
    params = {"a": [rg.ones(2), Pair(rg.tensor(2.0), rg.tensor(3.0))], "n": None}
    g = rg.grad(lambda p: (p["a"][0] * p["a"][1].left * p["a"][1].right).sum())(params)
    assert g["a"][0].tolist() == [6, 6]
    assert isinstance(g["a"][1], Pair)
    assert g["a"][1].left.item() == 6
    assert g["n"] is None


def test_closed_over_values_are_constants():
    x = rg.tensor(3.0)
    assert rg.grad(lambda a: a * x)(x).item() == 3
    y = rg.tensor(3.0, requires_grad=True)
    g = rg.grad(lambda a: a * a * y)(2.0)
    assert g.item() == 12
    g.backward()
    assert y.grad.item() == 4


def test_inputs_the_result_does_not_depend_on_get_zeros():
    gx, gy = rg.grad(lambda x, y: (x * 2).sum(), argnums=(0, 1))(rg.ones(2), rg.ones(3))
    assert gx.tolist() == [2, 2]
    assert gy.tolist() == [0, 0, 0]


def test_python_control_flow_on_values_works_outside_of_jit():
    for f in (
        lambda x: x * x if x > 0 else -x,
        lambda x: x * x if x.detach().item() > 0 else -x,
    ):
        assert rg.grad(f)(3.0).item() == 6
        assert rg.grad(f)(-3.0).item() == -1


def test_what_cannot_be_differentiated():
    with pytest.raises(rg.GradientError, match="scalar"):
        rg.grad(lambda x: x * 2)(rg.ones(2))
    with pytest.raises(rg.GradientError, match="int64"):
        rg.grad(lambda x: x.sum())(rg.tensor([1, 2]))
    with pytest.raises(rg.GradientError, match="has_aux"):
        rg.grad(lambda x: {"loss": x})(1.0)
    with pytest.raises(rg.GradientError, match="floating"):
        rg.grad(lambda x: rg.argmax(x))(rg.ones(3))


def test_no_argument_to_differentiate():
    with pytest.raises(rg.GradientError, match="names no argument"):
        rg.grad(lambda x: x.sum(), argnums=())(rg.ones(3))


def test_backward_of_what_is_traced_says_what_to_use():
    with pytest.raises(rg.TraceError, match=r"use rg\.grad"):
        rg.jit(lambda x: x.sum().backward())(rg.ones(3))


def test_vjp_and_jvp_agree():
    f = lambda x, y: rg.tanh(x) * y
    x, y = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    out, back = rg.vjp(f, x, y)
    gx, gy = back(np.array([1.0, 0.5]))
    _, t = rg.jvp(f, (x, y), (np.array([0.7, -1.0]), np.array([0.1, 0.4])))
    left = (t.numpy() * [1.0, 0.5]).sum()
    right = (gx.numpy() * [0.7, -1.0]).sum() + (gy.numpy() * [0.1, 0.4]).sum()
    assert left == pytest.approx(right, rel=1e-12)
    np.testing.assert_allclose(out.numpy(), np.tanh(x) * y)
    with pytest.raises(rg.GradientError, match="cotangent"):
        back(np.ones(3))


def test_forward_over_reverse_is_reverse_over_reverse():
    f = lambda x: (rg.exp(x) * rg.sin(x)).sum()
    x, v = np.array([0.1, 0.5, -0.3]), np.array([1.0, -1.0, 2.0])
    _, forward = rg.jvp(rg.grad(f), (x,), (v,))
    backward = rg.grad(lambda x: (rg.grad(f)(x) * v).sum())(x)
    np.testing.assert_allclose(forward.numpy(), backward.numpy(), rtol=1e-12)


def test_vmap_is_a_loop():
    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    f = lambda a, b: rg.softmax(a) @ b
    expected = [f(rg.tensor(a), rg.tensor(b)).item() for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(rg.vmap(f)(x, y).numpy(), expected, rtol=1e-6)
    shared = rg.vmap(f, in_axes=(1, None))(np.moveaxis(x, 0, 1), y[0])
    expected = [f(rg.tensor(a), rg.tensor(y[0])).item() for a in x]
    np.testing.assert_allclose(shared.numpy(), expected, rtol=1e-6)


def test_vmap_of_grad_and_grad_of_vmap():
    x = np.random.default_rng(0).normal(size=(4, 3))
    f = lambda a: (a**3).sum()
    one = rg.vmap(rg.grad(f))(x)
    two = rg.grad(lambda a: rg.vmap(f)(a).sum())(x)
    np.testing.assert_allclose(one.numpy(), 3 * x**2, rtol=1e-12)
    np.testing.assert_allclose(two.numpy(), one.numpy(), rtol=1e-12)


def test_vmap_errors():
    with pytest.raises(rg.ShapeError, match="samples"):
        rg.vmap(lambda a, b: a + b)(rg.ones(2), rg.ones(3))
    with pytest.raises(rg.ShapeError, match="scalar"):
        rg.vmap(lambda a: a)(1.0)
    with pytest.raises(rg.TraceError, match="number is needed"):
        rg.vmap(lambda a: a if a > 0 else -a)(rg.ones(3))


def test_stop_gradient():
    assert rg.grad(lambda x: x * rg.stop_gradient(x))(3.0).item() == 3


@pytest.mark.parametrize(
    "f",
    [
        rg.vector_norm,
        lambda x: rg.vector_norm(x, ord=3),
        lambda x: rg.vector_norm(x.reshape(1, 3), axis=1).sum(),
        rg.std,
        lambda x: rg.std(x + 2),
    ],
)
def test_norms_and_deviations_have_a_gradient_of_zero_at_zero(f):
    x = np.zeros(3)
    assert f(rg.tensor(x)).item() == 0
    assert rg.grad(f)(x).tolist() == [0, 0, 0]
    assert rg.grad(lambda x: rg.grad(f)(x).sum())(x).tolist() == [0, 0, 0]
    assert rg.jvp(f, (x,), (np.ones(3),))[1].item() == 0
    assert np.isfinite(rg.grad(f)(np.array([1.0, 0.0, -2.0])).numpy()).all()  # type: ignore[attr-defined]


@pytest.mark.parametrize("f", [lambda a: math.sin(a), lambda a: a.item() ** 2, lambda a: 3.0])
def test_a_result_that_forgot_where_it_came_from_is_refused(f):
    with pytest.raises(rg.GradientError, match="plain number"):
        rg.grad(f)(1.0)
