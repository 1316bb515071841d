"""Long sums against float64: errors in units of eps * log2(n) of the sum of magnitudes, for every
operation that adds up, along every axis, on both backends. What adds one number after the other is
off by thousands of these units; sums in pairs, or in blocks, stay within a few."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from tests.sampling import mostly_exhaustive

Array = np.ndarray[Any, Any]
EPS = 2.0**-23
UNITS = 2.5
KINDS: dict[str, Callable[[Any], Array]] = {
    "0.1": lambda shape: np.full(shape, 0.1, np.float32),
    "1": lambda shape: np.ones(shape, np.float32),
    "uniform": lambda shape: np.random.default_rng(0).random(shape, np.float32),
    "normal": lambda shape: np.random.default_rng(1).standard_normal(shape, np.float32),
}


def units(found: Any, wanted: Array, magnitudes: Array, n: int) -> float:
    """The largest error."""
    error = np.abs(np.asarray(found, np.float64) - wanted)
    unit = EPS * math.log2(max(n, 2)) * np.maximum(magnitudes, 1e-300)
    return float(np.max(error / unit, initial=0))


def shapes(size: int) -> list[tuple[int, ...]]:
    """So many elements in rows and columns, long and short."""
    side = 1 << (size.bit_length() - 1) // 2
    return [(size,), (side, size // side), (size // 8, 8), (3, size // 3), (size // 48, 3, 16),
            (16, size // 64, 4)]  # fmt: skip


def axes_of(rank: int) -> list[tuple[int, ...]]:
    return [a for k in range(rank) for a in itertools.combinations(range(rank), k + 1)]


def check_reductions(kind: str, size: int, run: Callable[..., Any]) -> None:
    for shape in shapes(size):
        x = KINDS[kind](shape)
        wide = x.astype(np.float64)
        square = wide * wide
        some = axes_of(len(shape))

        def reduced(x: Any, some: Sequence[tuple[int, ...]] = some) -> list[Any]:
            return [
                y
                for a in some
                for y in (rg.sum(x, axis=a), rg.mean(x, axis=a), rg.mean(x * x, axis=a),
                          rg.var(x, axis=a), rg.linalg.vector_norm(x, axis=a),
                          rg.logsumexp(x, axis=a))
            ]  # fmt: skip

        found = iter(run(reduced, x))
        for a in some:
            n = math.prod(shape[i] for i in a)
            total, sizes, squares = wide.sum(a), np.abs(wide).sum(a), square.sum(a)
            norm = np.sqrt(squares)
            of_exponentials = np.log(np.exp(wide).sum(a))
            wanted = [
                (total, sizes), (total / n, sizes / n), (squares / n, squares / n),
                (wide.var(a), squares / n), (norm, norm),
                (of_exponentials, np.abs(of_exponentials) + 1),
            ]  # fmt: skip
            for which, (value, magnitudes) in enumerate(wanted):
                got = units(next(found), value, magnitudes, n)
                assert got < UNITS, (kind, shape, a, which, got)


def check_products(kind: str, size: int, run: Callable[..., Any]) -> None:
    make = KINDS[kind]
    for m, k, n in ((1, size, 1), (2, size // 4, 3), (16, size // 32, 16), (size // 64, 4, 9)):
        a, b = make((m, k)), make((k, n))
        wide = a.astype(np.float64) @ b.astype(np.float64)
        magnitudes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)

        def products(a: Any, b: Any) -> list[Any]:

            return [a @ b, rg.einsum("mk,kn->mn", a, b), (b.mT @ a.mT).mT]

        for y in run(products, a, b):
            got = units(y, wide, magnitudes, k)
            assert got < UNITS, (kind, m, k, n, got)


def check_losses(kind: str, size: int, run: Callable[..., Any]) -> None:
    rows = size // 4
    x, t, g = (KINDS[kind]((rows, 4)) * np.float32(s) for s in (1, 0.5, 0.7))
    w, b = KINDS[kind]((4, 4)), KINDS[kind]((4,))
    labels = np.random.default_rng(2).integers(0, 4, rows)
    wide, other = x.astype(np.float64), t.astype(np.float64)

    def losses(x: Any, t: Any, g: Any, w: Any, b: Any) -> list[Any]:
        gw, gb = rg.grad(lambda w, b: ((x @ w + b) * g).sum(), argnums=(0, 1))(w, b)
        values = F.mse_loss(x, t), F.l1_loss(x, t), F.cross_entropy(x, labels)
        return [*values, gw, gb, rg.linalg.vecdot(x, t, axis=0)]

    logp = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    expected = [
        ((wide - other) ** 2).mean(), np.abs(wide - other).mean(),
        -logp[np.arange(rows), labels].mean(), wide.T @ g, g.sum(0, np.float64),
        (wide * other).sum(0),
    ]  # fmt: skip
    size_g = np.abs(g).astype(np.float64)
    magnitudes = [
        *expected[:2], np.abs(logp).mean(), np.abs(wide).T @ size_g, size_g.sum(0),
        np.abs(wide * other).sum(0),
    ]  # fmt: skip
    found = run(losses, x, t, g, w, b)
    for which, (y, value, most) in enumerate(zip(found, expected, magnitudes, strict=True)):
        got = units(y, value, most, rows)
        assert got < UNITS, (kind, which, got)


def compiled(f: Callable[..., Any], *arrays: Array) -> Any:
    return rg.jit(f)(*arrays)


def eager(f: Callable[..., Any], *arrays: Array) -> Any:
    return f(*map(rg.asarray, arrays))


def by_reference(f: Callable[..., Any], *arrays: Array) -> Any:
    with rg.backend("reference"):
        return rg.jit(f)(*arrays)


CHECKS = [check_reductions, check_products, check_losses]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("run", [compiled, eager, by_reference])
@pytest.mark.sample(3)
def test_constants_and_random_numbers(check: Any, run: Any) -> None:
    check("0.1", 1 << 16, run)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("run", [compiled, eager, by_reference])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", mostly_exhaustive((20, 23, 26), 1, "size"))
def test_up_to_many_millions(check: Any, run: Any, kind: str, size: int) -> None:
    with rg.num_threads(1 + size % 2):
        check(kind, 1 << size, run)


@pytest.mark.slow
def test_a_mean_of_many_equal_numbers() -> None:
    """Of which the sum is far from each of them: 1 percent off, one after the other."""
    x = np.full((4096, 4096), 0.1, np.float32)
    assert abs(rg.mean(x).item() - 0.1) < 1e-7
    assert abs(rg.jit(lambda x: (x * x).mean())(x).item() - 0.01) < 1e-8


@pytest.mark.slow
def test_a_sum_of_ones_that_no_array_holds() -> None:
    for n in (1 << 25, 1 << 30):
        assert rg.jit(lambda n=n: rg.sum(rg.ones((n,))))().item() == n


@pytest.mark.slow
def test_conv_weight_gradients() -> None:
    """Of all forms: channels, groups, a stride, one channel; sums over images and places."""
    rng = np.random.default_rng(0)
    kinds: list[Callable[[Any], Array]] = [KINDS["0.1"], lambda s: rng.random(s, np.float32)]
    for make in kinds:
        for channels, groups, stride in ((4, 1, 1), (4, 4, 1), (6, 2, 2), (1, 1, 1)):
            x, w = make((32, channels, 18, 18)), make((2 * groups, channels // groups, 3, 3))

            def loss(w: Any, x: Any, groups: int = groups, stride: int = stride) -> Any:
                return F.conv2d(x, w, stride=stride, groups=groups).sum()

            places = range(0, 16, stride)
            terms = np.stack([
                x[:, :, i : i + 3, j : j + 3].astype(np.float64).sum(0)
                for i in places for j in places
            ]).sum(0)  # fmt: skip
            own = terms.reshape(groups, 1, channels // groups, 3, 3)
            wanted = np.broadcast_to(own, (groups, 2, *own.shape[2:])).reshape(w.shape)
            for run in (compiled, by_reference):
                found = run(rg.grad(loss), w, x)
                got = units(found, wanted, wanted, 32 * len(places) ** 2)
                assert got < UNITS, (channels, groups, stride, got)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_added_up_in_float32(dtype: str) -> None:
    n = 1 << 20
    x = rg.full((n,), 0.1, dtype=dtype)
    one = float(x[0].item())
    bound = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    for run in (lambda f: rg.jit(f)(x), lambda f: f(x)):
        assert abs(run(rg.mean).item() / one - 1) <= bound
        assert run(rg.var).item() <= 1e-9
        assert abs(run(rg.linalg.vector_norm).item() / (one * math.sqrt(n)) - 1) <= bound
        assert abs(run(rg.softmax)[0].item() * n - 1) <= (bound if dtype == "bfloat16" else 0.5)
        wide = run(lambda x: rg.mean(x * 1000, axis=0)).item()
        assert math.isfinite(wide)
        assert abs(wide / (1000 * one) - 1) <= 2 * bound


def test_under_vmap_and_in_loops() -> None:
    x = np.full((3, 1 << 17), 0.1, np.float32)
    wanted = x.astype(np.float64).sum(1)
    sums = rg.jit(rg.vmap(rg.sum))(x)
    assert units(sums, wanted, wanted, x.shape[1]) < UNITS
    columns = rg.jit(lambda x: rg.vmap(rg.sum, in_axes=1)(x))(np.ascontiguousarray(x.T))
    assert units(columns, wanted, wanted, x.shape[1]) < UNITS

    def step(carry: Any, row: Any) -> Any:
        return carry + rg.sum(row) / row.shape[0], rg.sum(row)

    _, each = rg.jit(lambda x: rg.scan(step, rg.asarray(0.0), x))(x)
    assert units(each, wanted, wanted, x.shape[1]) < UNITS
