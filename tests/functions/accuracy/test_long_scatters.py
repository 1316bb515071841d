"""Scatters and running sums of any length have the error of a block: values against sums in twice
the precision, in units of `eps * log2(n)` of what is added up in absolute value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn, nn

Array = np.ndarray[Any, Any]
PLACES = 37
KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "tenths": lambda rng, n: np.full(n, 0.1),
    "ones": lambda rng, n: np.ones(n),
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
}
IDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "one": lambda rng, n: np.full(n, 3),
    "skewed": lambda rng, n: np.minimum(rng.geometric(0.5, n) - 1, PLACES - 1),
    "many": lambda rng, n: rng.integers(0, PLACES, n),
}


def totals(x: Array, ids: Array) -> Array:
    """The sums of segments, exact to the last digit of float64."""
    wide = np.longdouble if x.dtype == np.float64 else np.float64
    found = np.zeros(PLACES, wide)
    for k in range(PLACES):
        found[k] = x[ids == k].astype(wide).sum()  # pairwise
    return found


def assert_small(found: Any, exact: Array, size: Array, n: int, dtype: Any) -> None:
    """Errors within one `eps * log2(n)` of the sum of absolute values."""
    bound = np.finfo(dtype).eps * math.log2(n) * size
    error = np.abs(np.asarray(found).astype(exact.dtype) - exact)
    assert (error <= bound).all(), float((error / np.maximum(bound, 1e-300)).max()) * math.log2(n)


# Each is the sums of segments in another way, from numbers and ids.
SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "segment_sum": lambda x, ids: rg.segment_sum(x, ids, PLACES),
    "columns": lambda x, ids: rg.segment_sum(x[:, None], ids, PLACES)[:, 0],
    "at": lambda x, ids: rg.zeros(PLACES, dtype=x.dtype).at[ids].add(x),
    "last axis": lambda x, ids: rg.scatter_add(
        rg.zeros((2, PLACES), dtype=x.dtype), ids, rg.stack([x, x]), axis=1
    )[1],
    "middle axis": lambda x, ids: rg.scatter_add(
        rg.zeros((2, PLACES, 3), dtype=x.dtype), ids, rg.broadcast_to(x[:, None], (2, *x.shape, 3)),
        axis=1,
    )[1, :, 2],
    "bincount": lambda x, ids: rg.bincount(ids, weights=x, length=PLACES),
    "histogram": lambda x, ids: rg.histogram(
        ids, bins=np.arange(PLACES + 1) - 0.5, weights=x
    )[0],
    "gradient of take": lambda x, ids: rg.grad(lambda t: (rg.take(t, ids) * x).sum())(
        rg.zeros(PLACES, dtype=x.dtype)
    ),
    "gradient of embedding": lambda x, ids: rg.grad(
        lambda t: (nn.functional.embedding(ids, t)[:, 0] * x).sum()
    )(rg.zeros((PLACES, 2), dtype=x.dtype))[:, 0],
    "put_along_axis": lambda x, ids: rg.put_along_axis(
        rg.zeros((1, PLACES), dtype=x.dtype), ids[None], x[None], mode="add"
    )[0],
}  # fmt: skip


def check(name: str, n: int, kind: str, ids: str, dtype: Any, jit: bool, threads: int = 2) -> None:
    rng = np.random.default_rng(0)
    x, at = KINDS[kind](rng, n).astype(dtype), IDS[ids](rng, n)
    f = rg.jit(SUMS[name]) if jit else SUMS[name]
    with rg.num_threads(threads):
        y = f(rg.asarray(x), rg.asarray(at))
    assert_small(y, totals(x, at), totals(np.abs(x), at), n, dtype)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.sample(4)
def test_sums_of_segments(name: str) -> None:
    """Of a few lengths; one after the other in float32, they would err by hundreds of these
    units."""
    check(name, 1 << 17, "tenths", "one", np.float32, True)
    check(name, 1 << 17, "uniform", "skewed", np.float32, False)
    check(name, 1 << 13, "tenths", "many", np.float64, True)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "power", [17, *[pytest.param(n, marks=pytest.mark.exhaustive) for n in (20, 22, 24)]]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SUMS)
def test_long_sums_of_segments(name: str, dtype: Any, power: int, threads: int) -> None:
    for kind in KINDS:
        for ids in IDS:
            for jit in (False, True):
                check(name, 1 << power, kind, ids, dtype, jit, threads)


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True])
def test_more_ones_than_float32_can_count(jit: bool) -> None:
    n = 1 << 26
    ids = np.zeros(n, np.int32)
    f = (
        rg.jit(lambda x, i: rg.segment_sum(x, i, 1))
        if jit
        else lambda x, i: rg.segment_sum(x, i, 1)
    )
    assert f(np.ones(n, np.float32), ids).tolist() == [n]
    assert rg.cumsum(np.ones(n, np.float32))[-1].item() == n
    assert (
        abs(rg.cumsum(np.full(n, 0.1, np.float32))[-1].item() / (n * float(np.float32(0.1))) - 1)
        < 2**-23
    )


RUNNING: dict[str, tuple[Callable[[Any], Any], int]] = {
    "row": (lambda x: rg.cumsum(x), 0),
    "rows": (lambda x: rg.cumsum(x, axis=1), 1),
    "columns": (lambda x: rg.cumsum(x, axis=0), 0),
    "middle": (lambda x: rg.cumsum(x, axis=1), 1),
    "gradient": (lambda x: rg.flip(rg.grad(lambda y: (rg.cumsum(y) * rg.flip(x)).sum())(x * 0)), 0),
}  # fmt: skip
SHAPES = {
    "row": (-1,),
    "rows": (2, -1),
    "columns": (-1, 5),
    "middle": (2, -1, 3),
    "gradient": (-1,),
}


def check_running(name: str, n: int, kind: str, dtype: Any, jit: bool) -> None:
    f, axis = RUNNING[name]
    shape = SHAPES[name]
    many = -math.prod(shape)
    x = KINDS[kind](np.random.default_rng(0), n // many * many).reshape(shape).astype(dtype)
    y = (rg.jit(f) if jit else f)(rg.asarray(x)).numpy()
    assert_running(y, x, axis)


def running(x: Array, axis: int) -> Array:
    """Running sums in a wider dtype, in two levels: one after the other, millions of roundings
    would add up to more than the bound."""
    wide = np.longdouble if x.dtype == np.float64 else np.float64
    columns = np.moveaxis(x, axis, 0).astype(wide)
    n, block = len(columns), math.isqrt(len(columns)) + 1
    padded = np.zeros((block * block, *columns.shape[1:]), wide)
    padded[:n] = columns
    blocks = np.cumsum(padded.reshape(block, block, *columns.shape[1:]), 1)
    blocks[1:] += np.cumsum(blocks[:-1, -1], 0)[:, None]
    return np.moveaxis(blocks.reshape(padded.shape)[:n], 0, axis)


def assert_running(y: Array, x: Array, axis: int) -> None:
    exact, size = running(x, axis), running(np.abs(x), axis)
    bound = np.finfo(x.dtype).eps * math.log2(x.shape[axis]) * size
    error = np.abs(y.astype(exact.dtype) - exact)
    assert (error <= bound).all(), float((error / bound).max())


@pytest.mark.parametrize("name", RUNNING)
def test_running_sums(name: str) -> None:
    for kind, jit, dtype in (("tenths", True, np.float32), ("normal", False, np.float64)):
        check_running(name, 1 << 17, kind, dtype, jit)


@pytest.mark.slow
@pytest.mark.parametrize(
    "power", [20, *[pytest.param(n, marks=pytest.mark.exhaustive) for n in (24, 25)]]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RUNNING)
def test_long_running_sums(name: str, dtype: Any, power: int) -> None:
    for kind in KINDS:
        for jit in (False, True):
            check_running(name, 1 << power, kind, dtype, jit)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_the_reference_keeps_to_the_bound(backend: str) -> None:
    n = 1 << 16
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x, ids = np.full(n, 0.1, dtype), IDS["skewed"](rng, n)
        with rg.backend(backend):
            y = rg.segment_sum(x[:, None], ids, PLACES).numpy()[:, 0]
            z = rg.cumsum(x).numpy()
        assert_small(y, totals(x, ids), totals(x, ids), n, dtype)
        assert_running(z, x, 0)


def assert_logs(n: int, x: Array, backend: str = "llvm") -> None:
    """Errors of a logarithm, and of partials, as large as those of the sum."""
    wide = np.longdouble
    exact = np.logaddexp.accumulate(x.astype(wide))
    with rg.backend(backend):
        y = rg.logcumsumexp(x).numpy()
    bound = np.finfo(x.dtype).eps * math.log2(n)
    assert (np.abs(y - exact) <= bound * np.maximum(np.abs(exact), 1)).all()
    if backend == "llvm":
        g = rg.grad(lambda x: rg.logcumsumexp(x).sum())(x).numpy()
        after = np.cumsum(np.exp(x[-1].astype(wide) - exact)[::-1])[::-1]
        partial = np.exp(x.astype(wide) - x[-1]) * after
        assert (np.abs(g - partial) <= bound * partial).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_of_running_sums(dtype: Any) -> None:
    """Constants; a maximum that grows all the time, by steps that are nearly rounded away."""
    n = 1 << 15
    assert_logs(n, np.full(n, 0.1, dtype))
    assert_logs(n, np.sort(np.random.default_rng(0).random(n)).astype(dtype))
    assert_logs(n, np.sort(np.random.default_rng(0).random(n)).astype(dtype), "reference")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_of_long_running_sums(dtype: Any) -> None:
    n = 1 << 22
    assert_logs(n, np.full(n, 1.0, dtype))
    assert_logs(n, np.sort(np.random.default_rng(0).random(n)).astype(dtype))
    assert_logs(n, np.random.default_rng(0).standard_normal(n).astype(dtype))


def test_segment_softmax_and_mean() -> None:
    n = 1 << 18
    x, ids = np.full(n, 0.1, np.float32), np.zeros(n, np.int64)
    assert rg.segment_mean(x, ids, 1).item() == np.float32(0.1)
    shares = rg.segment_softmax(np.zeros(n, np.float32), ids, 1).numpy()
    assert (shares == np.float32(1 / n)).all()


@pytest.mark.slow
def test_messages_of_graphs() -> None:
    """Sums over very many edges into one node."""
    n = 1 << 17
    x = np.full((n, 1), 0.1, np.float32)
    edges = np.stack([np.arange(n), np.full(n, n)])
    sums = gnn.Graph(n + 1, edges)
    y = gnn.dag_scan(lambda a, x: a + x, sums, np.concatenate([x, x[:1] * 0]))
    exact = n * float(np.float32(0.1))
    assert abs(y[-1].item() / exact - 1) < 2**-22


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_loops(dtype: Any) -> None:
    """What each step adds to the gradient of what all steps read."""
    n = 1 << 16
    x = np.full(n, 0.1, dtype)

    def loss(w: Any) -> Any:
        return rg.scan(lambda c, x: (c + 0 * x, w * x), rg.zeros((), dtype=dtype), x)[1].sum()

    g = rg.jit(rg.grad(loss))(np.ones((), dtype)).item()
    exact = math.fsum(x.astype(np.float64))
    assert abs(g - exact) <= 2 * np.finfo(dtype).eps * exact


@pytest.mark.slow
def test_a_gradient_of_a_gradient_of_a_loop() -> None:
    """Keeping what is rounded off changes no derivative."""
    xs = np.linspace(0.5, 1.5, 40)

    def last(w: Any) -> Any:
        return rg.scan(lambda c, x: (rg.sin(c * w + x), c), w * 0, xs)[0]

    def last_written_out(w: Any) -> Any:
        c = w * 0
        for x in xs:
            c = rg.sin(c * w + float(x))
        return c

    w = np.array(0.7)
    for order in (rg.grad(rg.grad(last)), rg.hessian(last)):
        expected = rg.grad(rg.grad(last_written_out))(w).item()
        assert abs(order(w).item() - expected) < 1e-10 * abs(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows(dtype: Any) -> None:
    n = 1 << 14
    table = nn.Parameter(np.zeros((5, 2), dtype))
    ids = np.zeros(n, np.int64)
    (nn.functional.embedding(ids, table, sparse=True) * np.asarray(0.1, dtype)).sum().backward()
    exact = n * float(np.asarray(0.1, dtype))
    row = table.grad.coalesce().values.numpy()[0]
    assert (np.abs(row / exact - 1) <= 2 * np.finfo(dtype).eps).all()
