"""Matrix products on the GPU: sizes that are no multiples of a tile, all layouts, parts of sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.wgpu.emit.matmul import FLAT, LARGE, MEDIUM, TALL, tile_for
from tests.wgpu.gpu import device_with, needs_gpu, program, run

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]
SIZES = [
    (1, 300, 200), (33, 17, 65), (200, 1, 300), (100, 5000, 7), (257, 129, 130), (3, 20000, 5),
    (64, 64, 64), (129, 300, 1), (500, 20, 500),
]  # fmt: skip


def matrices(m: int, k: int, n: int, dtype: Any = np.float32) -> tuple[Array, Array]:
    r = np.random.default_rng((m, k, n))
    return r.normal(size=(m, k)).astype(dtype), r.normal(size=(k, n)).astype(dtype)


def assert_product(y: Array, a: Array, b: Array) -> None:
    """Within a few roundings of the sums of magnitudes, however long the sums are."""
    right = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b)
    assert y.shape == right.shape
    assert (np.abs(y - right) <= 4 * np.finfo(a.dtype).eps * size + 1e-30).all()


def product(a: Array, b: Array, left: bool = False, right: bool = False) -> Array:
    """By matrices that lie transposed in memory."""
    op = DotGeneral(a_contract=(0 if left else 1,), b_contract=(1 if right else 0,))
    turned = (np.ascontiguousarray(x.T) if t else x for x, t in ((a, left), (b, right)))
    return run(op, *turned)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.sample(4)
def test_layouts(size: tuple[int, int, int], left: bool, right: bool) -> None:
    a, b = matrices(*size)
    assert_product(product(a, b, left, right), a, b)


def test_doubles() -> None:
    a, b = matrices(70, 90, 33, np.float64)
    assert_product(product(a, b), a, b)


def test_nothing_to_add_up() -> None:
    a, b = matrices(64, 0, 64)
    np.testing.assert_array_equal(product(a, b), np.zeros((64, 64)))


def test_a_stack_of_products() -> None:
    r = np.random.default_rng(0)
    a, b = r.normal(size=(5, 40, 70)).astype("f4"), r.normal(size=(5, 70, 90)).astype("f4")
    op = DotGeneral(a_contract=(2,), b_contract=(1,), a_batch=(0,), b_batch=(0,))
    for y, x, z in zip(run(op, a, b), a, b, strict=True):
        assert_product(y, x, z)


@pytest.mark.parametrize("k", [70, 71, 72, 73])
def test_infinities_and_nan_stay_in_their_rows(k: int) -> None:
    """Nothing is read beyond the end of a row, even where it would be multiplied by zero."""
    a, b = matrices(40, k, 50)
    a[3, 5], a[7, 0], b[69, 49] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        y, right = product(a, b), a @ b
    np.testing.assert_array_equal(np.isnan(y), np.isnan(right))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(right))


@pytest.mark.slow
def test_long_sums_are_as_accurate_as_short_ones() -> None:
    a, b = np.full((4, 1 << 18), 0.1, np.float32), np.full((1 << 18, 4), 0.3, np.float32)
    right = float(np.float32(0.1)) * float(np.float32(0.3)) * (1 << 18)
    assert np.abs(product(a, b) / right - 1).max() < 16 * 2.0**-23  # in one chain it is 10,000


def test_sizes_by_name() -> None:
    """One program for several sizes."""
    a, b = input_node(spec((Dim("m"), 40), float32)), input_node(spec((40, Dim("n")), float32))
    run_ = program(Graph([a, b], [DotGeneral(a_contract=(1,), b_contract=(0,))(a, b)]))
    for m, n in ((3, 100), (90, 70), (0, 5)):
        x, z = matrices(m, 40, n)
        assert_product(run_([x, z])[0], x, z)


@pytest.mark.slow
def test_convolutions_and_their_gradients() -> None:
    """Windows on the right, spread rows on the left."""
    r = np.random.default_rng(0)
    x = r.normal(size=(2, 3, 20, 20)).astype("f4")
    w = r.normal(size=(8, 3, 3, 3)).astype("f4")

    def loss(x: Any, w: Any) -> Any:
        return (rg.conv(x, w, stride=2, padding=1) ** 2).sum()

    results = []
    for name in ("wgpu", "reference"):
        with rg.backend(name):
            results.append([g.numpy() for g in rg.jit(rg.grad(loss, argnums=(0, 1)))(x, w)])
    for y, right in zip(*results, strict=True):
        np.testing.assert_allclose(y, right, rtol=1e-4, atol=1e-4 * np.abs(right).max())


def test_tiles() -> None:
    """Narrow matrices have narrow tiles; large ones where there is enough for all."""
    assert tile_for(1, 500, 1) is FLAT
    assert tile_for(500, 1, 1) is TALL
    assert tile_for(64, 64, 1) is MEDIUM
    assert tile_for(1024, 1024, 1) is LARGE
    assert all(t.columns % 4 == 0 for t in (FLAT, TALL, MEDIUM, LARGE))


def test_fused_or_not() -> None:
    """A device that has no `fma` of its own gives as good results."""
    a, b = matrices(30, 50, 20)
    with device_with(fused=False):
        assert_product(product(a, b), a, b)
