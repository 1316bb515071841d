"""Sums in blocks, of scatters, scans and walks: on threads, in half precision, with zeros,
infinities and NaN among the terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.ir import DType, bfloat16, float16, float32
from retrograd.ops.numerics.compensated_sum import BLOCK, scattered
from tests.codegen.emit.tiers import WIDE, Array, assert_bits, numbers


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.sample(1)
def test_threads(dtype: DType) -> None:
    """Large enough for threads to share it."""
    rng = np.random.default_rng(0)
    for shape, axis in (((30_000, 20), 0), ((20, 30_000), 1), ((100_000,), 0), ((4, 9000, 30), 1)):
        ids = rng.integers(0, 50, shape[axis])
        x = numbers(rng, shape, dtype, False)

        def f(x: Any, ids: Any = ids, shape: Any = shape, axis: int = axis) -> Any:
            nothing = rg.zeros((*shape[:axis], 50, *shape[axis + 1 :]), dtype=x.dtype)
            return rg.scatter_add(nothing, ids, x, axis=axis), rg.cumsum(x, axis=axis)

        for y, z in zip(*[_with_threads(n, f, x) for n in (1, 2)], strict=True):
            assert_bits(y, z, (shape, axis))


def _with_threads(n: int, f: Any, x: Array) -> list[Array]:
    with rg.num_threads(n):
        return [y.numpy() for y in rg.jit(f)(x)]


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_half_precision_is_rounded_once(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    u, i = rng.standard_normal((3000, 2)).astype(dtype.dtype), rng.integers(0, 3, 3000)
    exact = np.zeros((3, 2))
    np.add.at(exact, i, u.astype(np.float64))
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            for axis, x in ((0, u), (1, np.ascontiguousarray(u.T))):
                zero = np.zeros((3, 2) if axis == 0 else (2, 3), dtype.dtype)
                y = rg.scatter_add(zero, i, x, axis=axis).numpy()
                expected = exact if axis == 0 else exact.T
                assert (y == expected.astype(np.float32).astype(dtype.dtype)).all()
            y = rg.cumsum(u, axis=0).numpy()
            exact_sums = np.cumsum(u.astype(np.float64), 0).astype(np.float32).astype(dtype.dtype)
            assert (y == exact_sums).all()


def test_no_zero_changes_its_sign_and_no_infinity_becomes_nan() -> None:
    for dtype in (np.float32, np.float64):
        minus = np.full(100, -0.0, dtype)
        big = np.full(100, np.finfo(dtype).max)
        for column in (False, True):

            def shaped(x: Array, column: bool = column) -> Array:
                return x[:, None] if column else x

            def total(x: Array, start: float) -> Array:
                first = shaped(np.full(1, start, x.dtype))
                return rg.scatter_add(first, np.zeros(len(x), int), shaped(x)).numpy().reshape(())

            assert np.signbit(total(minus, -0.0))
            assert not np.signbit(total(minus, 0.0))
            assert total(np.where(np.arange(100) == 50, np.inf, 1).astype(dtype), 0) == np.inf
            assert total(big, 0) == np.inf
            both = np.where(np.arange(100) == 50, np.inf, 1)
            both[70] = -np.inf
            assert np.isnan(total(both.astype(dtype), 0))
            sums = rg.cumsum(shaped(minus), axis=0).numpy()
            assert np.signbit(sums).all()
            both[70] = 1
            sums = rg.cumsum(shaped(both.astype(dtype)), axis=0).numpy().reshape(-1)
            assert (sums[50:] == np.inf).all()
            assert np.isfinite(sums[:50]).all()


def test_whole_numbers_wrap() -> None:
    x = np.full((100, 2), 2**62, np.int64)
    assert (rg.segment_sum(x, np.zeros(100, np.int64), 1).numpy() == 100 * 2**62 % 2**64).all()
    assert rg.cumsum(x, axis=0)[3].tolist() == [0, 0]
    y = np.full((100, 2), 200, np.uint8)
    assert rg.scatter_add(np.zeros((1, 2), np.uint8), np.zeros(100, int), y).tolist() == [[32, 32]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_complex_numbers_are_scattered_by_parts(dtype: str) -> None:
    rng = np.random.default_rng(0)
    re, im = rng.standard_normal((2, 500, 3)).astype(dtype)
    ids = rng.integers(0, 4, 500)
    parts = [rg.segment_sum(x, ids, 4).numpy() for x in (re, im)]
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            z = rg.segment_sum(re + 1j * im, ids, 4).numpy()
            assert (z.real == parts[0]).all()
            assert (z.imag == parts[1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 32, 33, 500])
@pytest.mark.sample(4)
def test_messages_to_a_node(count: int, dtype: Any) -> None:
    """Those of a walk through a graph are added in blocks, like updates of a scatter."""
    edges = np.stack([np.arange(count), np.full(count, count)])
    graph = gnn.Graph(count + 1, edges)
    x = np.random.default_rng(0).standard_normal((count + 1, 3)).astype(dtype)
    x[count] = 0

    def states(x: Any) -> Any:
        return gnn.dag_scan(lambda a, x: a + x, graph, x)

    expected = np.zeros((1, 3), dtype)
    scattered(expected, np.zeros(count, np.int64), x[:count], False)
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            assert (rg.jit(states)(x)[-1].numpy() == expected[0]).all()


def test_another_block_is_noticed() -> None:
    """The cases above would not agree if a tier had blocks of another size."""
    x = numbers(np.random.default_rng(0), (300, 2), float32, False)
    y, z = np.zeros((1, 2), np.float32), np.zeros((1, 2), np.float32)
    scattered(y, np.zeros(300, np.int64), x, False)
    for start in range(0, 300, 2 * BLOCK):
        z += np.add.accumulate(x[start : start + 2 * BLOCK])[-1]
    assert (y != z).any()
