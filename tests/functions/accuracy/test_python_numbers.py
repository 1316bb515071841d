"""Python numbers stay exact until the dtype of a result rounds them, once: against NumPy."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F

F32, F64 = np.float32, np.float64
PLACES = 4


def literals(count: int, seed: int, low: float = -5, high: float = 5) -> list[float]:
    """Numbers as people write them, of few digits; some of them ints."""
    rng = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(count):
        x = round(float(rng.uniform(low, high)), int(rng.integers(0, PLACES)))
        found.append(int(x) if rng.random() < 0.2 else x)
    return found


def same(found: rg.Tensor, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_what_people_noticed():
    assert rg.arange(0, 1, 0.01).shape == (100,)
    assert rg.arange(0.1, 0.4, 0.1, dtype=rg.float64).tolist() == np.arange(0.1, 0.4, 0.1).tolist()
    x = rg.linspace(0.1, 1.0, 3, dtype=rg.float64)
    assert (x[0].item(), x[-1].item()) == (0.1, 1.0)


def test_arange_and_linspace_of_random_literals():
    starts, stops, steps = (literals(400, seed) for seed in range(3))
    for i, (a, b, c) in enumerate(zip(starts, stops, steps, strict=True)):
        if c:
            whole = all(isinstance(v, int) for v in (a, b, c))
            expected = np.arange(a, b, c, dtype=F64)
            same(rg.arange(a, b, c, dtype=rg.float64), expected)
            same(rg.arange(a, b, c, dtype=None if whole else rg.float32),
                 expected.astype(np.int64 if whole else F32))  # fmt: skip
        expected = np.linspace(a, b, i % 9, endpoint=bool(i % 2))
        same(rg.linspace(a, b, i % 9, endpoint=bool(i % 2), dtype=rg.float64), expected)
        same(rg.linspace(a, b, i % 9, endpoint=bool(i % 2)), expected.astype(F32))


@pytest.mark.slow
def test_a_named_number_of_elements_gives_the_same():
    for a, b in zip(literals(20, 3), literals(20, 4), strict=True):
        f = rg.jit(
            lambda x, a=a, b=b: rg.linspace(a, b, x.shape[0], dtype=rg.float64), shapes={"x": "N"}
        )
        same(f(rg.ones(7)), np.linspace(a, b, 7))


X = np.random.default_rng(7).uniform(0.2, 2, 6)
BEYOND = [2**53 + 1, -(2**53) - 1, 2**60 + 2**36 + 1, 2**63 - 1, -(2**63)]

# A function of an array x and a number s, and the same in NumPy: for float64, where digits show.
WITH_A_NUMBER: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "full": (lambda x, s: rg.full((2,), s, dtype=x.dtype), lambda x, s: np.full(2, s, x.dtype)),
    "full_like": (rg.full_like, np.full_like),
    "tensor": (
        lambda x, s: rg.tensor([s, 1], dtype=x.dtype), lambda x, s: np.array([s, 1], x.dtype)
    ),
    "asarray": (lambda x, s: rg.asarray(s, dtype=x.dtype), lambda x, s: np.asarray(s, x.dtype)),
    "in a list": (
        lambda x, s: rg.asarray([x[0], s]), lambda x, s: np.array([x[0], x.dtype.type(s)])
    ),
    "in two": (
        lambda x, s: rg.asarray([[x[0], 1], [s, 2]]),
        lambda x, s: np.array([[x[0], 1], [s, 2]], x.dtype),
    ),
    "add": (lambda x, s: x + s, lambda x, s: x + x.dtype.type(s)),
    "multiply": (lambda x, s: s * x, lambda x, s: x.dtype.type(s) * x),
    "a list": (lambda x, s: x * [s] * 6, lambda x, s: x * x.dtype.type([s]) * x.dtype.type(6)),
    "compare": (lambda x, s: x == s, lambda x, s: x == x.dtype.type(s)),
    "maximum": (lambda x, s: rg.maximum(x, s), lambda x, s: np.maximum(x, x.dtype.type(s))),
    "clip": (lambda x, s: rg.clip(x, s, s + 0.7), lambda x, s: np.clip(x, s, s + 0.7)),
    "where": (lambda x, s: rg.where(x > 1, x, s), lambda x, s: np.where(x > 1, x, x.dtype.type(s))),
    "where, a list": (
        lambda x, s: rg.where(x > 1, x, [s]), lambda x, s: np.where(x > 1, x, x.dtype.type([s]))
    ),
    "pad": (
        lambda x, s: F.pad(x, (1, 2), value=s), lambda x, s: np.pad(x, (1, 2), constant_values=s)
    ),
    "stack": (
        lambda x, s: rg.stack([x[0], s]), lambda x, s: np.stack([x[0], x.dtype.type(s)])
    ),
    "concat": (
        lambda x, s: rg.concat([x, [s]]), lambda x, s: np.concatenate([x, x.dtype.type([s])])
    ),
    "set": (
        lambda x, s: x.at[1].set(s), lambda x, s: np.concatenate([x[:1], x.dtype.type([s]), x[2:]])
    ),
    "isin": (lambda x, s: rg.isin(rg.concat([x, [s]]), [s]), lambda x, s: np.arange(7) == 6),
    "vecdot": (
        lambda x, s: rg.vecdot(x, [s] * 6), lambda x, s: np.vecdot(x, x.dtype.type([s] * 6))
    ),
    "searchsorted": (
        lambda x, s: rg.searchsorted(rg.sort(x), [s]), lambda x, s: np.searchsorted(np.sort(x), [s])
    ),
    "leaky_relu": (lambda x, s: F.leaky_relu(-x, s), lambda x, s: -x * x.dtype.type(s)),
    "threshold": (
        lambda x, s: F.threshold(x, 1, s), lambda x, s: np.where(x > 1, x, x.dtype.type(s))
    ),
    "huber": (
        lambda x, s: F.huber_loss(x, 9 * x, delta=abs(s) / 99 + 0.001),
        lambda x, s: np.mean((8 * x - 0.5 * (abs(s) / 99 + 0.001)) * (abs(s) / 99 + 0.001)),
    ),
    "jit": (rg.jit(lambda x, s: x * s), lambda x, s: x * x.dtype.type(s)),
    "vmap": (lambda x, s: rg.vmap(lambda x: x * s)(x), lambda x, s: x * x.dtype.type(s)),
    "scan": (
        lambda x, s: rg.scan(lambda c, x: (c + 0 * x, c * x), s, x)[1],
        lambda x, s: x * x.dtype.type(s),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_A_NUMBER)
def test_numbers_next_to_float64(name):
    f, g = WITH_A_NUMBER[name]
    x = rg.tensor(X)
    for s in literals(8, 11, 0.0, 0.3):
        found, expected = f(x, s), np.asarray(g(X, s))
        assert found.dtype == expected.dtype
        if expected.ndim:
            np.testing.assert_array_equal(found.numpy(), expected)
        else:
            assert abs(found.item() - expected) <= 1e-15 * abs(expected)


def test_numbers_take_the_dtype_of_half_precision():
    for kind in ("float16", "bfloat16"):
        x = rg.ones(2, dtype=kind)
        for y in (x * 0.1, rg.stack([x[0], 0.1]), rg.where(x > 0, 0.1, x), rg.full_like(x, 0.1)):
            assert y.dtype == kind
            expected = np.asarray(0.1, ml_dtypes.bfloat16 if kind == "bfloat16" else np.float16)
            assert float(y[-1]) == float(expected)


@pytest.mark.parametrize("n", BEYOND)
def test_large_integers(n):
    assert rg.tensor(n).item() == rg.full((1,), n)[0].item() == rg.asarray([n, 0])[0].item() == n
    assert (rg.tensor([n]) - n).tolist() == [0]
    assert rg.jit(lambda x, n: x + n)(rg.tensor([0]), n).tolist() == [n]
    assert rg.arange(n, n + 1 if n < 2**63 - 1 else n, 1).tolist() == [n][: n < 2**63 - 1]
    x = np.asarray(n)
    for kind in (F32, F64):
        zero = rg.tensor(kind(0))
        assert rg.tensor(n, dtype=kind).item() == x.astype(kind)
        assert (zero + n).item() == rg.full((), n, dtype=kind).item() == x.astype(kind)


def test_integers_of_64_bits_without_a_sign():
    n = 2**63 + 1
    u = rg.tensor([n, 1], dtype=rg.uint64)
    assert u.tolist() == [n, 1]
    assert rg.tensor([[n], [1]], dtype="uint64").tolist() == [[n], [1]]
    assert rg.full((1,), 2**64 - 1, dtype="uint64").tolist() == [2**64 - 1]
    assert (u == n).tolist() == rg.jit(lambda u, n: u == n)(u, n).tolist() == [True, False]
    for bad in ([n, -1], [2**64], [n, 2**64]):
        with pytest.raises(rg.DTypeError, match="does not fit into uint64"):
            rg.tensor(bad, dtype=rg.uint64)
    assert rg.tensor(10**20, dtype=rg.float64).item() == 1e20
    assert rg.jit(lambda x, n: x + n)(rg.tensor(0.0), 10**20).item() == F32(1e20)


def test_what_has_no_end_is_counted_by_nobody():
    for ends in ((0, 1e308, 1e-308), (-(10**400), 0.5, 0.1)):
        with pytest.raises(rg.ShapeError, match="more numbers than can be counted"):
            rg.arange(*ends)


def test_random_numbers_and_initial_values_take_numbers_as_they_are():
    low, high = 0.1, 0.7
    u = rg.random.Generator(3).uniform((50,), dtype="float64").numpy()
    moved = rg.random.Generator(3).uniform((50,), low, high, dtype="float64")
    same(moved, u * (high - low) + low)
    z = rg.random.Generator(3).normal((50,), dtype="float64").numpy()
    same(rg.random.Generator(3).normal((50,), low, high, dtype="float64"), z * high + low)
    same(rg.nn.init.constant((2,), 0.1, dtype="float64"), np.full(2, 0.1))


def test_an_optimizer_takes_its_options_as_they_are():
    for lr in (0.1, 0.003, 1e-7):
        w = rg.tensor(X, requires_grad=True)
        optimizer = rg.optim.SGD([w], lr=lr)
        (w * w).sum().backward()
        optimizer.step()
        np.testing.assert_array_equal(w.detach().numpy(), X - lr * (2 * X))
        pure = rg.optim.SGD(lr=lr)
        new, _ = pure.update([rg.tensor(X)], [rg.tensor(2 * X)], pure.init([rg.tensor(X)]))
        np.testing.assert_array_equal(new[0].numpy(), X - lr * (2 * X))
        assert math.isclose(lr, pure.current_lr, rel_tol=0)
