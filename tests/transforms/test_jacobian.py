"""jacrev, jacfwd, jacobian, hessian, hvp, linearize: against formulas, and against one another."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])


def both(x: Any, y: Any) -> dict[str, Any]:
    return {"a": rg.sin(x) * y, "b": (x**2).sum() * y}


@pytest.mark.parametrize("transform", [rg.jacrev, rg.jacfwd, rg.jacobian])
@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_blocks_are_those_of_output_and_input(transform, backend):
    with rg.backend(backend):
        found = transform(both, argnums=(0, -1))(X, np.array(2.0))
    assert sorted(found) == ["a", "b"]
    np.testing.assert_allclose(found["a"][0].numpy(), np.diag(2 * np.cos(X)), rtol=1e-12)
    np.testing.assert_allclose(found["a"][1].numpy(), np.sin(X), rtol=1e-12)
    np.testing.assert_allclose(found["b"][0].numpy(), 4 * X, rtol=1e-12)
    assert found["b"][1].item() == pytest.approx((X**2).sum())


def test_a_single_argument_is_not_in_a_tuple_and_aux_comes_along():
    f = lambda p: (p["w"] @ p["x"], p["x"])
    w = np.arange(6.0).reshape(2, 3)
    found, aux = rg.jacrev(f, has_aux=True)({"w": w, "x": X})
    np.testing.assert_allclose(found["x"].numpy(), w)
    assert found["w"].shape == (2, 2, 3)
    np.testing.assert_allclose(found["w"].numpy()[1, 1], X)
    np.testing.assert_allclose(aux.numpy(), X)
    found, aux = rg.hessian(lambda x: ((x**3).sum(), x), has_aux=True)(X)
    np.testing.assert_allclose(found.numpy(), np.diag(6 * X))


def test_the_shapes_of_a_function_of_matrices():
    f = lambda a: a @ a
    a = np.arange(4.0).reshape(2, 2)
    one, two = rg.jacrev(f)(a), rg.jacfwd(f)(a)
    assert one.shape == (2, 2, 2, 2)
    np.testing.assert_allclose(one.numpy(), two.numpy())
    eye = np.eye(2)
    expected = np.einsum("ik,lj->ijkl", eye, a) + np.einsum("jl,ik->ijkl", eye, a)
    np.testing.assert_allclose(one.numpy(), expected)


def test_jacobian_takes_the_side_with_fewer_passes():
    wide = rg.trace(rg.jacobian(lambda x: x.sum()), rg.spec((1000,)))
    tall = rg.trace(rg.jacobian(lambda x: rg.sin(x * np.arange(1000.0))), rg.spec(()))
    assert max(n.type.size for n in wide.nodes) <= 1000
    assert max(n.type.size for n in tall.nodes) <= 1000


def test_named_sizes():
    n = rg.Dim("N")
    for transform in (rg.jacrev, rg.jacfwd, rg.jacobian):
        g = rg.trace(transform(lambda x: x**2 + x.sum()), rg.spec((n,), rg.float64))
        for size in (1, 3, 5):
            x = np.arange(1.0, size + 1)
            np.testing.assert_allclose(g(x).numpy(), np.diag(2 * x) + 1)


def test_the_hessian_and_its_products():
    f = lambda x: (rg.exp(x) * rg.sin(x)).sum() * x[0]
    h, v = rg.hessian(f)(X).numpy(), np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(h, h.T, rtol=1e-12)
    np.testing.assert_allclose(rg.hvp(f, X, v).numpy(), h @ v, rtol=1e-12)
    np.testing.assert_allclose(rg.jacrev(rg.jacfwd(f))(X).numpy(), h, rtol=1e-12)
    step = 1e-5
    for i, e in enumerate(np.eye(3)):
        slope = (rg.grad(f)(X + step * e).numpy() - rg.grad(f)(X - step * e).numpy()) / (2 * step)
        np.testing.assert_allclose(h[i], slope, rtol=1e-8)


def test_hvp_of_several_arguments():
    f = lambda x, p: (x**2 * p["w"]).sum()
    args = (X, {"w": X + 1})
    hx, hp = rg.hvp(f, args, (np.ones(3), {"w": np.zeros(3)}))
    np.testing.assert_allclose(hx.numpy(), 2 * (X + 1), rtol=1e-12)
    np.testing.assert_allclose(hp["w"].numpy(), 2 * X, rtol=1e-12)
    with pytest.raises(TypeError, match="tuple"):
        rg.hvp(f, args, np.ones(3))


def test_in_jit_vmap_and_in_one_another():
    f = lambda x: (x**4).sum() * x[1]
    third = rg.jacfwd(rg.hessian(f))
    expected = third(X).numpy()
    np.testing.assert_allclose(rg.jit(third)(X).numpy(), expected)
    np.testing.assert_allclose(rg.vmap(third)(np.stack([X, 2 * X])).numpy()[0], expected)
    np.testing.assert_allclose(expected, expected.transpose(2, 1, 0), rtol=1e-12)


def test_linearize_is_jvp_with_f_computed_once():
    f = lambda x, y: (rg.tanh(x) * y).sum()
    y = np.ones(3)
    out, slope = rg.linearize(f, X, y)
    for v in np.eye(3):
        expected, t = rg.jvp(f, (X, y), (v, 2 * v))
        assert slope(v, 2 * v).item() == pytest.approx(t.item(), rel=1e-14)
        assert out.item() == expected.item()
    g = rg.grad(lambda x: rg.linearize(f, x, y)[1](y, y))(X)
    np.testing.assert_allclose(
        g.numpy(), rg.grad(lambda x: rg.jvp(f, (x, y), (y, y))[1])(X).numpy(), rtol=1e-12
    )
    with pytest.raises(rg.GradientError, match="structure"):
        slope(y)


def test_what_has_no_jacobian():
    with pytest.raises(rg.GradientError, match=r"int64.*has_aux"):
        rg.jacrev(rg.argmax)(X)
    with pytest.raises(rg.GradientError, match="plain number"):
        rg.hessian(lambda x: 3.0)(X)
    with pytest.raises(rg.GradientError, match="complex"):
        rg.jacfwd(lambda x: x * 1j)(X)
    with pytest.raises(rg.GradientError, match=r"int64.*\['i'\]"):
        rg.jacfwd(lambda p: p["i"] * 1.0)({"i": np.arange(3)})


def test_what_does_not_depend_on_an_argument_has_a_jacobian_of_the_same_dtype():
    """That of reverse passes has the dtype of the argument, that of forward passes the result's."""
    x, c = rg.ones(2), rg.ones(3, dtype=rg.float64)
    for f in (lambda x: c, lambda x: c * x.sum()):
        assert (rg.jacrev(f)(x).dtype, rg.jacfwd(f)(x).dtype) == (rg.float32, rg.float64)
