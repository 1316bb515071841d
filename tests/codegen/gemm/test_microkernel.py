"""One tile of a matrix product: rows and lanes that count, and no others."""

from functools import partial

import numpy as np
import pytest

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile, tile_function
from retrograd.codegen.target import Target
from retrograd.ir import DType, float32, float64
from tests.codegen.llvm_function import run

VECTORS = 2
MACHINE = Target(4, 16, False)


def made(tile: Tile) -> tuple[str, dict[str, None]]:
    known: dict[str, None] = {}
    w = FunctionBuilder(lambda d: known.setdefault(d))
    return tile_function(tile, VECTORS, w), known


def call(numbers: list[int], more: int, w: FunctionBuilder, p: list[str]) -> None:
    step, k, rows, lanes, c_step = numbers
    a, b, c = p
    w.line(
        f"call void @tile{VECTORS}(ptr {a}, i64 {step}, i64 1, ptr {b}, ptr {c}, i64 {c_step}, "
        f"i64 {k}, i64 {rows}, i64 {lanes}, i1 {more}, i64 0, ptr {b}, i64 0)"
    )


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_results_and_their_neighbours(dtype: DType) -> None:
    tile = Tile.of(MACHINE, dtype)
    text, known = made(tile)
    rng = np.random.default_rng(0)
    wide = VECTORS * tile.lanes
    for rows, lanes, k, more in ((4, tile.lanes, 3, 0), (1, 1, 1, 1), (3, 2, 200, 1)):
        a = rng.integers(-4, 5, (rows, k + 2)).astype(dtype.dtype)
        b = rng.integers(-4, 5, (k, wide)).astype(dtype.dtype)
        c = rng.integers(-4, 5, (rows + 1, wide + 3)).astype(dtype.dtype)
        before = c.copy()

        numbers = [k + 2, k, rows, lanes, wide + 3]
        run(partial(call, numbers, more), a, b, c, functions=[text], known=known)
        counted = (VECTORS - 1) * tile.lanes + lanes
        wanted = before.copy()
        wanted[:rows, :counted] = a[:, :k] @ b[:k, :counted] + more * before[:rows, :counted]
        np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize(("width", "registers"), [(16, 32), (8, 16), (4, 32), (4, 16)])
@pytest.mark.parametrize("fma", [False, True])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_a_tile_fits_into_registers(dtype: DType, fma: bool, width: int, registers: int) -> None:
    """With a row of the right matrix, an element of the left one, and, where products are rounded
    by themselves, a product."""
    tile = Tile.of(Target(width, registers, fma), dtype)
    taken = tile.rows * tile.vectors + tile.vectors + 1 + (not fma)
    assert taken <= registers
    assert tile.columns * dtype.itemsize == 4 * width * tile.vectors
