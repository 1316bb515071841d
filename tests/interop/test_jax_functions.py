"""as_jax, wrap_jax: values and derivatives are those of the same function there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.interop import as_jax, wrap_jax


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax")


def cubes(xp: Any) -> Callable[..., Any]:
    def f(x: Any, w: Any, k: float) -> Any:
        return {"y": xp.sin(x @ w) * k, "place": x.argmax(), "cubes": (x**3).sum()}

    return f


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(x: Any, w: Any) -> Any:
        found = f(x, w, 2.0)
        return (found["y"] ** 2).sum() + found["cubes"]

    return of


RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))


def close(found: Any, expected: Any, rtol: float = 1e-11) -> None:
    leaves = [pytree.flatten(t)[0] for t in (found, expected)]
    for a, b in zip(*leaves, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


@pytest.mark.slow
def test_as_jax_under_every_transform(jax: Any) -> None:
    with jax.enable_x64(True):
        x, w = jax.numpy.array(X), jax.numpy.array(W)
        calls = []

        def ours(x: Any, w: Any, k: float) -> Any:
            calls.append(x.shape)
            return cubes(rg)(x, w, k)

        f, theirs = as_jax(ours), cubes(jax.numpy)
        close(f(x, w, 2.0), theirs(x, w, 2.0))
        close(jax.jit(lambda x, w: f(x, w, 2.0))(x, w), theirs(x, w, 2.0))
        both = jax.grad(loss(f), (0, 1))
        close(both(x, w), jax.grad(loss(theirs), (0, 1))(x, w))
        close(jax.jit(both)(x, w), both(x, w))
        second = jax.jit(jax.jacrev(jax.grad(loss(f))))(x, w)
        close(second, jax.hessian(loss(theirs))(x, w))
        stack, others = jax.numpy.stack([x, 2 * x, x + 1]), jax.numpy.stack([w, w + 1])
        del calls[:]
        close(jax.vmap(loss(f), (0, None))(stack, w), jax.vmap(loss(theirs), (0, None))(stack, w))
        assert calls == [(4, 3)]  # once for all samples
        nested = [jax.vmap(jax.vmap(jax.grad(loss(g)), (0, None)), (None, 0)) for g in (f, theirs)]
        close(jax.jit(nested[0])(stack, others), nested[1](stack, others))
        looped = jax.lax.scan(lambda c, _: (as_jax(rg.sin)(c), None), x, None, length=3)[0]
        close(looped, np.sin(np.sin(np.sin(X))))


def test_as_jax_dtypes(jax: Any) -> None:
    """Cotangents of complex numbers follow JAX's convention; integers are as wide as JAX's."""
    z, g = jax.numpy.array([1 + 2j, 3 - 1j]), jax.numpy.array([1 + 1j, 2 - 1j])
    backs = [jax.vjp(f, z)[1](g)[0] for f in (as_jax(lambda z: z * z * (1 + 2j)),
                                              lambda z: z * z * (1 + 2j))]  # fmt: skip
    close(backs[0], backs[1], 1e-6)
    x = jax.numpy.ones(2, "bfloat16")
    assert jax.grad(lambda x: as_jax(rg.square)(x).sum())(x).dtype == x.dtype
    index = jax.numpy.array([0, 0, 1])
    f = as_jax(lambda x, i: (x[i] * 3.0).sum())
    assert jax.grad(f)(jax.numpy.ones(2), index).tolist() == [6.0, 3.0]
    count = as_jax(lambda x: (x > 0).sum())(jax.numpy.ones(3))
    assert (count.dtype, count.item()) == (np.int32, 3)
    with pytest.raises(rg.DTypeError, match=r"return y\.astype\(rg\.float32\)"):
        as_jax(lambda x: x.astype(rg.float64))(x)
    with pytest.raises(Exception, match="does not hold the result"):
        as_jax(lambda x: x.astype(rg.int64) + 2**40)(x).block_until_ready()
    assert as_jax(lambda x: {"n": None, "k": 3, "x": x})(x)["k"] == 3
    with pytest.raises(rg.ArgumentError, match="as_jax takes a function"):
        as_jax(3)  # type: ignore[arg-type]


def test_as_jax_of_large_arrays(jax: Any) -> None:
    """Which JAX's threads share: a callback that waits for them would never end."""
    f = as_jax(lambda x: (x * 2).sum())
    x = jax.numpy.ones((1000, 500))
    assert jax.jit(lambda x: f(x * 1.5 + 0))(x).item() == 1.5e6
    assert jax.jit(jax.grad(lambda x: f(x * 1.5)))(x)[0, 0].item() == 3.0


@pytest.mark.slow
def test_wrap_jax_under_every_transform(jax: Any) -> None:
    x, w = rg.tensor(X), rg.tensor(W)
    f, ours = wrap_jax(cubes(jax.numpy)), cubes(rg)
    close(f(x, w, 2.0), ours(x, w, 2.0))
    assert f(x, w, 2.0)["y"].dtype is rg.float64
    assert f(x.astype(rg.float32), W.astype(np.float32), 2.0)["y"].dtype is rg.float32
    expected = rg.grad(loss(ours), (0, 1))(x, w)
    close(rg.grad(loss(f), (0, 1))(x, w), expected)
    close(rg.jit(rg.grad(loss(f), (0, 1)))(x, w), expected)
    close(rg.hessian(loss(f))(x, w), rg.hessian(loss(ours))(x, w))
    close(rg.jvp(loss(f), (x, w), (x, w)), rg.jvp(loss(ours), (x, w), (x, w)))
    mapped = [rg.vmap(rg.grad(loss(g)), (0, None))(rg.stack([x, 2 * x]), w) for g in (f, ours)]
    close(*mapped)
    third = rg.grad(rg.grad(rg.grad(wrap_jax(jax.numpy.sin))))
    assert third(rg.tensor(0.3, rg.float64)).item() == pytest.approx(-np.cos(0.3), rel=1e-14)
    z = rg.tensor([1 + 2j, 3 - 1j])
    _, back = rg.vjp(wrap_jax(lambda z: z * z * (1 + 2j)), z)
    assert back(rg.tensor([1 + 1j, 2 - 1j]))[0].tolist() == [2 - 14j, 10 - 30j]
    taken = wrap_jax(lambda x, i: x[i])
    assert rg.grad(lambda x: taken(x, rg.tensor([0, 0, 1])).sum())(rg.ones(2)).tolist() == [
        2.0,
        1.0,
    ]
    with pytest.raises(rg.TraceError, match="without the values"):
        rg.jit(wrap_jax(lambda x: x[x > 0]))(rg.ones(2))
