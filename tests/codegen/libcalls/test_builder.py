"""Routines written for one item: sizes that are known or not give the same results."""

import numpy as np
import pytest

from retrograd.codegen.libcalls.builder import LibCallBuilder, helper
from retrograd.ir import float64
from retrograd.tuning import TUNING
from tests.codegen.llvm_function import run


def called(emit, name: str, n: int, known: bool, *arrays: np.ndarray, paired: bool = False) -> int:
    def write(w, p):
        sizes = [n if known else None]
        symbol = helper(w, name, emit, float64, len(arrays), sizes, paired=paired)
        pointers = ", ".join(f"ptr {x}" for x in p)
        return w.new(f"call i64 @{symbol}({pointers}, ptr null, i64 {n})")

    return run(write, *arrays)


def turn(w: LibCallBuilder) -> None:
    w.copy_turned(w.data[1], w.data[0], w.sizes[0])
    w.line("ret i64 0")


@pytest.mark.parametrize("paired", [False, True], ids=["real", "complex"])
def test_transposes_by_tiles(paired: bool) -> None:
    for n in (
        0,
        1,
        TUNING.transpose_tile_rows - 1,
        TUNING.transpose_tile_rows,
        2 * TUNING.transpose_tile_rows + 3,
    ):
        x = np.random.default_rng(n).standard_normal((n, 2 * n) if paired else (n, n))
        x = x.view(complex) if paired else x
        y = np.full_like(x, np.nan)
        called(turn, "test.turn", n, False, x, y, paired=paired)
        np.testing.assert_array_equal(y, x.T)


def insertion(w: LibCallBuilder) -> None:
    """Sorts by exchanges; the result says how many there were."""
    n, y = w.sizes[0], w.data[0]

    def row(i, counts):
        def back(j, counts):
            above, below = w.sub(i, w.add(j, 1)), w.sub(i, j)
            wrong = w.new(f"fcmp ogt double {w.get(y, above)}, {w.get(y, below)}")
            with w.when(wrong):
                w.swap(y, above, below)
            return [w.new(f"add i64 {counts[0]}, {w.new(f'zext i1 {wrong} to i64')}")]

        return w.fold(0, i, [("i64", counts[0])], back)

    (count,) = w.fold(0, n, [("i64", "0")], row)
    w.line(f"ret i64 {count}")


@pytest.mark.parametrize("known", [False, True])
def test_loops_and_straight_code(known: bool) -> None:
    x = np.array([3.0, -1.0, 2.0, 2.0, -5.0])
    inversions = sum(x[i] > x[j] for i in range(5) for j in range(i, 5))
    y = x.copy()
    assert called(insertion, "test.insertion", 5, known, y) == inversions
    np.testing.assert_array_equal(y, np.sort(x))
