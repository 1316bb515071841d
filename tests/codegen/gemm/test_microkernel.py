"""A few rows of a matrix product by panels of the right matrix: rows and lanes that count, and no
others."""

from functools import partial

import numpy as np
import pytest

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile, strip_function
from retrograd.codegen.target import Target
from retrograd.ir import DType, float32, float64
from tests.codegen.llvm_function import run

VECTORS = 2
MACHINE = Target(4, 16, False)


def made(tile: Tile, full: bool) -> tuple[str, dict[str, None]]:
    known: dict[str, None] = {}
    w = FunctionBuilder(lambda d: known.setdefault(d))
    return strip_function(tile, VECTORS, w, full=full), known


def call(
    name: str, strides: list[int], numbers: list[int], more: int, w: FunctionBuilder, p: list[str]
) -> None:
    step, b_step, b_next, c_step = strides
    k, rows, panels, lanes = numbers
    a, b, c = p
    w.line(
        f"call void @{name}(ptr {a}, i64 {step}, i64 1, ptr {b}, i64 {b_step}, i64 {b_next}, "
        f"ptr {c}, i64 {c_step}, i64 {k}, i64 {rows}, i64 {panels}, i64 {lanes}, i1 {more}, i64 0, "
        f"ptr {b}, i64 0, i64 0)"
    )


@pytest.mark.parametrize("there", [False, True], ids=["panels", "in place"])
@pytest.mark.parametrize("full", [False, True], ids=["some", "all"])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_results_and_their_neighbours(dtype: DType, full: bool, there: bool) -> None:
    tile = Tile.of(MACHINE, dtype)
    text, known = made(tile, full)
    rng = np.random.default_rng(0)
    wide = VECTORS * tile.lanes
    name = f"strip{VECTORS}" + "_full" * full
    for rows, panels, lanes, k, more in (
        (4, 2, tile.lanes, 3, 0),
        (1, 1, 1, 1, 1),
        (3, 1, 2, 200, 1),
    ):
        rows = tile.rows if full else rows
        width = panels * wide
        counted = width - tile.lanes + lanes
        # A strip of all rows reads whole vectors, which a copy has, or the matrix.
        b = rng.integers(-4, 5, (k, width if full or not there else counted)).astype(dtype.dtype)
        a = rng.integers(-4, 5, (rows, k + 2)).astype(dtype.dtype)
        c = rng.integers(-4, 5, (rows + 1, width + 3)).astype(dtype.dtype)
        before = c.copy()
        laid = b if there else b.reshape(k, panels, wide).swapaxes(0, 1).copy()

        strides = [k + 2, b.shape[1] if there else wide, wide if there else k * wide, width + 3]
        numbers = [k, rows, panels, lanes]
        run(partial(call, name, strides, numbers, more), a, laid, c, functions=[text], known=known)
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
