"""Functions of Python numbers alone: weak values, which take the dtype of what they meet."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, 2.0, 1.7])
CHAINS: dict[str, tuple[Callable[[], Any], complex]] = {
    "log": (lambda: rg.log(2 * rg.pi), math.log(2 * math.pi)),
    "half of log": (lambda: 0.5 * rg.log(2 * rg.pi), 0.5 * math.log(2 * math.pi)),
    "an int": (lambda: rg.sqrt(10), math.sqrt(10)),
    "two ints": (lambda: rg.divide(1, 3), 1 / 3),
    "two numbers": (lambda: rg.pow(2.5, 0.3), 2.5**0.3),
    "a chain": (lambda: rg.sqrt(1 + rg.exp(rg.sin(2.0))), math.sqrt(1 + math.exp(math.sin(2.0)))),
    "reflected": (lambda: 1 / (3 - rg.exp(0.1)) ** 2, 1 / (3 - math.exp(0.1)) ** 2),
    "negative": (lambda: -abs(-rg.exp(0.1)), -math.exp(0.1)),
    "where": (lambda: rg.where(rg.exp(0.1) > 1, rg.exp(0.1), 0.1), math.exp(0.1)),
    "clip": (lambda: rg.clip(rg.exp(0.1), 0.0, 0.7), 0.7),
    "a sum": (lambda: rg.sum(rg.exp(0.1)), math.exp(0.1)),
    "special": (lambda: rg.special.gammaln(0.1), math.lgamma(0.1)),
    "detached": (lambda: rg.exp(0.1).detach() * 3, math.exp(0.1) * 3),
    "stopped": (lambda: rg.stop_gradient(rg.exp(0.1)), math.exp(0.1)),
    "a gradient": (lambda: rg.grad(rg.sin)(0.7), math.cos(0.7)),
    "a second one": (lambda: rg.grad(rg.grad(rg.sin))(0.7), -math.sin(0.7)),
    "a tangent": (lambda: rg.jvp(rg.exp, (0.1,), (0.3,))[1], 0.3 * math.exp(0.1)),
    "complex": (lambda: rg.exp(0.1j), complex(math.cos(0.1), math.sin(0.1))),
}


def close(found: rg.Tensor, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=4e-16)


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.sample(8)
def test_no_digit_is_lost_next_to_float64(name, looked):
    make, exact = CHAINS[name]
    c = make()
    if looked:  # which changes nothing
        assert c.item() == np.asarray(exact, c.dtype)
        assert str(c) == str(rg.tensor(exact))
    x = rg.tensor(X)
    close(c * x, exact * X)
    close(x + (c + 1), X + (exact + 1))
    close(c.astype(rg.complex128 if isinstance(exact, complex) else rg.float64), exact)
    close(rg.full((2,), c, dtype=(c * x).dtype), np.full(2, exact))
    close(rg.stack([c, x[0]])[0], np.asarray(exact))
    close(rg.jit(lambda x: make() * x)(x), exact * X)
    close(rg.jit(lambda x, c: c * x)(x, c), exact * X)
    close(rg.vmap(lambda x: make() * x)(x), exact * X)
    if not isinstance(exact, complex):
        close(rg.grad(lambda x: (c * x).sum())(x), np.full(3, exact))
        close(rg.jvp(lambda x: make() * x, (x,), (x,))[1], exact * X)


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_seen_is_the_default_dtype(name):
    make, exact = CHAINS[name]
    c = make()
    kind: Any = np.complex64 if isinstance(exact, complex) else np.float32
    assert c.dtype == c.numpy().dtype == kind
    assert c.numpy() == kind(exact)
    assert (rg.tensor([1, 2]) * c).dtype == (rg.ones(2) * c).dtype == kind
    for half in ("float16", "bfloat16"):
        if kind is np.float32:
            x = rg.ones(2, dtype=half)
            assert (x * c).dtype == (c - x).dtype == rg.stack([x[0], c]).dtype == half
            assert rg.jit(lambda x, c: x * c)(x, c).dtype == half


def test_numbers_given_to_jit_stay_exact_through_all_that_is_made_of_them():
    x = rg.tensor(X)
    f = rg.jit(lambda x, s, n: rg.exp(s * 3) * x + s / n)
    close(f(x, 0.1, 7), math.exp(0.1 * 3) * X + 0.1 / 7)
    assert f(rg.ones(2, dtype="float16"), 0.1, 7).dtype == rg.float16
    close(rg.jit(lambda x, s: rg.where(s == 0.1, x, s))(x, 0.1), X)
    close(rg.jit(lambda x, s: rg.scan(lambda c, x: (c + x, c * x), s, x)[1])(x, 0.1),
          np.cumsum([0.1, *X])[:3] * X)  # fmt: skip
    close(rg.jit(lambda s: rg.asarray(s, dtype=rg.float64))(0.1), np.float64(0.1))


def total(s: Any, x: Any) -> Any:
    return (rg.exp(s) * x).sum()


def test_derivatives_with_respect_to_python_numbers():
    """Of a function in double precision they are in double precision, too."""
    x, exact = rg.tensor(X), math.exp(0.1) * X.sum()
    for found in (
        rg.grad(total)(0.1, x),
        rg.value_and_grad(total)(0.1, x)[0],
        rg.vjp(total, 0.1, x)[1](rg.tensor(np.array(1.0)))[0],
        rg.jvp(lambda s: total(s, x), (0.1,), (1.0,))[1],
        rg.linearize(lambda s: total(s, x), 0.1)[1](1.0),
        rg.jacrev(total)(0.1, x),
        rg.jacfwd(total)(0.1, x),
        rg.hessian(total)(0.1, x),
        rg.grad(rg.grad(total))(0.1, x),
        rg.jit(rg.grad(total))(0.1, x),
        rg.grad(rg.jit(total))(0.1, x),
    ):
        assert found.dtype == rg.float64
        assert found.item() == pytest.approx(exact, rel=1e-15)
    close(rg.vmap(lambda x: rg.grad(lambda s: rg.exp(s) * x)(0.1))(x), math.exp(0.1) * X)
    single = rg.grad(total)(0.1, rg.tensor(X, dtype="float32"))
    assert (single.dtype, single.item()) == (rg.float32, pytest.approx(exact, rel=1e-6))
    given = rg.jvp(rg.exp, (0.1,), (rg.tensor(1.0),))[1]
    assert given.item() == np.float32(math.exp(0.1))


def test_a_descent_from_a_python_number_stays_small():
    at: Any = 5.0
    for _ in range(200):
        at = at - 0.1 * rg.grad(lambda x: (x - 2.1) ** 2)(at)
    assert len(list(rg.trace(lambda: at).nodes)) < 50
    assert (rg.tensor(X) - at).tolist() == pytest.approx(list(X - 2.1), rel=1e-14)


def test_what_decides():
    x = rg.tensor(X)
    for strong in (rg.tensor(0.1), rg.asarray(0.1), rg.exp([0.1])[0], rg.exp(np.float32(0.1))):
        assert (strong * x).dtype == rg.float64
        assert (strong * rg.ones(2, dtype="float16")).dtype == rg.float32
    assert rg.exp(np.float64(0.1)).dtype == rg.float64
    assert rg.exp(0.1).astype(rg.float32).astype(rg.float64).item() == float(
        np.float32(math.exp(0.1))
    )
    assert rg.add(1, 2).dtype == rg.int64
    assert (rg.exp(0.1) == math.exp(0.1)).item()  # not as float32 would compare


SQUARE = lambda t: t * t
OF_SQUARES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "vjp": (lambda t: rg.vjp(SQUARE, t)[1](t)[0], lambda v: 2 * v * v),
    "vjp of ones": (lambda t: rg.vjp(SQUARE, t)[1](rg.ones_like(t))[0], lambda v: 2 * v),
    "jvp": (lambda t: rg.jvp(SQUARE, (t,), (t,))[1], lambda v: 2 * v * v),
    "linearize": (lambda t: rg.linearize(SQUARE, t)[1](t), lambda v: 2 * v * v),
    "hvp": (
        lambda t: rg.hvp(lambda s: rg.sum(s * s * s), (t,), (t,))[0], lambda v: 6 * v * v,
    ),
    "grad of jit": (rg.grad(rg.jit(lambda t: rg.sum(t * t))), lambda v: 2 * v),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_SQUARES)
def test_transforms_of_weak_scalars_and_arrays(name):
    """An array that numbers alone have made is weak, too, and not taken for a number."""
    found, expected = OF_SQUARES[name]
    x = math.log(3.0)
    for weak, exact in (
        (rg.log(3.0), np.asarray(x)),
        (rg.expand_dims(rg.log(3.0), 0), np.asarray([x])),
        (rg.linspace(rg.log(3.0) * 0, rg.log(3.0), 3), np.array([0, x / 2, x])),
    ):
        y = found(weak)
        assert (y.dtype, y.shape) == (rg.float32, exact.shape)
        assert rg.jit(SQUARE)(weak).tolist() == (exact * exact).astype(np.float32).tolist()
        close(y * rg.ones(1, dtype=rg.float64), expected(exact) * np.ones(1))


def test_a_compiled_function_of_weak_arrays():
    f = rg.jit(lambda a, b: a * b)
    for n in (3, 5, 3):
        w = rg.geomspace(1.0, 4.0, n)
        exact = np.geomspace(1.0, 4.0, n)
        assert (f(w, w).dtype, f(w, 2.0).dtype, f(w, w[0]).dtype) == (rg.float32,) * 3
        for dtype in (rg.float32, rg.float64):
            assert f(w, rg.ones(n, dtype=dtype)).dtype == dtype
        np.testing.assert_allclose(f(w, rg.ones(n, dtype=rg.float64)).numpy(), exact, rtol=1e-15)
    named = rg.jit(lambda a: a + a.shape[0], shapes={"a": "N"})
    assert named(rg.geomspace(1.0, 1.0, 3)).tolist() == [4.0] * 3
    kept = rg.geomspace(1.0, 1.0, 2)
    assert rg.jit(lambda a: a * 2, donate=(0,))(kept).tolist() == [2.0, 2.0]


def test_the_pullback_at_a_python_number():
    assert rg.vjp(lambda t: t * t, 3.0)[1](1.0)[0].item() == 6.0
    assert rg.vjp(lambda t: t * t, 3.0)[1](rg.tensor(2.0))[0].item() == 12.0
