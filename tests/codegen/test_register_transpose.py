"""Rows turned in registers: columns, whatever the width of vectors and elements."""

import numpy as np
import pytest

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.register_transpose import in_turn, together, transpose_in_registers
from retrograd.ir import DType, float32, float64
from tests.codegen.llvm_function import run


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_columns(dtype: DType, lanes: int) -> None:
    """Rows lie anywhere; memory behind what is read of them is not touched."""
    count = together(dtype, lanes)
    room = np.arange(lanes * 37, dtype=dtype.dtype)
    starts = np.random.default_rng(lanes).permutation(lanes) * 37 + 5
    out = np.zeros((count, lanes), dtype.dtype)

    def write(w: FunctionBuilder, p: list[str]) -> None:
        kind = types.memory_type(dtype)
        rows = [w.new(f"getelementptr {kind}, ptr {p[0]}, i64 {s}") for s in starts]
        for k, x in enumerate(transpose_in_registers(w, rows, dtype)):
            place = w.new(f"getelementptr {kind}, ptr {p[1]}, i64 {k * lanes}")
            types.store(w, x, place, dtype, lanes)

    run(write, room, out)
    assert count == 16 // dtype.itemsize
    np.testing.assert_array_equal(out, np.stack([room[s : s + count] for s in starts], 1))


@pytest.mark.parametrize("run_length", [1, 2, 4])
@pytest.mark.parametrize("count", [2, 3, 4, 6, 8])
def test_runs_of_vectors_in_turn(count: int, run_length: int) -> None:
    lanes = 8
    rows = np.arange(count * lanes, dtype=np.float32).reshape(count, lanes)
    out = np.zeros(count * lanes, np.float32)

    def write(w: FunctionBuilder, p: list[str]) -> None:
        at = [w.new(f"getelementptr float, ptr {p[0]}, i64 {k * lanes}") for k in range(count)]
        vectors = [types.load(w, a, float32, lanes) for a in at]
        for k, x in enumerate(in_turn(w, vectors, "float", lanes, run_length)):
            place = w.new(f"getelementptr float, ptr {p[1]}, i64 {k * lanes}")
            types.store(w, x, place, float32, lanes)

    run(write, rows, out)
    wanted = rows.reshape(count, -1, run_length).transpose(1, 0, 2).ravel()
    np.testing.assert_array_equal(out, wanted)
