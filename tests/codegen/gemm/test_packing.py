"""Blocks of a matrix in panels: where each element is found again."""

import numpy as np
import pytest

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.codegen.gemm.packing import pack_columns, pack_rows
from retrograd.codegen.target import Target
from retrograd.ir import DType, float32, float64
from tests.codegen.llvm_function import compiled

MACHINE = Target(4, 16, True)
SIZES = [(1, 1), (3, 2), (4, 7), (12, 4), (13, 5), (29, 9), (24, 1)]  # width, depth


def panels(block: np.ndarray, columns: int, lanes: int) -> list[np.ndarray]:
    """The definition: `columns` at a time, the last ones in whole vectors, with NaN behind."""
    depth, width = block.shape
    found = []
    for start in range(0, width, columns):
        part = block[:, start : start + columns]
        full = min(columns, -(-part.shape[1] // lanes) * lanes)
        room = np.full((depth, full), np.nan, block.dtype)
        room[:, : part.shape[1]] = part
        found.append(room.ravel())
    return found


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_panels(dtype: DType, turned: bool) -> None:
    tile = Tile.of(MACHINE, dtype)
    known: dict[str, None] = {}
    w = FunctionBuilder(lambda d: known.setdefault(d))
    text = pack_columns(tile, w) if turned else pack_rows(tile, "pack_rows", tile.vectors, w)
    name = "pack_columns" if turned else "pack_rows"

    def write(w: FunctionBuilder, p: list[str]) -> None:
        width, depth, step = (
            w.new(f"load i64, ptr {w.new(f'getelementptr i64, ptr {p[2]}, i64 {k}')}")
            for k in range(3)
        )
        w.line(f"call void @{name}(ptr {p[0]}, ptr {p[1]}, i64 {width}, i64 {depth}, i64 {step})")

    pack = compiled(write, 3, [text], known)
    rng = np.random.default_rng(0)
    for width, depth in SIZES:
        matrix = rng.standard_normal((width, depth + 3) if turned else (depth, width + 3))
        matrix = matrix.astype(dtype.dtype)
        block = matrix[:, :depth].T if turned else matrix[:, :width]
        wanted = np.concatenate(panels(block, tile.columns, tile.lanes))
        to = np.full(wanted.size + 8, 7, dtype.dtype)
        pack(to, matrix, np.array([width, depth, matrix.shape[1]]))
        inside = ~np.isnan(wanted)
        np.testing.assert_array_equal(to[: wanted.size][inside], wanted[inside])
        assert (to[wanted.size :] == 7).all(), "written behind the last panel"
